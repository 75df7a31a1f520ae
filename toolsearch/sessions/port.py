"""The interface between tool calls and sessions: the tools that a caller may run, and notes of running calls."""

from __future__ import annotations

from typing import Protocol

from toolsearch.tools.definition import Tool


class ToolScope(Protocol):
    """The tools that one caller, such as a session, may run. Safe to use from several threads."""

    def resolve(self, name: str) -> Tool:
        """Return the tool that a model called by *name*.

        If it is in reach and was not discovered yet, it is discovered now, unless the scope refuses that. Raises
        UnknownToolError, naming near tools in reach only, or UndiscoveredToolError.
        """
        ...

    def begin_call(self, name: str) -> None:
        """Note a use of *name* and keep the tool from eviction until the matching `end_call`.

        Raises UnknownToolError, and notes nothing, if the tool has left the reach since it was resolved.
        """
        ...

    def end_call(self, name: str) -> None:
        """Note that one running call of *name* is over, however it ended."""
        ...
