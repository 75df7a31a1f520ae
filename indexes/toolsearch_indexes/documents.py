"""What an index knows of a tool: its words, by field. And what a search gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Confidence: TypeAlias = Literal["high", "low"]


@dataclass(frozen=True, slots=True)
class ToolDocument:
    """One tool as text.

    name              unique in its index, such as ``git__git_status``; ties in a ranking are broken by it
    local_name        the name without its server's prefix (``git_status``); empty means *name* itself
    parameter_names   every property name of the input schema, at any depth, in schema order
    parameter_text    titles, descriptions and enum values of the parameters, at any depth
    requests          what users ask when they need this tool, one text each; searched by keyword and by meaning, never
                      by pattern, and shown to nobody but a reader (see `Reader`)
    """

    name: str
    description: str = ""
    title: str = ""
    parameter_names: tuple[str, ...] = ()
    parameter_text: str = ""
    server: str = ""
    tags: tuple[str, ...] = ()
    local_name: str = ""
    requests: tuple[str, ...] = ()

    @property
    def own_name(self) -> str:
        """The name to read words from: without the server, which has a field of its own."""
        return self.local_name or self.name


@dataclass(frozen=True, slots=True)
class Hit:
    """One match.

    score       how likely a tool that matches so well is what was asked for, in (0, 1]; found by name or pattern, how
                good a match it is
    confidence  "low" where requests that no tool serves often have a best hit of such a score, and where the index does
                not know. If the best hit of an answer has it, all have, and asking again in other words is worth it
    """

    name: str
    score: float
    confidence: Confidence = "low"
