"""Keeps one MCP server connected, anew on use after it died, and says in our own errors what went wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias

from mcp import MCPError
from mcp.types import REQUEST_TIMEOUT
from pydantic import ValidationError

from toolsearch.documents.json_values import is_list, is_object
from toolsearch.errors import ServerUnavailableError, ToolExecutionError, ToolTimeoutError
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.output import ToolOutput
from toolsearch.upstreams.config import McpServer, Mode, StdioServer
from toolsearch.upstreams.failures import explain, is_lost_connection
from toolsearch.upstreams.http import EXPIRED, FAULT, MAY_HAVE_RUN
from toolsearch.upstreams.lifetime import SessionLifetime
from toolsearch.upstreams.pages import read_pages
from toolsearch.upstreams.secrets import redacted
from toolsearch.upstreams.session import McpSession, ParameterHeaders

State: TypeAlias = Literal["ready", "failed", "down"]

_RECONNECT_DELAYS_S = (0.1, 0.5)  # between the tries of one reconnection; a third failure is reported


class _SilentServerError(ServerUnavailableError):
    """The server takes its time; another try would cost as much again."""


class McpConnection:
    """One server. All methods belong to the event loop that made the first call; *sleep* waits between tries."""

    def __init__(
        self,
        server: McpServer,
        *,
        connect_timeout_s: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.server = server
        self._connect_timeout_s = connect_timeout_s
        self._sleep = sleep
        self._mode: Mode = server.mode
        self._session: McpSession | None = None
        self._opening: asyncio.Task[McpSession] | None = None
        self._parameter_headers: ParameterHeaders = {}
        self._lifetimes: set[SessionLifetime] = set()
        self._was_ready = False
        self._closed = False

    @property
    def state(self) -> State:
        """``failed`` if it never worked, ``down`` if it did; the next call starts a server that is down again."""
        if self._live_session() is not None:
            return "ready"
        return "down" if self._was_ready else "failed"

    async def list_tools(self) -> tuple[list[Any], str]:
        """Return the raw entries of all pages, and why the listing was cut short, or "".

        Tries to connect once. Raises ServerUnavailableError if that, or the listing, takes over *connect_timeout_s*.
        """
        ends_at = asyncio.get_running_loop().time() + self._connect_timeout_s
        session = await self._connected(delays_s=())
        try:
            async with asyncio.timeout_at(ends_at):
                return await read_pages(session.list_page)
        except TimeoutError as error:
            self._end_all()
            raise self._unavailable(self._silence()) from error
        except (MCPError, ValidationError) as error:
            self._end_all()
            raise self._unavailable(f"its tools could not be listed: {explain(error, self.server)}") from error

    async def call(self, tool: str, arguments: Mapping[str, Any], timeout_s: float) -> ToolOutput:
        """Run *tool*, connecting first where need be. A call that may have run is never sent twice.

        Raises ServerUnavailableError, ToolTimeoutError, or ToolExecutionError for what the protocol calls an error.
        """
        session = await self._connected(delays_s=_RECONNECT_DELAYS_S)
        try:
            raw = await session.call(tool, arguments, timeout_s)
        except MCPError as error:
            raise self._translated(error, tool, timeout_s, session) from error
        return _read_output(raw, self.server.name, tool)

    async def aclose(self) -> None:
        """End the connection and the process behind it; later calls raise ServerUnavailableError."""
        self._closed = True
        self._end_all()
        if self._lifetimes:
            await asyncio.wait([lifetime.task for lifetime in self._lifetimes])

    def _end_all(self) -> None:
        for lifetime in self._lifetimes:
            lifetime.end()

    def _live_session(self) -> McpSession | None:
        return self._session if self._session is not None and not self._session.ended.is_set() else None

    async def _connected(self, *, delays_s: tuple[float, ...]) -> McpSession:
        """The live session. All who wait for a new one share one attempt, and its failure."""
        if session := self._live_session():
            return session
        if self._opening is None or self._opening.done():
            self._opening = asyncio.create_task(self._open(delays_s))
            self._opening.add_done_callback(_note_outcome)
        return await asyncio.shield(self._opening)

    async def _open(self, delays_s: tuple[float, ...]) -> McpSession:
        """Try until it works or *delays_s* are used up; silence is not tried again, since each try costs its time."""
        for delay_s in delays_s:
            try:
                return await self._open_once()
            except _SilentServerError:
                raise
            except ServerUnavailableError:
                await self._sleep(delay_s)
        return await self._open_once()

    async def _open_once(self) -> McpSession:
        if self._closed:
            raise self._unavailable("the connection has been closed")
        lifetime = SessionLifetime(
            self.server,
            self._mode,
            connect_timeout_s=self._connect_timeout_s,
            parameter_headers=self._parameter_headers,
        )
        self._lifetimes.add(lifetime)
        lifetime.task.add_done_callback(lambda _: self._lifetimes.discard(lifetime))
        try:
            async with asyncio.timeout(self._connect_timeout_s):  # the lifetime itself still has to end its process
                self._session = await lifetime.opened
        except TimeoutError as error:
            raise _SilentServerError(self._describe(self._silence(), lifetime.stderr.words())) from error
        except Exception as error:  # whatever the SDK, the network or the system made of it
            raise self._unavailable(explain(error, self.server), await lifetime.stderr.last_words()) from error
        self._was_ready = True
        if self._session.shook_hands:
            self._mode = "legacy"  # asking again for the newer protocol can cost 10 s of a server's silence
        return self._session

    def _translated(self, error: MCPError, tool: str, timeout_s: float, session: McpSession) -> Exception:
        data: JsonObject = error.data if is_object(error.data) else {}
        if EXPIRED in data:
            session.ended.set()
        if FAULT in data:
            outcome = "may have run" if data.get(MAY_HAVE_RUN) else "did not run"
            return self._unavailable(f"{error.message}; the call of {tool!r} {outcome}")
        if is_lost_connection(error):
            if isinstance(self.server, StdioServer):  # over HTTP it is only this answer's stream that broke
                session.ended.set()  # the SDK tells the calls a moment before it ends the session
            return self._unavailable(
                f"the connection was lost during the call of {tool!r}, which may have run; the next call reconnects"
            )
        if error.code == REQUEST_TIMEOUT:
            return ToolTimeoutError(
                f"{tool!r} of MCP server {self.server.name!r} did not answer within {timeout_s:g} s"
            )
        text = redacted(error.message, self.server.secrets)
        return ToolExecutionError(f"MCP server {self.server.name!r} refused the call of {tool!r}: {text}")

    def _silence(self) -> str:
        return f"it did not answer within {self._connect_timeout_s:g} s"

    def _unavailable(self, reason: str, last_words: str = "") -> ServerUnavailableError:
        return ServerUnavailableError(self._describe(reason, last_words))

    def _describe(self, reason: str, last_words: str = "") -> str:
        words = f"; its last words: {last_words}" if last_words else ""
        return f"MCP server {self.server.name!r}: " + redacted(f"{reason}{words}", self.server.secrets)


def _read_output(raw: Mapping[str, Any], server: str, tool: str) -> ToolOutput:
    if raw.get("resultType") == "input_required":
        raise ToolExecutionError(f"{tool!r} of MCP server {server!r} wants to ask the user, which is not possible here")
    content = raw.get("content")
    return ToolOutput(
        content=tuple(filter(is_object, content if is_list(content) else [])),
        structured=raw.get("structuredContent"),
        is_error=raw.get("isError") is True,
    )


def _note_outcome(opening: asyncio.Task[McpSession]) -> None:
    """Look at the exception, lest asyncio complain of it when all who waited have been cancelled."""
    if not opening.cancelled():
        opening.exception()
