"""The gateway as an MCP server, by the SDK's low-level server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import mcp.types as types
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolsearch.gateway.caller import Caller
from toolsearch.gateway.changes import ListChanges
from toolsearch.gateway.content_handlers import add_logging, content_handlers, require_first_page
from toolsearch.gateway.downstream import SdkDownstream
from toolsearch.gateway.exposure.clients import known_client
from toolsearch.gateway.exposure.surface import SearchOutcome
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.greeting import own_version
from toolsearch.gateway.instructions import pass_on_instructions
from toolsearch.gateway.request_caller import Context, caller_of, reach_of_request
from toolsearch.gateway.unexpected import FailureGuard
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.upstreams.interface import Downstream
from toolsearch.wire.mcp.envelope import carrying, unpacked
from toolsearch.wire.mcp.lists import TOOLS
from toolsearch.wire.mcp.methods import CALL_TOOL, LIST_TOOLS
from toolsearch.wire.mcp.opening import LIST_TTL_MS
from toolsearch.wire.mcp.results import text_result


class ListChangingServer(Server[Any]):
    """Advertises that lists may change. The SDK by itself never does for clients of the older protocol over HTTP."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(
            prompts_changed=True, resources_changed=True, tools_changed=True
        )
        return super().create_initialization_options(options, experimental_capabilities, extensions)

    def get_capabilities(self, *args: Any, **options: Any) -> types.ServerCapabilities:
        """As the SDK has it, but that clients of 2026 cannot subscribe to a resource: it takes that for granted."""
        capabilities = super().get_capabilities(*args, **options)
        if capabilities.resources is not None and options.get("protocol_version") in MODERN_PROTOCOL_VERSIONS:
            capabilities.resources.subscribe = False
        return capabilities


class ToolRequests(Protocol):
    """What clients ask of tools, as `Gateway` answers it."""

    async def list_tools(self, caller: Caller) -> list[dict[str, Any]]: ...
    async def search(self, caller: Caller, arguments: Mapping[str, Any]) -> SearchOutcome: ...
    async def call(self, caller: Caller, params: Mapping[str, Any], downstream: Downstream) -> dict[str, Any]: ...


def make_server(gateway: Gateway, *, tools: ToolRequests | None = None, runs_gateway: bool = True) -> Server[Any]:
    """Return a server over *gateway*.

    tools         what stands before the gateway where tools are asked for, such as limits
    runs_gateway  the lifespan of the server is the gateway's; if not, somebody else runs it
    """

    @asynccontextmanager
    async def lifespan(_: Server[Any]) -> AsyncGenerator[Gateway]:
        async with gateway if runs_gateway else nullcontext():
            yield gateway

    changes = ListChanges(gateway)
    handlers = _Handlers(tools or gateway, changes)
    guard = FailureGuard()
    content: dict[str, Any] = {
        name: guard.around(changes.following(each) if name.startswith("on_list_") else each)
        for name, each in content_handlers(gateway).items()
    }
    server = ListChangingServer(
        "toolsearch",
        version=own_version(),
        lifespan=lifespan,
        # Without this, the SDK would list all tools for every call.
        get_tool_input_schema=lambda name: gateway.surface.input_schema(name, reach_of_request()),
        on_list_tools=guard.around(changes.following(handlers.list_tools)),
        on_call_tool=guard.around(handlers.call_tool),
        on_subscriptions_listen=guard.around(changes.listen),
        **content,
    )
    add_logging(server)
    server.middleware += [_send_carried, pass_on_instructions(gateway)]
    return server


@dataclass(frozen=True, slots=True)
class _Handlers:
    tools: ToolRequests
    changes: ListChanges

    async def list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> Any:
        require_first_page(params)
        page = TOOLS.page(await self.tools.list_tools(caller_of(ctx)))
        return carrying(LIST_TOOLS, page, ttl_ms=LIST_TTL_MS)

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        caller = caller_of(ctx)
        if params.name == TOOL_NAME:
            return await self._search(ctx, caller, params.arguments or {})
        wire: Mapping[str, Any] = ctx.params or {}
        return carrying(CALL_TOOL, await self.tools.call(caller, wire, SdkDownstream(ctx, caller)))

    async def _search(self, ctx: Context, caller: Caller, arguments: Mapping[str, Any]) -> Any:
        await self.changes.follow(ctx, caller)
        found = await self.tools.search(caller, arguments)
        if found.list_changed:
            await self.changes.session_changed(caller)
        structured = None if known_client(caller).reads_text else found.answer.structured
        return carrying(CALL_TOOL, text_result(found.answer.text, structured))


async def _send_carried(ctx: Context, call_next: CallNext) -> HandlerResult:
    """The middleware that sends what a handler's result carries, once the SDK has checked and stamped that."""
    result = await call_next(ctx)
    return unpacked(result) if isinstance(result, dict) else result
