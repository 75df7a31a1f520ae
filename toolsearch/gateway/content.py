"""What the server offers beside tools: the resources and prompts of all servers, completion and logging."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import mcp.types as types
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST

from toolsearch.errors import ToolSearchError
from toolsearch.gateway.callers import Context, caller_of
from toolsearch.gateway.downstream import SdkDownstream, connection_of, set_log_level
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.proxy.raw_results import raw_result


def content_handlers(gateway: Gateway) -> dict[str, Any]:
    """The handlers of the SDK's `Server` for these, as keyword arguments; what is not in here is not advertised."""
    handlers = _ContentHandlers(gateway)
    return {
        "on_list_resources": handlers.list_resources,
        "on_list_resource_templates": handlers.list_resource_templates,
        "on_read_resource": handlers.read_resource,
        "on_list_prompts": handlers.list_prompts,
        "on_get_prompt": handlers.get_prompt,
        "on_completion": handlers.complete,
        "on_subscribe_resource": handlers.subscribe,
        "on_unsubscribe_resource": handlers.unsubscribe,
    }


def add_logging(server: Server[Any]) -> None:
    """Let clients of the older era say what log messages they want; the SDK warns of its own argument for that."""
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, _set_log_level)


async def _set_log_level(ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    set_log_level(ctx, params.level)
    return types.EmptyResult()


@dataclass(frozen=True, slots=True)
class _ContentHandlers:
    gateway: Gateway

    async def list_resources(self, ctx: Context, params: types.PaginatedRequestParams | None) -> Any:
        await self._first_page(params)
        return raw_result("resources/list", {"resources": self.gateway.content.resources(caller_of(ctx))})

    async def list_resource_templates(self, ctx: Context, params: types.PaginatedRequestParams | None) -> Any:
        await self._first_page(params)
        templates = self.gateway.content.resource_templates(caller_of(ctx))
        return raw_result("resources/templates/list", {"resourceTemplates": templates})

    async def list_prompts(self, ctx: Context, params: types.PaginatedRequestParams | None) -> Any:
        await self._first_page(params)
        return raw_result("prompts/list", {"prompts": self.gateway.content.prompts(caller_of(ctx))})

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> Any:
        del params
        return await self._passed_on(ctx, self.gateway.content.read)

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> Any:
        del params
        return await self._passed_on(ctx, self.gateway.content.get_prompt)

    async def complete(self, ctx: Context, params: types.CompleteRequestParams) -> Any:
        del params
        return await self._passed_on(ctx, self.gateway.content.complete)

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

    async def _passed_on(self, ctx: Context, method: Any) -> dict[str, Any]:
        await self.gateway.settled()
        caller = caller_of(ctx)
        wire: Mapping[str, Any] = ctx.params or {}
        with _as_errors():
            return raw_result(ctx.method, await method(caller, wire, SdkDownstream(ctx, caller)))

    async def _first_page(self, params: types.PaginatedRequestParams | None) -> None:
        if params is not None and params.cursor is not None:
            raise MCPError(INVALID_PARAMS, "Invalid cursor: the list has one page")
        await self.gateway.lists_settled()


@contextmanager
def _as_errors() -> Generator[None]:
    """A failure of ours is an error here, since these results have no place for one."""
    try:
        yield
    except ToolSearchError as error:
        raise MCPError(INTERNAL_ERROR, str(error), {"toolsearch/error": error.code}) from error
