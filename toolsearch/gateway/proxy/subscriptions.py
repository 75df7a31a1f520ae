"""Which sessions want to hear of changes of which resource. The server is subscribed to once, for all of them."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeAlias

from mcp import MCPError

from toolsearch.errors import ToolSearchError
from toolsearch.gateway.proxy.addresses import Address
from toolsearch.upstreams.interface import Upstream, UpstreamRequest
from toolsearch.wire.mcp.methods import SUBSCRIBE, UNSUBSCRIBE

logger = logging.getLogger(__name__)

Tell: TypeAlias = Callable[[], Awaitable[None]]


class Subscriptions:
    """The subscriptions of older clients at older servers. A server that was lost has forgotten them when it is back,
    so the next session that subscribes renews its subscription.
    """

    def __init__(self, upstreams: Mapping[str, Upstream]) -> None:
        self._upstreams = upstreams
        self._sessions: defaultdict[Address, dict[str, Tell]] = defaultdict(dict)
        self._asked: dict[Address, int] = {}  # the start of the server at which it was subscribed to
        self._changing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._chores: set[asyncio.Task[None]] = set()

    async def subscribe(self, address: Address, session_key: str, tell: Tell) -> None:
        """Have *tell* called after each change. Raises as `Upstream.request` does."""
        upstream = self._upstreams[address.server]
        async with self._changing[address.server]:
            if self._asked.get(address) != upstream.status().starts:
                await upstream.request(UpstreamRequest(SUBSCRIBE, {"uri": address.uri}))
                self._asked[address] = upstream.status().starts
            self._sessions[address][session_key] = tell

    async def unsubscribe(self, address: Address, session_key: str) -> None:
        """End a session's subscription, and with the last one the server's. Raises as `Upstream.request` does."""
        async with self._changing[address.server]:
            sessions = self._sessions.get(address, {})
            if sessions.pop(session_key, None) is None or sessions:
                return
            del self._sessions[address]
            del self._asked[address]
            await self._upstreams[address.server].request(UpstreamRequest(UNSUBSCRIBE, {"uri": address.uri}))

    def forget(self, session_key: str) -> None:
        """End all subscriptions of a session that is over; servers stop telling of what only that session wanted to
        hear.
        """
        for address in [address for address, sessions in self._sessions.items() if session_key in sessions]:
            self._do(self._given_up(address, session_key))

    def updated(self, server: str, uri: str) -> None:
        """Tell the sessions that this resource has changed, as its server says. Returns at once."""
        for tell in list(self._sessions.get(Address(server, uri), {}).values()):
            self._do(_told(tell))

    def drop(self, server: str) -> None:
        """Forget all subscriptions at a server that was removed."""
        for address in [address for address in {*self._sessions, *self._asked} if address.server == server]:
            self._sessions.pop(address, None)
            self._asked.pop(address, None)

    async def aclose(self) -> None:
        for chore in self._chores:
            chore.cancel()
        if self._chores:
            await asyncio.wait(self._chores)

    async def _given_up(self, address: Address, session_key: str) -> None:
        try:
            await self.unsubscribe(address, session_key)
        except (MCPError, ToolSearchError) as error:
            logger.debug("%s keeps a subscription that nobody wants: %s", address.server, error)

    def _do(self, chore: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(chore)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)


async def _told(tell: Tell) -> None:
    try:
        await tell()
    except Exception:
        logger.warning("a client could not be told that a resource has changed", exc_info=True)
