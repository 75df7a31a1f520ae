"""Which entries of per-user servers each principal may see: a part of its reach, applied before any search."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain
from operator import is_
from typing import TypeAlias, TypeVar

from toolsearch.access.principals import Grant, Principal
from toolsearch.access.reach import Reach
from toolsearch.errors import LoginRequiredError, ServerUnavailableError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.registry import Registry
from toolsearch.gateway.trust.verdicts import kind_of, list_of
from toolsearch.tools.definition import Tool, legal_name
from toolsearch.tools.naming import SEPARATOR
from toolsearch.upstreams.interface import UpstreamState
from toolsearch.upstreams.per_user import PerUserUpstream, UserConnection
from toolsearch.upstreams.user_lists import Key
from toolsearch.wire.mcp.lists import PROMPTS, ListOf

_K = TypeVar("_K")
_V = TypeVar("_V")
_Only: TypeAlias = tuple[tuple[str, frozenset[str]], ...]
_MOST = 10_000  # of everything that is remembered here; then it is found anew


class UserReach:
    """The `UserEntries` of the per-user *servers*, which may come and go."""

    def __init__(self, registry: Registry, servers: Mapping[str, PerUserUpstream], reached_at: str = "") -> None:
        """*reached_at* is the address by which everybody reaches the gateway; "": it is the one by which each does."""
        self.reached_at = reached_at
        self._registry = registry
        self._servers = servers
        self._principals: dict[tuple[Principal, _Only], Principal] = {}
        self._names: dict[tuple[str, frozenset[Key]], tuple[tuple[object, ...], frozenset[str]]] = {}

    def principal(self, grant: Grant) -> Principal:
        only = tuple((name, self._names_of(name, each.visible(grant))) for name, each in sorted(self._servers.items()))
        key = grant.principal, only
        if (known := self._principals.get(key)) is None:
            reach = grant.principal.reach & Reach(only=only)
            known = _remember(self._principals, key, replace(grant.principal, reach=reach))
        return known

    def owners(self, grant: Grant) -> tuple[str, ...]:
        """Whose the connections of *grant* are, in the order of the servers' names."""
        return tuple(each.owner_of(grant) for _, each in sorted(self._servers.items()))

    def claims_key(self, grant: Grant) -> str:
        """Tells apart tokens of one user with which other connections are used, because their claims differ; "" if the
        claims change nothing.
        """
        owners = {each.owner_of(grant) for each in list(self._servers.values())} - {json.dumps([grant.account])}
        return hashlib.sha256(json.dumps(sorted(owners)).encode()).hexdigest() if owners else ""

    def lists(self, grant: Grant, server: str, which: ListOf, name: str) -> bool:
        found = self._servers.get(server)
        return found is None or Key.of(which, name) in found.visible(grant)

    async def listed(self, caller: Caller, patience_s: float) -> None:
        """Connect *caller* to the servers for which it has a login or a token, and wait for a while until they have
        listed what it may use.
        """
        connections = [each.of(caller.grant) for each in list(self._servers.values())]
        await asyncio.gather(*(each.look() for each in connections))
        await asyncio.gather(*(each.listed(patience_s) for each in connections))

    async def invitations(self, caller: Caller) -> list[str]:
        """For each server of which *caller* sees nothing before it logs in there, how it logs in."""
        unseen = self._unseen(caller, lambda each: each.wants_login)
        return [await each.login.invitation(self._reached_by(caller)) for each in unseen]

    async def unseen_of(self, caller: Caller, name: str) -> ServerUnavailableError | None:
        """The error for a call of the unknown tool *name* if it could be one of a server that *caller* sees nothing of:
        before it logs in there, or before the server lists it something.
        """
        for each in self._unseen(caller, lambda each: name.startswith(f"{legal_name(each.name)}{SEPARATOR}")):
            if each.wants_login:
                return LoginRequiredError(await each.login.invitation(self._reached_by(caller)))
            if each.state is UpstreamState.NEEDS_LOGIN:
                return each.login.not_accepted()
            if each.login.is_usable:
                reason = each.status().last_error or f"MCP server {each.name!r} has not listed its tools yet"
                return ServerUnavailableError(f"{reason}; the request did not run")
        return None

    def _unseen(self, caller: Caller, is_meant: Callable[[UserConnection], bool]) -> list[UserConnection]:
        """The connections of *caller* with servers of which it sees nothing, although rules let it."""
        grant = caller.grant
        connections = [each.of(grant) for each in list(self._servers.values()) if not each.visible(grant)]
        meant = filter(is_meant, connections)
        return [each for each in meant if (self._registry.rules & grant.principal.reach).allows_server(each.name)]

    def _reached_by(self, caller: Caller) -> str:
        return self.reached_at or caller.reached_at

    def _names_of(self, server: str, visible: frozenset[Key]) -> frozenset[str]:
        """The names that the *visible* entries have here, and the server's own, by which what it does not list is read.

        Nothing else of the server is in reach, so that what comes later is not before it is known to be visible.
        """
        registry = self._registry
        judged, contents, held = registry.servers.get(server), registry.contents.get(server), registry.held
        key = server, visible
        known = self._names.get(key)
        if known is not None and all(map(is_, known[0], (judged, contents, held))):
            return known[1]
        entries = chain(
            judged.entries if judged else (),
            contents.entries.values() if contents else (),
            (tool for tool in held.values() if tool.definition.server == server),
        )
        names = {entry.name for entry in entries if _key_of(entry) in visible}
        prompts = contents.named_prompts.items() if contents else ()  # some are no entries of the catalog
        names |= {given for given, raw in prompts if Key.of(PROMPTS, PROMPTS.name_of(raw) or "") in visible}
        found = frozenset({*names, legal_name(server)} if visible else ())
        _remember(self._names, key, ((judged, contents, held), found))
        return found


def _key_of(entry: Tool) -> Key | None:
    return Key.of(list_of(kind_of(entry)), entry.origin.remote_name) if entry.origin is not None else None


def _remember(kept: dict[_K, _V], key: _K, value: _V) -> _V:
    if len(kept) >= _MOST:
        kept.clear()
    kept[key] = value
    return value
