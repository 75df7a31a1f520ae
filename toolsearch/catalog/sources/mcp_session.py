"""Opens one MCP session over stdio or HTTP, and hands results on as they came, however badly formed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TextIO

import httpx2
from mcp import ClientSession, MCPError, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp.types import UNSUPPORTED_PROTOCOL_VERSION
from pydantic import ValidationError

from toolsearch.catalog.sources.mcp_config import McpServer, Mode, StdioServer
from toolsearch.catalog.sources.mcp_http import FaultTolerantClient

_RAW = "toolsearch/raw"
_CLIENT = types.Implementation(name="toolsearch", version="0.1.0")
_HTTP_TIMEOUT = httpx2.Timeout(30.0, read=None)  # how long an answer may take is set per call

for _name in (
    "mcp",
    "client",
):  # the SDK logs every line of junk from a server; where nobody listens, not to the terminal
    logging.getLogger(_name).addHandler(logging.NullHandler())


class McpSession:
    """A session that is past its handshake. *ended* is set once the server has closed the connection."""

    def __init__(self, session: ClientSession, ended: asyncio.Event) -> None:
        self._session = session
        self.ended = ended

    @property
    def shook_hands(self) -> bool:
        """Whether the server speaks a protocol of before 2026, so that asking for the newer one is in vain."""
        return self._session.initialize_result is not None

    async def list_page(self, cursor: str | None) -> dict[str, Any]:
        """One page of ``tools/list`` as it was sent. Raises MCPError."""
        params = types.PaginatedRequestParams(cursor=cursor)
        result = await self._session.send_request(types.ListToolsRequest(params=params), types.ListToolsResult)
        return _raw_of(result)

    async def call(self, name: str, arguments: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """The result of ``tools/call`` as it was sent. Raises MCPError; a cancellation is passed on to the server."""
        params = types.CallToolRequestParams(name=name, arguments=dict(arguments))
        result = await self._session.send_request(
            types.CallToolRequest(params=params), types.CallToolResult, request_read_timeout_seconds=timeout_s
        )
        return _raw_of(result)


class _RawResultsDispatcher(JSONRPCDispatcher[TransportContext]):
    """Slips results past the session's validation, which would refuse a whole listing for one malformed tool.

    The session gets an empty result that fits every version of the protocol, with the received one in its ``_meta``.
    """

    ended: asyncio.Event

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **more: Any
    ) -> dict[str, Any]:
        raw = await super().send_raw_request(method, params, opts, **more)
        if method == "tools/list":
            return {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "_meta": {_RAW: raw}}
        if method == "tools/call":
            return {"content": [], "resultType": "complete", "_meta": {_RAW: raw}}
        return raw

    async def run(self, *handlers: Any, **options: Any) -> None:
        try:
            await super().run(*handlers, **options)
        finally:
            self.ended.set()  # nothing else tells that the peer is gone


def _raw_of(result: types.Result) -> dict[str, Any]:
    raw: dict[str, Any] = (result.meta or {})[_RAW]
    return raw


@asynccontextmanager
async def open_session(server: McpServer, *, mode: Mode, stderr: TextIO) -> AsyncGenerator[McpSession]:
    """Connect and shake hands. Must be left in the task that entered it; waits for a silent server without end."""
    async with AsyncExitStack() as stack:
        if isinstance(server, StdioServer):
            parameters = StdioServerParameters(
                command=server.command, args=list(server.args), env=dict(server.env), cwd=server.cwd,
                encoding_error_handler="replace",
            )  # fmt: skip
            reading, writing = await stack.enter_async_context(stdio_client(parameters, errlog=stderr))
        else:
            client = FaultTolerantClient(headers=dict(server.headers), timeout=_HTTP_TIMEOUT)
            await stack.enter_async_context(client)
            reading, writing = await stack.enter_async_context(streamable_http_client(server.url, http_client=client))
        dispatcher = _RawResultsDispatcher(reading, writing)
        dispatcher.ended = asyncio.Event()
        session = await stack.enter_async_context(ClientSession(dispatcher=dispatcher, client_info=_CLIENT))
        await _shake_hands(session, mode)
        yield McpSession(session, dispatcher.ended)


async def _shake_hands(session: ClientSession, mode: Mode) -> None:
    """Agree on a version: the newest that both speak, in 2026's way or in the older one."""
    if mode == "auto":
        try:
            await session.discover()
        except (MCPError, ValidationError, RuntimeError):
            pass  # anything but a clear yes means an older server
        else:
            return
    try:
        await session.initialize()
    except MCPError as error:
        if mode == "legacy" or error.code != UNSUPPORTED_PROTOCOL_VERSION:
            raise
        await session.discover()  # a slow starter, which answered the first question when we no longer listened
