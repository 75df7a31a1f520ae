"""What an answer says of servers: what a call of a found tool will meet, and whose tools could not be searched yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from toolsearch.access.reach import Reach
from toolsearch.gateway.registry import Registry
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.naming import namespaced
from toolsearch.upstreams.protocol import UpstreamState

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
    """Safe to share between threads. Nothing is said of a server that is well, or out of the caller's reach."""

    def __init__(self, states: Callable[[], Mapping[str, UpstreamState]], registry: Registry, rules: Reach) -> None:
        self._states = states
        self._registry = registry
        self._rules = rules

    def of_found(self, servers: Iterable[str]) -> str:
        """A line for each of *servers*, once, in their order, that a call may have trouble with."""
        states = self._states()
        lines = [
            f"The server {server} is {trouble}."
            for server in dict.fromkeys(servers)
            if (state := states.get(server)) and (trouble := _ON_CALL.get(state))
        ]
        return "\n".join(lines)

    def of_unsearched(self, reach: Reach, *, is_answered: bool) -> str:
        """Which servers have not told their tools yet, so that nothing of theirs could be found. Where the search is
        answered by others, only those whose tools may be found if it is repeated.
        """
        said = _COMING if is_answered else _UNSEARCHED
        servers = [
            f"{server} ({said[state]})"
            for server, state in sorted(self._states().items())
            if state in said and server not in self._registry.listings and self._may_see(server, reach)
        ]
        return f"Not searched, since their tools are not known yet: {', '.join(servers)}." if servers else ""

    def _may_see(self, server: str, reach: Reach) -> bool:
        """Whether a tool of *server* of which nothing else is known would be shown."""
        probe = ToolDefinition(namespaced(server, "tool"), server=server)
        return self._rules.allows(probe) and reach.allows(probe)
