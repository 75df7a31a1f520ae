"""What a caller is told about tools that await approval: only of those that it names exactly and could reach."""

from __future__ import annotations

from toolsearch.access.reach import Reach
from toolsearch.errors import UnapprovedToolError
from toolsearch.gateway.registry import Registry
from toolsearch_indexes.query_forms import Select, Words, name_candidates, read_form


class UnapprovedTools:
    """Tells callers of tools that await approval. Safe to share between threads.

    Out of the caller's reach, such a tool is treated like one that does not exist.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def check(self, name: str, reach: Reach) -> None:
        """Raise UnapprovedToolError if the tool of that name awaits approval and *reach* allows it."""
        if (tool := self._registry.held.get(name)) and reach.allows(tool.definition):
            raise UnapprovedToolError(name)

    def note(self, query: str, reach: Reach) -> str:
        """One line for each tool that awaits approval and that *query* names exactly, with or without its server in
        front.
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
