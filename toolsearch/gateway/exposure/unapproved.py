"""What a caller is told of tools that wait for approval: that they do, by exact name and within its reach alone."""

from __future__ import annotations

from toolsearch.access.reach import Reach
from toolsearch.errors import UnapprovedToolError
from toolsearch.gateway.registry import Registry
from toolsearch_indexes.query_forms import Select, Words, name_candidates, read_form


class UnapprovedTools:
    """Safe to share between threads. Out of reach, such a tool is like one that does not exist."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def check(self, name: str, reach: Reach) -> None:
        """Raise UnapprovedToolError if the tool of that name waits for approval."""
        if (tool := self._registry.held.get(name)) and reach.allows(tool.definition):
            raise UnapprovedToolError(name)

    def note(self, query: str, reach: Reach) -> str:
        """A line for each such tool that *query*, which has been searched for, names; a server's name in front of it
        is part of the name.
        """
        match read_form(query):
            case Select(names):
                asked = names
            case Words(text):
                asked = (text,)
            case _:
                return ""
        meant = {candidate for name in asked for candidate in name_candidates(name)}
        held = [tool for name, tool in sorted(self._registry.held.items()) if name.casefold() in meant]
        return "\n".join(f"{UnapprovedToolError(tool.name)}." for tool in held if reach.allows(tool.definition))
