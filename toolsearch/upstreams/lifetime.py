"""One MCP session in a task of its own, since the SDK's scopes must be left by the task that entered them."""

from __future__ import annotations

import asyncio
import math

import anyio
import httpx2

from toolsearch.upstreams.config import McpServer, Mode
from toolsearch.upstreams.session import McpSession, ParameterHeaders, SessionPeer, open_session
from toolsearch.upstreams.settings import OpenTransport
from toolsearch.upstreams.stderr import StderrTail

_ENDING_S = 5.0  # for a polite end over HTTP; a child process has its own, shorter terms


class SessionLifetime:
    """Opens a session at once, and keeps it until the server or `end` ends it.

    opened  the session after its handshake, or the exception that prevented it; cancelling this gives up
    stderr  the last lines that a child process wrote
    """

    def __init__(
        self,
        server: McpServer,
        mode: Mode,
        *,
        connect_timeout_s: float,
        parameter_headers: ParameterHeaders,
        peer: SessionPeer | None = None,
        auth: httpx2.Auth | None = None,
        open_transport: OpenTransport | None = None,
    ) -> None:
        self.opened: asyncio.Future[McpSession] = asyncio.get_running_loop().create_future()
        self.stderr = StderrTail()
        self._server = server
        self._mode: Mode = mode
        self._parameter_headers = parameter_headers
        self._peer = peer
        self._auth = auth
        self._open_transport = open_transport
        self._scope = anyio.CancelScope(deadline=anyio.current_time() + connect_timeout_s)
        self.task = asyncio.create_task(self._live())

    def end(self) -> None:
        """Begin to end; *task* is done when the connection is closed and its process gone."""
        if self.opened.done() and not self.opened.cancelled() and self.opened.exception() is None:
            self.opened.result().ended.set()
        else:
            self._scope.cancel()

    async def _live(self) -> None:
        failure: Exception = TimeoutError()
        with self._scope:
            try:
                with self.stderr.pipe() as stream:
                    async with open_session(
                        self._server,
                        mode=self._mode,
                        stderr=stream,
                        parameter_headers=self._parameter_headers,
                        peer=self._peer,
                        auth=self._auth,
                        open_transport=self._open_transport,
                    ) as session:
                        if self.opened.cancelled():
                            return  # the caller gave up before the handshake was done
                        self._scope.deadline = math.inf
                        self.opened.set_result(session)
                        await session.ended.wait()
                        self._scope.deadline = anyio.current_time() + _ENDING_S
            except Exception as error:  # noqa: BLE001  whatever a connection dies of ends here, and is told in *opened*
                failure = error
        if not self.opened.done():
            self.opened.set_exception(failure)
