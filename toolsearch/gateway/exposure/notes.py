"""The notes below the answer to a search: trouble with servers, and tools that await approval."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from toolsearch.access.reach import Reach
from toolsearch.discovery.answers import AnsweredQuery
from toolsearch.discovery.search_tool import SearchArguments
from toolsearch.errors import BadQueryError, UnapprovedToolError
from toolsearch.gateway.registry import Registry
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.naming import namespaced
from toolsearch.upstreams.interface import UpstreamState, UpstreamStatus
from toolsearch_indexes.queries import Select, Words, name_candidates, read_form

Statuses: TypeAlias = Callable[[], Mapping[str, UpstreamStatus]]

_CALL_NOTES = {
    UpstreamState.IDLE: "not started yet; a call starts it",
    UpstreamState.STARTING: "just starting; a call waits for it",
    UpstreamState.DOWN: "down; a call tries to reach it once more",
    UpstreamState.NEEDS_LOGIN: "waiting for a person to log in; calls fail until then",
}

_ABOUT_TO_LIST = {UpstreamState.STARTING: "starting", UpstreamState.READY: "listing its tools"}

_UNSEARCHED = {
    **_ABOUT_TO_LIST,
    UpstreamState.IDLE: "not started",
    UpstreamState.DEGRADED: "failing",
    UpstreamState.DOWN: "down",
    UpstreamState.NEEDS_LOGIN: "waiting for a person to log in",
}


class AnswerNotes:
    """Writes the notes. Safe to share between threads.

    Healthy servers, and what is out of the caller's reach, are not mentioned.
    """

    def __init__(self, statuses: Statuses, registry: Registry) -> None:
        self._statuses = statuses
        self._registry = registry

    def require_searchable(self, server: str, reach: Reach) -> None:
        """Raise BadQueryError, with the reason, for a server in *reach* if none of its tools can be searched now.

        To be called for a server without tools in the caller's view. An unknown server passes.
        """
        if server in self._held_servers(reach):
            how = self._registry.approving(server)
            raise BadQueryError(f"the tools of the server {server} wait for a person to approve them {how}")
        if reason := self._why_unsearchable(server, reach):
            raise BadQueryError(reason)

    def of(self, asked: SearchArguments, answers: Sequence[AnsweredQuery], reach: Reach) -> str:
        """The notes on the *answers* to *asked* by a caller with *reach*, one a line; "" if there are none."""
        found = dict.fromkeys(tool.name for answer in answers for tool in answer.tools)
        tools = [self._registry.find(name) for name in found]
        notes = [
            asked.note,
            *(self._of_held(search.query, reach) for search in asked.searches),
            self._of_found(tool.definition.server for tool in tools if tool is not None),
            self._of_unsearched(reach, is_answered=bool(found)),
            "" if any(each.finding == "fits" for each in answers) else self._of_held_servers(reach),
        ]
        return "\n".join(filter(None, notes))

    def _of_found(self, servers: Iterable[str]) -> str:
        """One line for each of *servers*, in their order, whose calls may fail or take longer."""
        states = self._states()
        lines = [
            f"The server {server} is {trouble}."
            for server in dict.fromkeys(servers)
            if (state := states.get(server)) and (trouble := _CALL_NOTES.get(state))
        ]
        return "\n".join(lines)

    def _of_unsearched(self, reach: Reach, *, is_answered: bool) -> str:
        """Name the servers whose tools are not known yet, so that the search could not find them.

        If the search has found other tools (*is_answered*), only servers that are about to list their tools are named,
        because repeating the search may then help.
        """
        said = _ABOUT_TO_LIST if is_answered else _UNSEARCHED
        servers = [
            f"{server} ({said[state]})"
            for server, state in sorted(self._states().items())
            if state in said and server not in self._registry.listings and self._may_see(server, reach)
        ]
        return f"Not searched, since their tools are not known yet: {', '.join(servers)}." if servers else ""

    def _why_unsearchable(self, server: str, reach: Reach) -> str:
        """Why *server*, which has no tools in *reach* now, cannot be searched; "" if there is no such server."""
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
        """Whether *reach* and the rules could allow a tool of *server*, if only the server is known."""
        probe = ToolDefinition(namespaced(server, "tool"), server=server)
        return self._registry.rules.allows(probe) and reach.allows(probe)

    def _of_held(self, query: str, reach: Reach) -> str:
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
        held = [tool.name for tool in self._registry.held_within(reach) if tool.name.casefold() in meant]
        return "\n".join(f"{UnapprovedToolError(name, self._registry.approving(name))}." for name in held)

    def _held_servers(self, reach: Reach) -> list[str]:
        """The servers with tools in *reach* that await approval, sorted."""
        return sorted({tool.definition.server for tool in self._registry.held_within(reach)} - {""})

    def _of_held_servers(self, reach: Reach) -> str:
        """Name the servers whose tools a search skipped because they await approval; "" for none."""
        servers, how = self._held_servers(reach), self._registry.approving("")
        told = f"Not searched, since a person has to approve them {how}: tools of {', '.join(servers)}."
        return told if servers else ""
