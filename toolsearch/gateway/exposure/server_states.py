"""What the answer to a search says about servers: trouble that a call may meet, and tools that are not known yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from toolsearch.access.reach import Reach
from toolsearch.gateway.registry import Registry
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.naming import namespaced
from toolsearch.upstreams.interface import UpstreamState, UpstreamStatus

Statuses: TypeAlias = Callable[[], Mapping[str, UpstreamStatus]]

_ON_CALL = {
    UpstreamState.IDLE: "not started yet; a call starts it",
    UpstreamState.STARTING: "just starting; a call waits for it",
    UpstreamState.DOWN: "down; a call tries to reach it once more",
    UpstreamState.NEEDS_LOGIN: "waiting for a person to log in; calls fail until then",
}
_COMING = {UpstreamState.STARTING: "starting", UpstreamState.READY: "listing its tools"}
_UNSEARCHED = {
    **_COMING,
    UpstreamState.IDLE: "not started",
    UpstreamState.DEGRADED: "failing",
    UpstreamState.DOWN: "down",
    UpstreamState.NEEDS_LOGIN: "waiting for a person to log in",
}


class ServerStateNotes:
    """Writes the notes about servers. Safe to share between threads.

    Healthy servers, and servers out of the caller's reach, are not mentioned.
    """

    def __init__(self, statuses: Statuses, registry: Registry, rules: Reach) -> None:
        self._statuses = statuses
        self._registry = registry
        self._rules = rules

    def of_found(self, servers: Iterable[str]) -> str:
        """One line for each of *servers*, in their order, on which a call may fail or take longer."""
        states = self._states()
        lines = [
            f"The server {server} is {trouble}."
            for server in dict.fromkeys(servers)
            if (state := states.get(server)) and (trouble := _ON_CALL.get(state))
        ]
        return "\n".join(lines)

    def of_unsearched(self, reach: Reach, *, is_answered: bool) -> str:
        """Name the servers whose tools are not known yet, so that the search could not find them.

        If the search has found other tools (*is_answered*), only servers whose tools are about to come are named: for
        these it pays to repeat the search.
        """
        said = _COMING if is_answered else _UNSEARCHED
        servers = [
            f"{server} ({said[state]})"
            for server, state in sorted(self._states().items())
            if state in said and server not in self._registry.listings and self._may_see(server, reach)
        ]
        return f"Not searched, since their tools are not known yet: {', '.join(servers)}." if servers else ""

    def why_unsearchable(self, server: str, reach: Reach) -> str:
        """Why no tool of *server* can be searched, which has none in *reach* now; "" if there is no such server."""
        status = self._statuses().get(server)
        if status is None or not self._may_see(server, reach):
            return ""
        if server in self._registry.listings:
            return f"the server {server} lists no tool that you may use"
        reason = f": {status.last_error}" if status.last_error else ""
        return f"the tools of the server {server} are not known yet, since it is {_UNSEARCHED[status.state]}{reason}"

    def _states(self) -> dict[str, UpstreamState]:
        return {name: status.state for name, status in self._statuses().items()}

    def _may_see(self, server: str, reach: Reach) -> bool:
        """Whether *reach* and the rules let a tool of *server* through of which only the server is known."""
        probe = ToolDefinition(namespaced(server, "tool"), server=server)
        return self._rules.allows(probe) and reach.allows(probe)
