"""What a caller is told about tools that await approval: those that it names exactly, and whose tools wait.

Out of the caller's reach, such a tool is treated like one that does not exist.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TypeAlias

from toolsearch.access.reach import Reach
from toolsearch.errors import UnapprovedToolError
from toolsearch.gateway.registry import Registry
from toolsearch_indexes.query_forms import Select, Words, name_candidates, read_form

HowToApprove: TypeAlias = Callable[[str], str]
"""Says by what a person approves the entry or the server of this name, or all that waits if it is empty."""


def by_command(name: str) -> str:
    """As the machine's own user approves what a gateway holds."""
    return f"with `{shlex.join(['toolsearch', 'gateway', 'approve', *([name] if name else [])])}`"


class UnapprovedTools:
    """Tells callers of tools that await approval. Safe to share between threads."""

    def __init__(self, registry: Registry, how: HowToApprove = by_command) -> None:
        self._registry = registry
        self._how = how

    def check(self, name: str, reach: Reach) -> None:
        """Raise UnapprovedToolError if the tool of that name awaits approval and *reach* allows it."""
        if (tool := self._registry.held.get(name)) and reach.allows(tool.definition):
            raise self._error(name)

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
        return "\n".join(f"{self._error(tool.name)}." for tool in held if reach.allows(tool.definition))

    def servers(self, reach: Reach) -> list[str]:
        """The servers of which a tool in *reach* awaits approval, sorted."""
        held = (tool.definition for tool in self._registry.held.values())
        return sorted({definition.server for definition in held if definition.server and reach.allows(definition)})

    def of_server(self, server: str) -> str:
        """That all tools of *server* await approval."""
        return f"the tools of the server {server} wait for a person to approve them {self._how(server)}"

    def note_of_servers(self, reach: Reach) -> str:
        """Name the servers whose tools a search did not look at, since they await approval; "" for none."""
        servers = self.servers(reach)
        return (
            f"Not searched, since a person has to approve them {self._how('')}: tools of {', '.join(servers)}."
            if servers
            else ""
        )

    def _error(self, name: str) -> UnapprovedToolError:
        return UnapprovedToolError(name, self._how(name))
