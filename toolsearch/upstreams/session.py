"""Opens one MCP session over stdio or HTTP, and returns results exactly as they came, even malformed ones.

A session lives in a task of its own, since the SDK's scopes must be left by the task that entered them.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TextIO, TypeAlias

import anyio
import httpx2
from mcp import ClientSession, MCPError, types
from mcp.client.session import ElicitationFnT, ListRootsFnT, MessageHandlerFnT, SamplingFnT
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import CallOptions, ProgressFnT
from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp.types import CLIENT_CAPABILITIES_META_KEY, UNSUPPORTED_PROTOCOL_VERSION
from pydantic import ValidationError

from toolsearch.documents.json_values import is_object
from toolsearch.upstreams.config import McpServer, Mode, StdioServer
from toolsearch.upstreams.http import FaultTolerantClient, sse_streams
from toolsearch.upstreams.settings import OpenTransport
from toolsearch.upstreams.stdio import StderrTail, stdio_streams
from toolsearch.upstreams.streams import PacedReading, Streams
from toolsearch.wire.mcp.definitions import schema_of, tool_name
from toolsearch.wire.mcp.lists import TOOLS
from toolsearch.wire.mcp.requests import (
    ABOUT_ONE_TASK,
    CALL_TOOL,
    LIST_TOOLS,
    META,
    arguments_in,
    called_name,
    carried,
    carrying,
    meta_of,
    with_meta,
)

ParameterHeaders: TypeAlias = dict[str, Mapping[tuple[str, ...], str]]  # tool -> path into its arguments -> header
_CAPABILITIES = "toolsearch/capabilities"
_SAMPLING = types.SamplingCapability(tools=types.SamplingToolsCapability())  # each client is asked only what it can
_CLIENT = types.Implementation(name="toolsearch", version="0.1.0")
_HTTP_TIMEOUT = httpx2.Timeout(30.0, read=None)  # no read timeout, because each call sets its own
_LARGEST_EVENT = 32 * 1024 * 1024  # bytes; the same limit holds for a line of a child process


for _name in (
    "mcp",
    "client",
):  # without a handler, the SDK's log of a server's junk lines would go to the terminal
    logging.getLogger(_name).addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class SessionPeer:
    """The callbacks for messages that a server sends unasked. A callback that is None is not declared to the server,
    and its requests are refused.

    on_message  gets every notification except cancellations and progress, and exceptions for junk
    """

    on_message: MessageHandlerFnT | None = None
    elicit: ElicitationFnT | None = None
    sample: SamplingFnT | None = None
    list_roots: ListRootsFnT | None = None


class _RawRequest(types.Request[dict[str, Any], str]):
    """Any request, sent as it is."""


class _TaskRequest(_RawRequest):
    """A request about a task, which is named in a header as well."""

    name_param = "taskId"


class McpSession:
    """A session that is past its handshake. *ended* is set once the server has closed the connection."""

    def __init__(self, session: ClientSession, ended: asyncio.Event) -> None:
        self.sdk = session  # gives access to subscriptions and to the server's description of itself
        self.ended = ended

    @property
    def shook_hands(self) -> bool:
        """Whether the server speaks a protocol of before 2026, so that asking for the newer one is useless."""
        return self.sdk.initialize_result is not None

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        on_progress: ProgressFnT | None = None,
        capabilities: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Send *params* as they are and return the result as it was sent, of whatever version, however badly formed.

        *capabilities* replace this client's own for a server of 2026, which is told them with each request. Raises
        MCPError; a cancellation is passed on to the server.
        """
        sent = dict(params)
        if capabilities is not None:
            sent = with_meta(sent, {_CAPABILITIES: dict(capabilities)})
        request = _TaskRequest if method in ABOUT_ONE_TASK else _RawRequest
        result = await self.sdk.send_request(
            request(method=method, params=sent),
            types.Result,
            progress_callback=on_progress,
        )
        return carried(result.meta) or {}


class _RawResultsDispatcher(JSONRPCDispatcher[TransportContext]):
    """Slips results past the session's validation, which would refuse a whole listing for one malformed tool."""

    def __init__(self, reading: Any, writing: Any, parameter_headers: ParameterHeaders) -> None:
        super().__init__(reading, writing)
        self.ended = asyncio.Event()
        self._parameter_headers = parameter_headers

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **more: Any
    ) -> dict[str, Any]:
        if method == CALL_TOOL and params is not None and opts is not None:
            places = self._parameter_headers.get(called_name(params), {})
            opts.setdefault("headers", {}).update(mcp_param_headers(places, arguments_in(params)))
        raw = await super().send_raw_request(method, _with_own_capabilities(params), opts, **more)
        if method == LIST_TOOLS:
            self._parameter_headers.update(_parameter_headers(raw))
        return carrying(method, raw)

    async def run(self, *handlers: Any, **options: Any) -> None:
        try:
            await super().run(*handlers, **options)
        finally:
            self.ended.set()  # nothing else tells that the peer is gone


def _parameter_headers(listing: Mapping[str, Any]) -> ParameterHeaders:
    """The arguments, by tool, that the protocol of 2026 wants in HTTP headers as well."""
    schemas = {tool_name(entry): schema_of(entry) for entry in TOOLS.entries_of(listing) or () if is_object(entry)}
    return {
        name: x_mcp_header_map(schema)
        for name, schema in schemas.items()
        if name is not None and find_invalid_x_mcp_header(schema) is None
    }


def _with_own_capabilities(params: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Replace the capabilities that the SDK puts on all requests by those that this request brought along."""
    meta = meta_of(params or {})
    if params is None or _CAPABILITIES not in meta:
        return params
    kept = {key: value for key, value in meta.items() if key != _CAPABILITIES}
    if CLIENT_CAPABILITIES_META_KEY in kept:
        kept[CLIENT_CAPABILITIES_META_KEY] = meta[_CAPABILITIES]
    return {**params, META: kept}


@asynccontextmanager
async def open_session(
    server: McpServer,
    *,
    mode: Mode,
    stderr: TextIO,
    parameter_headers: ParameterHeaders,
    peer: SessionPeer | None = None,
    auth: httpx2.Auth | None = None,
    open_transport: OpenTransport | None = None,
) -> AsyncGenerator[McpSession]:
    """Connect and shake hands. Must be left in the task that entered it; waits for a silent server without end.

    *parameter_headers* is filled by listing and used by calls; it belongs to the server and outlives its sessions.
    """
    async with AsyncExitStack() as stack:
        reading, writing = await stack.enter_async_context(_streams(server, stderr, auth, open_transport))
        dispatcher = _RawResultsDispatcher(PacedReading(reading, server), writing, parameter_headers)
        peer = peer or SessionPeer()
        client_session = ClientSession(
            dispatcher=dispatcher,
            client_info=_CLIENT,
            message_handler=peer.on_message,
            elicitation_callback=peer.elicit,
            sampling_callback=peer.sample,
            sampling_capabilities=_SAMPLING,
            list_roots_callback=peer.list_roots,
        )
        session = await stack.enter_async_context(client_session)
        await _shake_hands(session, mode)
        yield McpSession(session, dispatcher.ended)


@asynccontextmanager
async def _streams(
    server: McpServer, stderr: TextIO, auth: httpx2.Auth | None, open_transport: OpenTransport | None
) -> AsyncGenerator[Streams]:
    if isinstance(server, StdioServer):
        async with stdio_streams(server, stderr) as streams:
            yield streams
    elif server.kind == "sse":
        async with sse_streams(server, auth, open_transport) as streams:
            yield streams
    else:
        async with (
            FaultTolerantClient(
                headers=dict(server.headers),
                timeout=_HTTP_TIMEOUT,
                auth=auth,
                transport=open_transport() if open_transport else None,
                trust_env=open_transport is None,  # a proxy from the environment must not come between
            ) as client,
            streamable_http_client(server.url, http_client=client, max_sse_event_size=_LARGEST_EVENT) as streams,
        ):
            yield streams


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
        await session.discover()  # it speaks 2026 after all: its first answer came too late


_ENDING_S = 5.0  # seconds for a polite end over HTTP; child processes have shorter terms of their own


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
        """Begin to end the session; *task* is done when the connection is closed and its process gone."""
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
            # Every failure of a connection ends here and is reported in *opened*.
            except Exception as error:  # noqa: BLE001
                failure = error
        if not self.opened.done():
            self.opened.set_exception(failure)
