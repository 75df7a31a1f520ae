"""The SDK's low-level server around the gateway: who is asking, in which era, and how to talk back to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias

import mcp.types as types
from mcp import MCPError
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.types import INVALID_PARAMS, METHOD_NOT_FOUND
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolsearch.calling.blocks import text_block
from toolsearch.discovery.search_tool import TOOL_NAME
from toolsearch.errors import ToolSearchError
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.principals.protocol import LOCAL, Caller, Era
from toolsearch.gateway.proxy.calls import failure
from toolsearch.gateway.proxy.raw_results import raw_call_result, raw_tools, send_raw_results

Context: TypeAlias = ServerRequestContext[Any, Any]

_SESSION_HEADER = "mcp-session-id"
_LIST_HINT = CacheHint(ttl_ms=60_000, scope="private")
_INSTRUCTIONS = (
    f"Many tools are behind {TOOL_NAME}: search for what you need in a few words before you say that you cannot do it."
)


class ListChangingServer(Server[Any]):
    """Tells clients of the older era that the list may change; the SDK over HTTP never does by itself."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


def make_server(gateway: Gateway) -> Server[Any]:
    """Return a server whose lifespan is the gateway's."""

    @asynccontextmanager
    async def lifespan(_: Server[Any]) -> AsyncGenerator[Gateway]:
        async with gateway:
            yield gateway

    handlers = _Handlers(gateway)
    server = ListChangingServer(
        "toolsearch",
        version=_version(),
        instructions=_INSTRUCTIONS,
        lifespan=lifespan,
        cache_hints={"tools/list": _LIST_HINT},
        # The SDK would list our tools for every call instead.
        get_tool_input_schema=gateway.surface.input_schema,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_subscriptions_listen=ListenHandler(InMemorySubscriptionBus()),
    )
    server.middleware.append(send_raw_results)
    return server


@dataclass(frozen=True, slots=True)
class _Handlers:
    gateway: Gateway

    async def list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> Any:
        if params is not None and params.cursor is not None:
            raise MCPError(INVALID_PARAMS, "Invalid cursor: the list has one page")
        return raw_tools(await self.gateway.list_tools(caller_of(ctx)))

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        caller = caller_of(ctx)
        if params.name == TOOL_NAME:
            return await self._search(ctx, caller, params.arguments or {})
        wire: Mapping[str, Any] = ctx.params or {}
        return raw_call_result(await self.gateway.call(caller, wire, SdkDownstream(ctx, caller)))

    async def _search(self, ctx: Context, caller: Caller, arguments: Mapping[str, Any]) -> Any:
        try:
            found = await self.gateway.search(caller, arguments)
        except ToolSearchError as error:
            return raw_call_result(failure(error))
        if found.list_changed:
            await ctx.session.send_tool_list_changed()
        answer = found.answer
        return raw_call_result({"content": [text_block(answer.text)], "structuredContent": answer.structured})


@dataclass(frozen=True, slots=True)
class SdkDownstream:
    """The client of one request, as a `Downstream`."""

    ctx: Context
    caller: Caller

    @property
    def session_key(self) -> str:
        return self.caller.session_key or f"request {self.ctx.request_id}"

    @property
    def capabilities(self) -> Mapping[str, Any]:
        return {}  # nothing is passed on yet that a server could ask

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        await self.ctx.session.report_progress(progress, total, message)

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        raise MCPError(METHOD_NOT_FOUND, f"{method} is not passed on")

    async def tell(self, method: str, params: Mapping[str, Any]) -> None: ...


def caller_of(ctx: Context) -> Caller:
    """Who makes the request of *ctx*."""
    is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    client = ctx.session.client_params.client_info if ctx.session.client_params else None
    capabilities = ctx.session.client_capabilities
    return Caller(
        LOCAL,
        Era.MODERN if is_modern else Era.LEGACY,
        session_key=None if is_modern else _session_key(ctx),
        client_name=client.name if client else "",
        client_version=client.version if client else "",
        capabilities=capabilities.model_dump(by_alias=True, mode="json", exclude_none=True) if capabilities else {},
    )


def _session_key(ctx: Context) -> str | None:
    """On stdio the process serves one session; over HTTP a header says which, and none where no sessions are kept."""
    return "stdio" if ctx.request is None else ctx.request.headers.get(_SESSION_HEADER)


def _version() -> str:
    try:
        return version("toolsearch")
    except PackageNotFoundError:
        return ""
