"""The answer to a search as the gateway gives it: a text for models, and the same as data for programs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from toolsearch.discovery.answers import (
    answer_with_definitions,
    answer_with_names,
    answer_with_nothing,
    with_confidence,
)
from toolsearch.discovery.call_tools import call_tool_for
from toolsearch.discovery.exposure import Exposure
from toolsearch.tokens import TokenCounter
from toolsearch.tools.definition import Tool, ToolReference
from toolsearch.wire.mcp.definitions import fields_for_calling


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """*text* is for the model; *structured* holds the same for programs. Clients may pass on only one of the two."""

    text: str
    structured: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AnswerWriter:
    """Writes answers of at most *answer_tokens* tokens.

    shown     gives the tool of a name as clients are shown it, None for one that they are not
    is_split  whether there is a call tool for each safety class, or one for all
    """

    shown: Callable[[str], Tool | None]
    is_split: bool
    answer_tokens: int
    counter: TokenCounter

    def write(
        self,
        exposure: Exposure,
        found: Sequence[ToolReference],
        *,
        listed_before: Collection[str] | None = None,
        note: str = "",
    ) -> SearchAnswer:
        """Answer with *found*, best first, what *exposure* has answers hold.

        *listed_before* says which of them are not new to the client's list; None says nothing of that.
        """
        noted = {"note": note} if note else {}
        if not found:
            return SearchAnswer(answer_with_nothing(note), {"tools": [], **noted})
        hint = with_confidence(exposure.call_hint, found)
        limits: dict[str, Any] = {"answer_tokens": self.answer_tokens, "counter": self.counter}
        if exposure.answers == "names":
            names = [{"name": reference.name} for reference in found]
            text = answer_with_names(
                found, call_hint=exposure.call_hint, listed_before=listed_before, note=note, **limits
            )
            return SearchAnswer(text, {"tools": names, "howToCall": hint, **noted})
        tools = [tool for reference in found if (tool := self.shown(reference.name)) is not None]
        answer = answer_with_definitions(list(map(self._entry, tools)), call_hint=hint, note=note, **limits)
        structured = {"tools": answer.given, "alsoFound": answer.left_out, "howToCall": hint}
        return SearchAnswer(answer.text, {**structured, **noted})

    def _entry(self, tool: Tool) -> dict[str, Any]:
        call_tool = call_tool_for(tool, is_split=self.is_split)
        return {"name": tool.name, "callWith": call_tool, **fields_for_calling(tool)}
