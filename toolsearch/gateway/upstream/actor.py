"""Keeps one server connected, lists it, and sends it requests."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

import mcp.types as types
from mcp import MCPError
from mcp.client.session import IncomingMessage
from mcp.types import CONNECTION_CLOSED

from toolsearch.catalog.sources.json_values import is_object
from toolsearch.catalog.sources.mcp_config import Mode, StdioServer, redacted
from toolsearch.catalog.sources.mcp_failures import explain
from toolsearch.catalog.sources.mcp_http import EXPIRED, FAULT, MAY_HAVE_RUN
from toolsearch.catalog.sources.mcp_lifetime import SessionLifetime
from toolsearch.catalog.sources.mcp_session import McpSession, ParameterHeaders
from toolsearch.errors import ServerUnavailableError, ToolSearchError, ToolTimeoutError
from toolsearch.gateway.settings import UpstreamSettings
from toolsearch.gateway.upstream.listing import read_server
from toolsearch.gateway.upstream.protocol import UpstreamRequest, UpstreamSinks, UpstreamState, UpstreamStatus
from toolsearch.gateway.upstream.talkback import Talkback
from toolsearch.tools.definition import JsonObject

logger = logging.getLogger(__name__)


class UpstreamActor:
    """An `Upstream` over stdio or HTTP that connects at `start`, and again when it is used after it was lost."""

    def __init__(
        self, settings: UpstreamSettings, sinks: UpstreamSinks, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._settings = settings
        self._sinks = sinks
        self._clock = clock
        self._talkback = Talkback()
        self._mode: Mode = settings.server.mode
        self._parameter_headers: ParameterHeaders = {}
        self._session: McpSession | None = None
        self._opening: asyncio.Task[McpSession] | None = None
        self._lifetimes: set[SessionLifetime] = set()
        self._chores: set[asyncio.Task[None]] = set()
        self._state = UpstreamState.IDLE
        self._last_error = ""
        self._connect_s = 0.0
        self._starts = self._calls = self._failed = self._junk_lines = self._running = 0
        self._closed = False

    @property
    def name(self) -> str:
        return self._settings.name

    @property
    def state(self) -> UpstreamState:
        if self._state is UpstreamState.READY and self._live_session() is None:
            return UpstreamState.DOWN
        return self._state

    @property
    def is_modern(self) -> bool:
        session = self._live_session()
        return session is not None and not session.shook_hands

    def status(self) -> UpstreamStatus:
        session = self._live_session()
        return UpstreamStatus(
            self.name,
            self._settings.server.transport,
            self.state,
            last_error=self._last_error,
            connect_s=self._connect_s,
            starts=self._starts,
            calls=self._calls,
            failed=self._failed,
            running=self._running,
            junk_lines=self._junk_lines,
            protocol_version=session.sdk.protocol_version or "" if session else "",
        )

    def start(self) -> None:
        self._do(self._start())

    async def request(self, request: UpstreamRequest) -> dict[str, Any]:
        self._calls += 1
        self._running += 1
        try:
            return await self._send(request)
        except (ToolSearchError, MCPError):
            self._failed += 1
            raise
        finally:
            self._running -= 1

    async def relist(self) -> None:
        session = await self._connected()
        try:
            async with asyncio.timeout(self._settings.treated.connect_timeout_s):
                listing = await read_server(self._settings.server, session)
        except (MCPError, TimeoutError) as error:
            raise self._unavailable(
                f"its tools could not be listed: {explain(error, self._settings.server)}"
            ) from error
        await self._sinks.listing(listing)

    async def aclose(self) -> None:
        self._closed = True
        for lifetime in self._lifetimes:
            lifetime.end()
        for task in self._chores:
            task.cancel()
        waited = [*(lifetime.task for lifetime in self._lifetimes), *self._chores]
        if waited:
            await asyncio.wait(waited)

    async def _start(self) -> None:
        try:
            await self.relist()
        except ToolSearchError as error:
            logger.warning("%s", error)

    def _do(self, chore: Coroutine[Any, Any, None]) -> None:
        """Run *chore* beside everything else, and not beyond the actor's end."""
        task: asyncio.Task[None] = asyncio.create_task(chore)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    async def _send(self, request: UpstreamRequest) -> dict[str, Any]:
        session = await self._connected()
        timeout_s = request.timeout_s or self._settings.treated.call_timeout_s
        downstream = request.downstream
        try:
            async with self._talkback.turn(downstream, timeout_s=timeout_s):
                return await session.request(
                    request.method,
                    request.params,
                    on_progress=downstream.progress if downstream else None,
                    capabilities=downstream.capabilities if downstream else None,
                )
        except TimeoutError as error:
            raise ToolTimeoutError(
                f"MCP server {self.name!r} did not answer within {timeout_s:g} s; it may have run"
            ) from error
        except MCPError as error:
            failure = self._translated(error, session)
            if failure is None:
                raise
            raise failure from error

    async def _connected(self) -> McpSession:
        """The live session. All who wait for a new one share one attempt, and its failure."""
        if session := self._live_session():
            return session
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._open())
            self._opening.add_done_callback(lambda opening: opening.cancelled() or opening.exception())
        return await asyncio.shield(self._opening)

    async def _open(self) -> McpSession:
        if self._closed:
            raise self._unavailable("the gateway is shutting down")
        self._become(UpstreamState.STARTING)
        started_s = self._clock()
        timeout_s = self._settings.treated.connect_timeout_s
        lifetime = SessionLifetime(
            self._settings.server,
            self._mode,
            connect_timeout_s=timeout_s,
            parameter_headers=self._parameter_headers,
            peer=self._talkback.peer(self._heard),
        )
        self._lifetimes.add(lifetime)
        lifetime.task.add_done_callback(lambda _: self._lifetimes.discard(lifetime))
        try:
            async with asyncio.timeout(timeout_s):
                session = await lifetime.opened
        except TimeoutError as error:
            raise self._down(f"it did not answer within {timeout_s:g} s", lifetime.stderr.words()) from error
        except Exception as error:  # whatever the SDK, the network or the system made of it
            words = await lifetime.stderr.last_words()
            raise self._down(explain(error, self._settings.server), words) from error
        self._session = session
        self._last_error = ""
        self._become(UpstreamState.READY)
        self._starts += 1
        self._connect_s = self._clock() - started_s
        if session.shook_hands:
            self._mode = "legacy"  # asking again for the newer protocol can cost 10 s of a server's silence
        return session

    async def _heard(self, message: IncomingMessage) -> None:
        if isinstance(message, Exception):
            self._junk_lines += 1
        elif isinstance(message, types.ToolListChangedNotification):
            self._do(self._start())

    def _live_session(self) -> McpSession | None:
        return self._session if self._session is not None and not self._session.ended.is_set() else None

    def _translated(self, error: MCPError, session: McpSession) -> Exception | None:
        """What a failed request means; None if the server itself has refused it."""
        data: JsonObject = error.data if is_object(error.data) else {}
        if EXPIRED in data:
            session.ended.set()
        if FAULT in data:
            outcome = "may have run" if data.get(MAY_HAVE_RUN) else "did not run"
            return self._unavailable(f"{error.message}; the call {outcome}")
        if error.code == CONNECTION_CLOSED:
            if isinstance(self._settings.server, StdioServer):  # over HTTP it is only this answer's stream that broke
                session.ended.set()
            return self._unavailable("the connection was lost during the call, which may have run")
        return None

    def _down(self, reason: str, last_words: str) -> ServerUnavailableError:
        words = f"; its last words: {last_words}" if last_words else ""
        error = self._unavailable(f"{reason}{words}")
        self._last_error = str(error)
        self._become(UpstreamState.DOWN)
        return error

    def _become(self, state: UpstreamState) -> None:
        if state is not self._state:
            self._state = state
            self._sinks.state(self.name, state)

    def _unavailable(self, reason: str) -> ServerUnavailableError:
        return ServerUnavailableError(f"MCP server {self.name!r}: {redacted(reason, self._settings.server.secrets)}")
