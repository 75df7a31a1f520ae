"""The gateway as an MCP server, by the SDK's low-level server: its handlers, and the instructions that clients get.

`SdkDownstream` is the client of one request, as servers see it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol, cast

import mcp.types as types
from mcp import MCPError
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.message import ServerMessageMetadata
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, LOG_LEVEL_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ConfigDict

from toolsearch.errors import ToolSearchError
from toolsearch.gateway.caller import Caller, Context, FailureGuard, Handler, caller_of, reach_of_request
from toolsearch.gateway.changes import ListChanges
from toolsearch.gateway.door import own_version
from toolsearch.gateway.exposure.clients import known_client
from toolsearch.gateway.exposure.surface import SearchOutcome
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.proxy.relay import is_wanted
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.upstreams.interface import Downstream
from toolsearch.wire.mcp.eras import ASKABLE, Era, check_askable
from toolsearch.wire.mcp.lists import PROMPTS, RESOURCES, TEMPLATES, TOOLS, ListOf
from toolsearch.wire.mcp.opening import LIST_TTL_MS
from toolsearch.wire.mcp.requests import (
    CALL_TOOL,
    ERROR_CODE,
    LIST_TOOLS,
    SET_LOG_LEVEL,
    as_private,
    carrying,
    text_result,
    unpacked,
)

_LOG_LEVEL = "toolsearch/log-level"
_requests = count(1)  # numbers of our own: ids that two clients choose may be equal


@dataclass(frozen=True, slots=True)
class SdkDownstream:
    """The client of one request, as a `Downstream`."""

    ctx: Context
    caller: Caller
    _key: str = field(default_factory=lambda: f"request {next(_requests)}")

    @property
    def session_key(self) -> str:
        return self.caller.session_key or self._key

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The capabilities that the client has declared, without those that cannot be used over this connection."""
        declared = self.caller.capabilities
        if self.caller.era is Era.MODERN:
            return declared
        if not self.ctx.session.can_send_request:
            return {}
        return {name: declared[name] for name in ASKABLE if name in declared}

    @property
    def log_level(self) -> str | None:
        if self.caller.era is Era.MODERN:
            meta: Mapping[str, Any] = self.ctx.meta or {}
            return meta.get(LOG_LEVEL_META_KEY)
        return connection_of(self.ctx).state.get(_LOG_LEVEL)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        await self.ctx.session.report_progress(progress, total, message)

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        check_askable(self.capabilities, method, params)
        answer = await self.ctx.session.send_request(
            cast("Any", _RawRequest(method=method, params=dict(params) or None)),
            _RawAnswer,
            metadata=ServerMessageMetadata(related_request_id=self.ctx.request_id),
        )
        return answer.model_dump(mode="json")

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Pass a message on. Log messages only go to a client that wants their level; clients of 2026 get none unless
        they ask.
        """
        level = self.log_level
        if level is None and self.caller.era is Era.MODERN:
            return
        if method == "notifications/message" and is_wanted(str(params.get("level")), level):
            message = types.LoggingMessageNotification.model_validate({"method": method, "params": params})
            await self.ctx.session.send_notification(message, related_request_id=self.ctx.request_id)


def connection_of(ctx: Context) -> Connection:
    """The connection of the client's session; both last equally long. The SDK has no public name for it."""
    return cast("Connection", cast("Any", ctx.session)._connection)


def set_log_level(ctx: Context, level: str) -> None:
    """Remember the lowest log level that the client of this session wants."""
    connection_of(ctx).state[_LOG_LEVEL] = level


class _RawRequest(types.Request[dict[str, Any] | None, str]):
    """Any request, sent as it is."""


class _RawAnswer(BaseModel):
    """Any answer, as it came."""

    model_config = ConfigDict(extra="allow")


def content_handlers(gateway: Gateway) -> dict[str, Any]:
    """The handlers, as keyword arguments of the SDK's `Server`. Methods without a handler are not advertised to
    clients.
    """
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
    """Pass on the request as the client sent it, not as the SDK has parsed it, so that nothing of it is lost."""

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
        """Only sessions can subscribe, and a subscription ends with its session. The client is told of the resource by
        the URI that it used.
        """
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
    """Turn our errors into MCP errors, because these results have no field for an error."""
    try:
        yield
    except ToolSearchError as error:
        raise MCPError(INTERNAL_ERROR, str(error), {ERROR_CODE: error.code}) from error


MOST_CHARACTERS = 1_000  # most characters of one server's instructions; clients pay for them in every request
MOST_CHARACTERS_IN_ALL = 4_000
_METHODS = ("initialize", "server/discover")


def pass_on_instructions(gateway: Gateway) -> ServerMiddleware[Any]:
    """The middleware that adds instructions to the answers to ``initialize`` and ``server/discover``."""

    async def middleware(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method not in _METHODS or not isinstance(result, dict):
            return result
        await gateway.lists_settled()  # clients give up if connecting and listing take 10 s together
        said = await asyncio.to_thread(instructions_for, gateway, caller_of(ctx))
        told = {**result, "instructions": said} if said else result
        return as_private(told)  # private: other callers get the instructions of other servers

    return middleware


def instructions_for(gateway: Gateway, caller: Caller, own: str | None = None) -> str:
    """The instructions for *caller*; *own* replaces the gateway's own part.

    Only instructions of admitted servers that the caller may know are passed on.
    """
    own = gateway.surface.instructions(caller) if own is None else own
    return joined(own, gateway.content.instructions(caller))


def joined(own: str, theirs: Mapping[str, str]) -> str:
    """*own* and the instructions of each server after it.

    Each line of a server begins with ``> ``, so that none can look like ours. The text says so if something is left out
    for its length.
    """
    parts = [own] if own else []
    left = MOST_CHARACTERS_IN_ALL
    left_out = 0
    for server, text in sorted(theirs.items()):
        words = _shortened(text.strip())
        if len(words) > left:
            left_out += 1
            continue
        left -= len(words)
        quoted = "\n".join(f"> {line}" for line in words.splitlines())
        parts.append(f"The MCP server {server!r} says of itself, in words that are not ours:\n{quoted}")
    if left_out:
        parts.append(f"({left_out} more servers say something of themselves, which is left out for its length.)")
    return "\n\n".join(parts)


def _shortened(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 4]} ..."


class ListChangingServer(Server[Any]):
    """Advertises that lists may change. The SDK alone never advertises it to clients of the older protocol over
    HTTP.
    """

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
        """The SDK's capabilities, except that 2026 clients are told that they cannot subscribe to resources."""
        capabilities = super().get_capabilities(*args, **options)
        if capabilities.resources is not None and options.get("protocol_version") in MODERN_PROTOCOL_VERSIONS:
            capabilities.resources.subscribe = False
        return capabilities


class ToolRequests(Protocol):
    """The requests of clients about tools, as `Gateway` answers them."""

    async def list_tools(self, caller: Caller) -> list[dict[str, Any]]: ...
    async def search(self, caller: Caller, arguments: Mapping[str, Any]) -> SearchOutcome: ...
    async def call(self, caller: Caller, params: Mapping[str, Any], downstream: Downstream) -> dict[str, Any]: ...


def make_server(gateway: Gateway, *, tools: ToolRequests | None = None, runs_gateway: bool = True) -> Server[Any]:
    """Return a server over *gateway*.

    tools         handles requests about tools before the gateway does, for example with limits
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
        name: guard.around(changes.follow_callers_of(each) if name.startswith("on_list_") else each)
        for name, each in content_handlers(gateway).items()
    }
    server = ListChangingServer(
        "toolsearch",
        version=own_version(),
        lifespan=lifespan,
        # Without this lookup the SDK would list all tools for every call.
        get_tool_input_schema=lambda name: gateway.surface.input_schema(name, reach_of_request()),
        on_list_tools=guard.around(changes.follow_callers_of(handlers.list_tools)),
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
    """The middleware that sends the result that a handler's result carries, once the SDK has checked and stamped
    that.
    """
    result = await call_next(ctx)
    return unpacked(result) if isinstance(result, dict) else result
