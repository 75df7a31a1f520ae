"""What models are told of servers: which there are, and which of them cannot be searched or called as usual."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from toolsearch.discovery.search_tool import LIST_SERVERS
from toolsearch.tools.summaries import one_line
from toolsearch.upstreams.interface import ServerHealth, UpstreamState

MOST_WITH_PURPOSE: Final = 40
MOST_WITH_PURPOSE_UNASKED: Final = 12
MOST_UNASKED: Final = 100
MOST_NAMES: Final = (400, 100, 20)  # names, tried in turn until an answer fits
_MOST_UNSEARCHED = 20
_NAME_WIDTH = 64  # characters of a server's name
_HINT = f" (the query {LIST_SERVERS}TEXT lists those with TEXT in their name)"

_STATES: Final = {
    UpstreamState.IDLE: "not started",
    UpstreamState.STARTING: "starting",
    UpstreamState.READY: "listing its tools",
    UpstreamState.DEGRADED: "failing",
    UpstreamState.DOWN: "not reachable",
    UpstreamState.NEEDS_LOGIN: "waiting for a person to sign in",
}
"""The states of a server whose tools are not known yet."""

_ABOUT_TO_LIST = (UpstreamState.STARTING, UpstreamState.READY)

_MARKED = (UpstreamState.STARTING, UpstreamState.DOWN, UpstreamState.NEEDS_LOGIN)  # even if the tools are known

_CALLS: Final = {
    UpstreamState.IDLE: "not started yet; a call starts it",
    UpstreamState.STARTING: "just starting; a call waits for it",
    UpstreamState.DOWN: "not reachable; a call tries to reach it once more",
    UpstreamState.NEEDS_LOGIN: "waiting for a person to sign in; calls fail until then",
}
"""What a call of a found tool meets."""


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers in a caller's reach. Healthy ones are listed, and mentioned nowhere else.

    tools    the number of tools by server, in the order of the servers; those of "" are of no server. Servers that
             have only skills are among them
    health   the health by server, as far as it is known
    """

    tools: Mapping[str, int]
    health: Mapping[str, ServerHealth]
    purpose_of: Callable[[str], str]
    skills: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def labels(self) -> list[str]:
        """The servers with tools, in their order, each with its state unless it works as usual."""
        return [self._label(server, self._state(server)) for server in self.tools if server]

    def every(self, part: str = "") -> list[str]:
        """All servers, in forms of decreasing length: with the purposes of the first ones, and with the names alone. If
        some have *part* in their names, only these.

        If there are very many servers, the last are only counted, with a hint how to list them.
        """
        meant = {name: count for name, count in self.tools.items() if name and part.casefold() in name.casefold()}
        if part and meant:
            return replace(self, tools=meant).every()
        servers, labels, rest = [server for server in self.tools if server], self.labels, self._serverless()
        if not servers:
            return ["No tool here has a named server."]
        told = map(self._line, servers[:MOST_WITH_PURPOSE])
        others = named(labels[MOST_WITH_PURPOSE:], MOST_NAMES[0])
        full = ["Tools come from these servers:", *told, *([f"And from these: {others}"] if others else []), rest]
        names = (f"Tools come from these servers: {named(labels, most)}" for most in MOST_NAMES)
        return [_lines(*full), *(_lines(each, rest) for each in names)]

    def some(self) -> list[str]:
        """The servers, for a model that has not asked for them, in a long form and a short one: few with their
        purposes, of many the names, so that it sees what there is not. None if there are none.
        """
        servers = [server for server in self.tools if server]
        if not servers:
            return []
        if len(servers) > MOST_WITH_PURPOSE_UNASKED:
            told = [f"Tools come from these servers: {named(self.labels, MOST_UNASKED)}"]
        else:
            told = ["Tools come from these servers:", *map(self._line, servers)]
        short = f"The query {LIST_SERVERS} lists the {len(servers)} servers."
        return [_lines(*told, self._serverless()), short]

    def trouble(self, found: Iterable[str], *, is_answered: bool) -> str:
        """One line for each server of *found* whose calls may fail or take longer, and one for the servers that could
        not be searched, since their tools are not known yet.

        If the search has found other tools (*is_answered*), only servers that are about to list their tools are named,
        because repeating the search may then help.
        """
        unsearched = [
            self._label(server, _STATES[each.state])
            for server, each in self.health.items()
            if not each.is_listed and (each.state in _ABOUT_TO_LIST or not is_answered)
        ]
        names = named(unsearched, _MOST_UNSEARCHED, hint="")
        return _lines(
            *(
                f"The server {server_label(server)} is {_CALLS[each.state]}."
                for server in dict.fromkeys(found)
                if (each := self.health.get(server)) and each.state in _CALLS
            ),
            f"Not searched, since their tools are not known yet: {names}." if names else "",
        )

    def _line(self, server: str) -> str:
        purpose = self.purpose_of(server)
        tools, skills = self.tools[server], self.skills.get(server, 0)
        has = [f"{tools:,}"] if tools or not skills else []
        has += [f"{skills:,} skill{'s' if skills > 1 else ''}"] if skills else []
        label = self._label(server, *has, self._state(server))
        return f"- {label}{f': {purpose}' if purpose else ''}"

    def _state(self, server: str) -> str:
        each = self.health.get(server)
        return _STATES[each.state] if each is not None and each.state in _MARKED else ""

    @staticmethod
    def _label(server: str, *facts: str) -> str:
        known = ", ".join(filter(None, facts))
        return f"{server_label(server)}{f' ({known})' if known else ''}"

    def _serverless(self) -> str:
        count = self.tools.get("", 0)
        if not count:
            return ""
        return f"{count:,} tools have no server." if count > 1 else "One tool has no server."


def server_label(server: str) -> str:
    """The name of *server* as models read it, on one line and of limited length."""
    return one_line(server, _NAME_WIDTH)


def why_unsearchable(server: str, health: ServerHealth) -> str:
    """Why *server*, whose tools are not known yet, cannot be searched."""
    return f"the tools of the server {server_label(server)} are not known yet, since it is {_STATES[health.state]}"


def named(labels: Collection[str], most: int, *, hint: str = _HINT) -> str:
    """The first *most* of *labels* in their order, the number of the others, and how to list them; "" for none."""
    shown = ", ".join(list(labels)[:most])
    more = len(labels) - most
    return f"{shown} and {more} more{hint}" if more > 0 else shown


def _lines(*lines: str) -> str:
    return "\n".join(filter(None, lines))
