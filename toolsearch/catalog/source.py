"""What a source of tools owes, and what it reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from toolsearch.tools.definition import Tool
from toolsearch.tools.refusal import Refusal


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What came out of a source, in the source's own order.

    purposes  what is known of what the servers are for, by server, in their own words; a catalog keeps one line of each
    """

    tools: tuple[Tool, ...]
    refused: tuple[Refusal, ...] = ()
    purposes: Mapping[str, str] = field(default_factory=dict[str, str])


class Source(Protocol):
    """Where tools come from. A bad tool is refused and the others load; SourceError means that nothing can be read."""

    @property
    def description(self) -> str:
        """What this is, for people: a path, ``module statistics``."""
        ...

    def load(self) -> LoadReport:
        """Read the tools. May block for seconds; called once per catalog."""
        ...

    def close(self) -> None:
        """Close connections and end processes. The tools' callbacks stop working. May be called twice."""
        ...


@runtime_checkable
class LiveSource(Source, Protocol):
    """A source whose tools change while it is open."""

    def follow(self, changed: Callable[[LoadReport], None]) -> None:
        """Call *changed* with all tools whenever they change, until `close`. Called once, after `load`.

        If the tools have changed since `load` began to read, *changed* is called at once. It may be called from any
        thread, but not by two at the same time. It returns at once and never raises.
        """
        ...
