"""Hears of changes of single resources of a server of 2026, which tells them on a stream that it is asked for.

An older server is asked by a request for each resource, and tells them on its connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress

from mcp import MCPError
from mcp.client.subscriptions import ResourceUpdated, Subscription, SubscriptionLost, listen
from mcp.types import INTERNAL_ERROR

from toolsearch.chores import end
from toolsearch.upstreams.faults import delay_s
from toolsearch.upstreams.session import McpSession
from toolsearch.upstreams.talkback import outside_of_turns


class ResourceWatch:
    """One stream for all watched resources of one server. It is opened anew when others are watched.

    updated    called with the URI of a resource that has changed, or may have while no stream was open
    timeout_s  in which the server has to acknowledge the stream
    """

    def __init__(self, updated: Callable[[str], None], *, timeout_s: float, random: Callable[[], float]) -> None:
        self._updated = updated
        self._timeout_s = timeout_s
        self._random = random
        self._waiting: dict[str, asyncio.Future[None]] = {}  # watched resources; done once the server tells of them
        self._changed = asyncio.Event()  # set when others are watched, and replaced
        self._session: McpSession | None = None
        self._hearing: asyncio.Task[None] | None = None

    async def add(self, session: McpSession, uri: str) -> None:
        """Watch *uri* over *session*; returns once the server tells of it. Raises MCPError."""
        if self._session is not session:
            await self.aclose()
            self._session = session
        heard = self._waiting.get(uri)
        if heard is None or heard.done():
            heard = self._waiting[uri] = asyncio.get_running_loop().create_future()
            self._change()
        if self._hearing is None or self._hearing.done():
            self._hearing = asyncio.create_task(self._hear(session))
        try:
            async with asyncio.timeout(self._timeout_s):
                await asyncio.shield(heard)
        except TimeoutError as error:
            self.remove(uri)
            raise MCPError(INTERNAL_ERROR, "the server did not confirm in time that it tells of changes") from error

    def remove(self, uri: str) -> None:
        self._waiting.pop(uri, None)
        self._change()

    async def aclose(self) -> None:
        """Watch nothing any more. May be called twice."""
        if self._hearing is not None:
            await end(self._hearing)

    def _change(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _hear(self, session: McpSession) -> None:
        outside_of_turns()
        failures = 0
        while self._waiting and not session.ended.is_set():
            uris, changed = sorted(self._waiting), self._changed
            try:
                async with AsyncExitStack() as stack:
                    async with asyncio.timeout(self._timeout_s):
                        stream = await stack.enter_async_context(listen(session.sdk, resource_subscriptions=uris))
                    self._listening(uris)
                    failures = 0
                    await self._tell(stream, changed)
            except MCPError as error:
                self._refused(error)
                return
            except (SubscriptionLost, TimeoutError):
                failures += 1
                await asyncio.sleep(delay_s(failures, self._random))

    def _listening(self, uris: list[str]) -> None:
        for uri in uris:
            heard = self._waiting.get(uri)
            if heard is None:
                continue
            if heard.done():
                self._updated(uri)  # it was watched before, and may have changed in between
            else:
                heard.set_result(None)

    def _refused(self, error: MCPError) -> None:
        waiting, self._waiting = self._waiting, {}
        for heard in waiting.values():
            if not heard.done():
                heard.set_exception(error)
                heard.exception()  # marks it as retrieved: whoever waited may have gone

    async def _tell(self, stream: Subscription, changed: asyncio.Event) -> None:
        """Tell of each change until the stream ends, or others are watched."""
        hearing, other = asyncio.create_task(self._each(stream)), asyncio.create_task(changed.wait())
        try:
            await asyncio.wait({hearing, other}, return_when=asyncio.FIRST_COMPLETED)
            if hearing.done():
                hearing.result()
        finally:
            for task in (hearing, other):
                task.cancel()
                with suppress(asyncio.CancelledError, SubscriptionLost):
                    await task

    async def _each(self, stream: Subscription) -> None:
        async for event in stream:
            if isinstance(event, ResourceUpdated):
                self._updated(event.uri)
        raise SubscriptionLost
