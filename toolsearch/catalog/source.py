"""What a source of tools owes, and what it reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from toolsearch.tools.definition import Tool
from toolsearch.tools.refusal import Refusal


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What came out of a source, in the source's own order."""

    tools: tuple[Tool, ...]
    refused: tuple[Refusal, ...] = ()


class Source(Protocol):
    """Where tools come from. One bad tool costs only itself; SourceError means that nothing can be read at all."""

    @property
    def description(self) -> str:
        """What this is, for people: a path, ``module statistics``."""
        ...

    def load(self) -> LoadReport:
        """Read the tools. May block for seconds; called once per catalog."""
        ...

    def close(self) -> None:
        """Let go of connections and processes; the tools' callbacks stop working. May be called twice."""
        ...


@runtime_checkable
class LiveSource(Source, Protocol):
    """A source whose tools change while it is open."""

    def follow(self, changed: Callable[[LoadReport], None]) -> None:
        """Call *changed* with all that there is by now, each time that this changes, until `close`; called once, after
        `load`. What has changed since `load` began to read is told at once.

        *changed* returns at once and never raises. It may be called from any thread, one call after the other.
        """
        ...
