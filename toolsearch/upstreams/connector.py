"""Opens sessions with one server, and remembers which protocol and transport worked last time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import httpx2

from toolsearch.upstreams.config import HttpServer, McpServer, Mode
from toolsearch.upstreams.faults import Fault, fault_of_connecting, silence
from toolsearch.upstreams.lifetime import SessionLifetime
from toolsearch.upstreams.session import McpSession, ParameterHeaders, SessionPeer
from toolsearch.upstreams.settings import OpenTransport

_TAKES_NO_POST = (404, 405)


class CannotConnectError(Exception):
    """Has the fault, and the last lines that a child process wrote to stderr."""

    def __init__(self, fault: Fault, last_words: str) -> None:
        super().__init__(fault.reason)
        self.fault = fault
        self.last_words = last_words


class Connector:
    """*peer* is asked for what a session is opened with, in the task that opens it."""

    def __init__(
        self,
        server: McpServer,
        peer: Callable[[], SessionPeer],
        *,
        timeout_s: float,
        auth: httpx2.Auth | None,
        open_transport: OpenTransport | None = None,
    ) -> None:
        self._server = server
        self._peer = peer
        self._timeout_s = timeout_s
        self._auth = auth
        self._open_transport = open_transport
        self._is_old = False
        self._parameter_headers: ParameterHeaders = {}
        self._lifetimes: set[SessionLifetime] = set()

    @property
    def is_old(self) -> bool:
        """Whether the server spoke the older protocol last time. Asking it for the newer one can take 10 s."""
        return self._is_old

    def remember_as_old(self) -> None:
        self._is_old = True

    async def open(self) -> McpSession:
        """Raises CannotConnectError."""
        try:
            session = await self._open(self._server)
        except CannotConnectError as error:
            self._is_old = False  # it may have been updated
            older = _older_way(self._server, error.fault)
            if older is None:
                raise
            try:
                session = await self._open(older)
            except CannotConnectError:
                raise error from None
            self._server = older
        self._is_old = session.shook_hands
        return session

    async def aclose(self) -> None:
        """End all connections, and the processes behind them."""
        for lifetime in self._lifetimes:
            lifetime.end()
        if self._lifetimes:
            await asyncio.wait([lifetime.task for lifetime in self._lifetimes])

    async def _open(self, server: McpServer) -> McpSession:
        mode: Mode = "legacy" if self._is_old else server.mode
        lifetime = SessionLifetime(
            server,
            mode,
            connect_timeout_s=self._timeout_s,
            parameter_headers=self._parameter_headers,
            peer=self._peer(),
            auth=self._auth,
            open_transport=self._open_transport,
        )
        self._lifetimes.add(lifetime)
        lifetime.task.add_done_callback(lambda _: self._lifetimes.discard(lifetime))
        try:
            async with asyncio.timeout(self._timeout_s):  # the lifetime itself still has to end its process
                return await lifetime.opened
        except TimeoutError as error:
            fault = replace(silence(self._timeout_s), may_have_run=False)
            raise CannotConnectError(fault, lifetime.stderr.words()) from error
        except Exception as error:  # whatever the SDK, the network or the system made of it
            raise CannotConnectError(fault_of_connecting(error, server), await lifetime.stderr.last_words()) from error


def _older_way(server: McpServer, fault: Fault) -> HttpServer | None:
    """*server* over the HTTP of before 2025, if it failed only because it takes no POST; else None."""
    if not isinstance(server, HttpServer) or server.kind_is_given or server.kind == "sse":
        return None
    return replace(server, kind="sse") if fault.status in _TAKES_NO_POST else None
