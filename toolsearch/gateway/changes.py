"""Tells clients when one of their lists has changed: once, as their protocol era demands, and only if the list really
differs.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, cast

import mcp.types as types
from mcp import MCPError
from mcp.server.connection import Connection
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from toolsearch.access.principals import Principal
from toolsearch.documents.json_values import as_texts
from toolsearch.errors import ToolSearchError
from toolsearch.gateway.caller import Caller, Context
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.proxy.task_streams import told_of
from toolsearch.gateway.proxy.tasks import Task
from toolsearch.wire.mcp.eras import Era
from toolsearch.wire.mcp.tasks import follows_tasks, tasks_missing

logger = logging.getLogger(__name__)
_numbers = count(1)  # of streams
_MOST_WATCHED = 1_000  # resources that one stream is told of


@dataclass(slots=True, eq=False)
class _Audience:
    """Clients that see the same lists and are told of changes together: one session of the older protocol, or all
    of `_Streams`.

    *told* holds a digest of each list that they were sent last, by kind.
    """

    caller: Caller
    tell: Callable[[str], Awaitable[None]]
    told: dict[str, str] = field(default_factory=dict[str, str])
    comparing: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True, eq=False)
class _Streams:
    """The open streams of 2026 clients that see the same lists: those of one principal, of the same connections with
    per-user servers, and of one session if they are bound to one.
    """

    audience: _Audience
    bus: InMemorySubscriptionBus
    handler: ListenHandler
    open: int = 0


def connection_of(ctx: Context) -> Connection:
    """The connection of the client's session; both last equally long. The SDK has no public name for it."""
    return cast("Connection", cast("Any", ctx.session)._connection)


class ListChanges:
    """Watches the lists of each client. All methods have to be called in the gateway's event loop."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._sessions: dict[str, _Audience] = {}
        self._streams: dict[tuple[Principal, tuple[str, ...], str], _Streams] = {}
        self._stale: dict[_Audience, None] = {}  # clients whose lists may have changed, in order
        self._telling: asyncio.Task[None] | None = None
        gateway.registry.on_change(self._lists_changed)
        # A small catalog is listed whole once every server has listed.
        gateway.first_listings.on_complete(self._lists_changed)
        gateway.on_session_change(self._session_changed)

    async def follow(self, ctx: Context, caller: Caller) -> None:
        """Tell *caller* of changes from now on. Called when its session asks for a list, or is about to change one."""
        key = caller.session_key
        if caller.era is not Era.LEGACY or key is None:
            return
        if known := self._sessions.get(key):
            known.caller = caller
            return
        connection = connection_of(ctx)
        audience = _Audience(caller, lambda kind: _SENDING[kind](connection))
        connection.exit_stack.callback(self._forget, key)
        self._sessions[key] = audience
        async with audience.comparing:
            audience.told = await self._digests(caller)

    async def session_changed(self, caller: Caller) -> None:
        """Tell *caller* if its own search has changed its list, and then the other clients of its session."""
        if audience := self._sessions.get(caller.session_key or ""):
            await self._tell_if_changed(audience)
        if caller.session:
            self._session_changed(caller.session)

    async def listen(self, ctx: Context, caller: Caller, params: types.SubscriptionsListenRequestParams) -> Any:
        """Serve a stream of ``subscriptions/listen`` until its client goes."""
        asked = params.notifications
        stream = f"stream {next(_numbers)}"
        tasks = self._tasks(caller, asked)
        key = (caller.grant.principal, self._gateway.user_reach.owners(caller.grant), caller.session)
        streams = self._streams.get(key)
        if streams is None:
            streams = self._streams[key] = _new_streams(caller)
        streams.open += 1
        try:
            async with streams.audience.comparing:
                streams.audience.told = streams.audience.told or await self._digests(caller)
            uris = (asked.resource_subscriptions or ())[:_MOST_WATCHED]
            heard = [uri for uri in uris if await self._hear(caller, uri, stream, streams)]
            honored = asked.model_copy(update={"resource_subscriptions": heard or None})
            async with told_of(tasks, ctx, lambda task: task in self._gateway.tasks.of(caller)) as told:
                return await streams.handler(told, params.model_copy(update={"notifications": honored}))
        finally:
            self._gateway.subscriptions.forget(stream)
            streams.open -= 1
            if not streams.open:
                self._streams.pop(key, None)

    async def _hear(self, caller: Caller, uri: str, stream: str, streams: _Streams) -> bool:
        """Whether *stream* is told of changes of the resource *uri*: not if the caller may not know of it."""
        try:
            address = self._gateway.content.locate(caller.again(), uri)
            await self._gateway.subscriptions.subscribe(
                caller.grant, address, stream, lambda: streams.bus.publish(ResourceUpdated(uri))
            )
        except (MCPError, ToolSearchError) as error:
            logger.debug("a stream is not told of a resource: %s", error)
            return False
        return True

    def _tasks(self, caller: Caller, asked: types.SubscriptionFilter) -> list[Task]:
        """The tasks that a stream is told of. Raises MCPError for a client that asks and knows no tasks."""
        ids = as_texts((asked.model_extra or {}).get("taskIds"))
        if ids and not follows_tasks(caller.era, caller.capabilities, {}):
            raise tasks_missing()
        known = {task.id: task for task in self._gateway.tasks.of(caller)}
        return [known[each] for each in dict.fromkeys(ids) if each in known]

    def _forget(self, key: str) -> None:
        if audience := self._sessions.pop(key, None):
            self._gateway.surface.forget(audience.caller)

    def _lists_changed(self) -> None:
        self._recheck(self._audiences())

    def _session_changed(self, session: str) -> None:
        self._recheck(audience for audience in self._audiences() if audience.caller.session == session)

    def _audiences(self) -> list[_Audience]:
        return [*self._sessions.values(), *(each.audience for each in self._streams.values())]

    def _recheck(self, audiences: Iterable[_Audience]) -> None:
        self._stale |= dict.fromkeys(audiences)
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell_all())

    async def _tell_all(self) -> None:
        """Tell all clients with stale lists. Changes that arrive meanwhile are told together, in one more round."""
        try:
            while self._stale:
                stale, self._stale = self._stale, {}
                for audience in stale:
                    await self._tell_if_changed(audience)
        finally:
            self._telling = None

    async def _tell_if_changed(self, audience: _Audience) -> None:
        async with audience.comparing:
            try:
                now = await self._digests(audience.caller)
                changed = [kind for kind, digest in now.items() if digest != audience.told.get(kind)]
                audience.told = now
                for kind in changed:
                    await audience.tell(kind)
            except Exception:  # one client that is gone must not keep the others from being told
                logger.warning("a client could not be told that its list has changed", exc_info=True)

    async def _digests(self, caller: Caller) -> dict[str, str]:
        await self._gateway.lists_settled()  # no client has seen a list before that
        caller, content = caller.again(), self._gateway.content
        return {
            "tools": await asyncio.to_thread(lambda: _digest(self._gateway.surface.entries(caller))),
            "prompts": _digest(content.prompts(caller)),
            "resources": _digest([*content.resources(caller), *content.resource_templates(caller)]),
        }


_SENDING: Mapping[str, Callable[[Connection], Awaitable[None]]] = {
    "tools": lambda connection: connection.send_tool_list_changed(),
    "prompts": lambda connection: connection.send_prompt_list_changed(),
    "resources": lambda connection: connection.send_resource_list_changed(),
}
_EVENTS: Mapping[str, ServerEvent] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}


def _new_streams(caller: Caller) -> _Streams:
    bus = InMemorySubscriptionBus()
    return _Streams(_Audience(caller, lambda kind: bus.publish(_EVENTS[kind])), bus, ListenHandler(bus))


def _digest(entries: Iterable[Mapping[str, Any]]) -> str:
    """A digest of *entries* that does not depend on their order: a list in another order has not changed."""
    lines = sorted(json.dumps(entry, sort_keys=True) for entry in entries)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
