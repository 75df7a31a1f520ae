"""The MCP handlers for what servers offer beside tools: resources, prompts, completion and logging."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import mcp.types as types
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST

from toolsearch.errors import ToolSearchError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.downstream import SdkDownstream, connection_of, set_log_level
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.request_caller import Context, caller_of
from toolsearch.gateway.unexpected import Handler
from toolsearch.wire.mcp.envelope import carrying
from toolsearch.wire.mcp.lists import PROMPTS, RESOURCES, TEMPLATES, ListOf
from toolsearch.wire.mcp.methods import SET_LOG_LEVEL
from toolsearch.wire.mcp.results import ERROR_CODE


def content_handlers(gateway: Gateway) -> dict[str, Any]:
    """The handlers, as keyword arguments of the SDK's `Server`. What has no handler is not advertised to clients."""
    content = gateway.content
    subscribing = _SubscriptionHandlers(gateway)
    return {
        "on_list_resources": _listing(gateway, RESOURCES, content.resources),
        "on_list_resource_templates": _listing(gateway, TEMPLATES, content.resource_templates),
        "on_read_resource": _passing_on(gateway, content.read),
        "on_list_prompts": _listing(gateway, PROMPTS, content.prompts),
        "on_get_prompt": _passing_on(gateway, content.get_prompt),
        "on_completion": _passing_on(gateway, content.complete),
        "on_subscribe_resource": subscribing.subscribe,
        "on_unsubscribe_resource": subscribing.unsubscribe,
    }


def require_first_page(params: types.PaginatedRequestParams | None) -> None:
    """Raise MCPError for a cursor, since the gateway never gives one: each of its lists has one page."""
    if params is not None and params.cursor is not None:
        raise MCPError(INVALID_PARAMS, "Invalid cursor: the list has one page")


def _listing(gateway: Gateway, listed: ListOf, entries: Callable[[Caller], list[dict[str, Any]]]) -> Handler[Any]:
    async def answer(ctx: Context, params: types.PaginatedRequestParams | None) -> Any:
        require_first_page(params)
        await gateway.lists_settled()
        return carrying(ctx.method, listed.page(entries(caller_of(ctx))))

    return answer


def _passing_on(gateway: Gateway, request: Callable[..., Awaitable[dict[str, Any]]]) -> Handler[Any]:
    """The request as the client sent it, rather than as the SDK has read it, so that nothing of it is lost."""

    async def passed_on(ctx: Context, _: object) -> Any:
        await gateway.settled()
        caller = caller_of(ctx)
        wire: Mapping[str, Any] = ctx.params or {}
        with _as_errors():
            return carrying(ctx.method, await request(caller, wire, SdkDownstream(ctx, caller)))

    return passed_on


def add_logging(server: Server[Any]) -> None:
    """Let clients of the older protocol set their log level. The SDK's own argument for it gives a deprecation
    warning.
    """
    server.add_request_handler(SET_LOG_LEVEL, types.SetLevelRequestParams, _set_log_level)


async def _set_log_level(ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    set_log_level(ctx, params.level)
    return types.EmptyResult()


@dataclass(frozen=True, slots=True)
class _SubscriptionHandlers:
    gateway: Gateway

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Only sessions have this; it ends with them. The client hears of the resource by the URI that it asked by."""
        caller = caller_of(ctx)
        await self.gateway.settled()
        address = self.gateway.content.locate(caller, params.uri)
        if caller.session_key is None:
            raise MCPError(INVALID_REQUEST, "There is no session that could be told of changes")
        connection = connection_of(ctx)
        connection.exit_stack.callback(self.gateway.subscriptions.forget, caller.session_key)
        with _as_errors():
            await self.gateway.subscriptions.subscribe(
                address, caller.session_key, lambda: connection.send_resource_updated(params.uri)
            )
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        caller = caller_of(ctx)
        await self.gateway.settled()
        address = self.gateway.content.locate(caller, params.uri)
        with _as_errors():
            await self.gateway.subscriptions.unsubscribe(address, caller.session_key or "")
        return types.EmptyResult()


@contextmanager
def _as_errors() -> Generator[None]:
    """Turn our errors into MCP errors, since these results have no field for one."""
    try:
        yield
    except ToolSearchError as error:
        raise MCPError(INTERNAL_ERROR, str(error), {ERROR_CODE: error.code}) from error
