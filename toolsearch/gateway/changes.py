"""Tells clients that their list has changed, each in its era's way, once, and only those whose list really has."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast

import mcp.types as types
from mcp.server.connection import Connection
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ServerEvent, ToolsListChanged

from toolsearch.gateway.callers import Context, caller_of
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.principals.protocol import Caller, Era

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Audience:
    """Those who see one list and hear of its changes together: a session of the older era, or a principal's streams.

    told  a digest of the list that they know of
    """

    caller: Caller
    tell: Callable[[], Awaitable[None]]
    told: str = ""
    comparing: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True, eq=False)
class _Streams:
    """The streams that a principal's clients of 2026 listen on; who has no other rules than it sees the same list."""

    audience: _Audience
    bus: InMemorySubscriptionBus
    handler: ListenHandler
    open: int = 0


class ListChanges:
    """Follows the registry. All methods belong to the gateway's event loop."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._sessions: dict[str, _Audience] = {}
        self._streams: dict[str, _Streams] = {}
        self._is_stale = False
        self._telling: asyncio.Task[None] | None = None
        gateway.registry.on_change(lambda _: self._registry_changed())

    async def follow(self, ctx: Context, caller: Caller) -> None:
        """Tell *caller* from now on, whose session has asked for its list, or is about to change it."""
        key = caller.session_key
        if caller.era is not Era.LEGACY or key is None:
            return
        if known := self._sessions.get(key):
            known.caller = caller
            return
        connection = cast("Connection", cast("Any", ctx.session)._connection)
        audience = _Audience(caller, connection.send_tool_list_changed)
        connection.exit_stack.callback(self._sessions.pop, key, None)
        self._sessions[key] = audience
        async with audience.comparing:
            audience.told = await self._digest(caller)

    async def session_changed(self, caller: Caller) -> None:
        """Tell *caller*, whose own doing may have changed its list."""
        if audience := self._sessions.get(caller.session_key or ""):
            await self._tell_if_changed(audience)

    async def listen(self, ctx: Context, params: types.SubscriptionsListenRequestParams) -> Any:
        """Serve a stream of ``subscriptions/listen`` until its client goes."""
        caller = caller_of(ctx)
        key = caller.principal.id
        streams = self._streams.get(key)
        if streams is None:
            streams = self._streams[key] = _new_streams(caller)
        streams.open += 1
        try:
            async with streams.audience.comparing:
                streams.audience.told = streams.audience.told or await self._digest(caller)
            return await streams.handler(ctx, params)
        finally:
            streams.open -= 1
            if not streams.open:
                self._streams.pop(key, None)

    async def publish(self, event: ServerEvent) -> None:
        """Put *event* on all streams of clients of 2026; those who have not asked for its kind do not get it."""
        for streams in list(self._streams.values()):
            await streams.bus.publish(event)

    def _registry_changed(self) -> None:
        self._is_stale = True
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell_all())

    async def _tell_all(self) -> None:
        """Changes that come while clients are being told are told of together, in one more round."""
        try:
            while self._is_stale:
                self._is_stale = False
                for audience in [*self._sessions.values(), *(each.audience for each in self._streams.values())]:
                    await self._tell_if_changed(audience)
        finally:
            self._telling = None

    async def _tell_if_changed(self, audience: _Audience) -> None:
        async with audience.comparing:
            try:
                now = await self._digest(audience.caller)
                if now != audience.told:
                    audience.told = now
                    await audience.tell()
            except Exception:  # one client that is gone must not keep the others from hearing
                logger.warning("a client could not be told that its list has changed", exc_info=True)

    async def _digest(self, caller: Caller) -> str:
        await self._gateway.settled()  # what is listed before that is no list that anybody has seen
        return await asyncio.to_thread(_digest_of, self._gateway, caller)


def _new_streams(caller: Caller) -> _Streams:
    bus = InMemorySubscriptionBus()
    return _Streams(_Audience(caller, lambda: bus.publish(ToolsListChanged())), bus, ListenHandler(bus))


def _digest_of(gateway: Gateway, caller: Caller) -> str:
    """Whatever the order: a list that is only in another one has not changed."""
    entries = sorted(json.dumps(entry, sort_keys=True) for entry in gateway.surface.entries(caller))
    return hashlib.sha256("\n".join(entries).encode()).hexdigest()
