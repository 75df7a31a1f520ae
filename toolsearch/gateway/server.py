"""The gateway as an MCP server, by the SDK's low-level server: its handlers, and the instructions that clients get.

`SdkDownstream` is the client of one request, as servers see it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal, TypeAlias, cast

import mcp.types as types
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LOG_LEVEL_META_KEY,
    METHOD_NOT_FOUND,
)
from pydantic import BaseModel, ConfigDict

from toolsearch.errors import NotPermittedError, ToolSearchError
from toolsearch.gateway.caller import (
    Caller,
    Context,
    Handler,
    about_error,
    caller_of,
    grant_of_request,
    guarded,
    with_request_id,
)
from toolsearch.gateway.changes import ListChanges, connection_of
from toolsearch.gateway.exposure.clients import known_client
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.greeting import own_version
from toolsearch.gateway.proxy.relay import is_wanted
from toolsearch.gateway.proxy.tasks import Task
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire.mcp.eras import ASKABLE, Era, check_askable
from toolsearch.wire.mcp.lists import PROMPTS, RESOURCES, SKILLS, TEMPLATES, TOOLS, ListOf
from toolsearch.wire.mcp.opening import (
    DISCOVER,
    EXTENSIONS,
    INITIALIZE,
    LIST_TTL_MS,
    LISTEN,
    with_extensions,
    with_tasks,
)
from toolsearch.wire.mcp.requests import (
    CALL_TOOL,
    CANCEL_TASK,
    COMPLETE,
    GET_PROMPT,
    GET_SKILL,
    GET_TASK,
    LIST_PROMPTS,
    LIST_RESOURCES,
    LIST_SKILLS,
    LIST_TASKS,
    LIST_TEMPLATES,
    LIST_TOOLS,
    READ_DIRECTORY,
    READ_RESOURCE,
    SET_LOG_LEVEL,
    SUBSCRIBE,
    TASK_RESULT,
    UNSUBSCRIBE,
    UPDATE_TASK,
    as_private,
    carrying,
    text_result,
    unpacked,
)
from toolsearch.wire.mcp.tasks import follows_tasks, tasks_missing

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

    def as_task(self) -> None:
        """The client waits for the result of this request."""

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


class _RawRequest(types.Request[dict[str, Any] | None, str]):
    """Any request, sent as it is."""


class _RawAnswer(BaseModel):
    """Any answer, as it came."""

    model_config = ConfigDict(extra="allow")


MOST_CHARACTERS = 1_000  # most characters of one server's instructions; clients pay for them in every request
MOST_CHARACTERS_IN_ALL = 4_000
_METHODS = (INITIALIZE, DISCOVER)


def pass_on_instructions(gateway: Gateway, who: Who) -> ServerMiddleware[Any]:
    """The middleware that adds instructions to the answers to ``initialize`` and ``server/discover``, and extensions to
    the former.
    """

    async def middleware(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method not in _METHODS or not isinstance(result, dict):
            return result
        await gateway.lists_settled()  # clients give up if connecting and listing take 10 s together
        said = await asyncio.to_thread(instructions_for, gateway, who(ctx))
        told = {**result, "instructions": said} if said else result
        if ctx.method == INITIALIZE:
            extended = with_extensions(result["capabilities"], ctx.params or {})
            told = {**told, "capabilities": with_tasks(extended, result["protocolVersion"])}
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


Asked: TypeAlias = Literal["search", "call", "content"]
Who: TypeAlias = Callable[[Context], Caller]
Allow: TypeAlias = Callable[[Caller, Asked], Awaitable[None]]


async def allow_all(caller: Caller, asked: Asked) -> None:
    """Everybody may ask for everything, as often as they like."""


def make_server(
    gateway: Gateway, *, who: Who = caller_of, allow: Allow = allow_all, runs_gateway: bool = True
) -> Server[Any]:
    """Return a server over *gateway*.

    who           gives the caller of a request
    allow         awaited before a search, a call of a tool, and a request for the content of a server: a prompt, a
                  resource or a completion. A file of a skill counts as both, since a call reads it. It raises
                  ToolSearchError if the caller may not make the request
    runs_gateway  the lifespan of the server is the gateway's; if not, somebody else runs it
    """

    @asynccontextmanager
    async def lifespan(_: Server[Any]) -> AsyncGenerator[Gateway]:
        async with gateway if runs_gateway else nullcontext():
            yield gateway

    face = _Face(gateway, ListChanges(gateway), lambda ctx: gateway.seen_by(who(ctx)), allow)
    server = ListChangingServer(
        "toolsearch",
        version=own_version(),
        lifespan=lifespan,
        # Without this lookup the SDK would list all tools for every call.
        get_tool_input_schema=lambda name: gateway.surface.input_schema(name, gateway.reach_of(grant_of_request())),
    )
    server.extensions |= EXTENSIONS
    for method, (params, answer) in _handlers(face).items():
        server.add_request_handler(method, params, guarded(face.of_caller(answer)))
    server.middleware += [_send_carried, pass_on_instructions(gateway, face.who)]
    return server


def require_first_page(params: types.PaginatedRequestParams | None) -> None:
    """Raise MCPError for a cursor, since the gateway never gives one: each of its lists has one page."""
    if params is not None and params.cursor is not None:
        raise MCPError(INVALID_PARAMS, "Invalid cursor: the list has one page")


_Answer: TypeAlias = Callable[[Context, Caller, Any], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class _Face:
    """Answers the requests of clients. Requests for content are passed on as the client sent them, not as the SDK has
    parsed them, so that nothing of them is lost.
    """

    gateway: Gateway
    changes: ListChanges
    who: Who
    allow: Allow

    def of_caller(self, answer: _Answer) -> Handler[Any]:
        async def handle(ctx: Context, params: object) -> Any:
            return await answer(ctx, self.who(ctx), params)

        return handle

    async def list_tools(self, ctx: Context, caller: Caller, params: types.PaginatedRequestParams | None) -> Any:
        await self.changes.follow(ctx, caller)  # followed before the list is made, so that no change is missed
        require_first_page(params)
        page = TOOLS.page(await self.gateway.list_tools(caller))
        return carrying(LIST_TOOLS, page, ttl_ms=LIST_TTL_MS)

    def listing(self, listed: ListOf, entries: Callable[[Caller], list[dict[str, Any]]]) -> _Answer:
        async def answer(ctx: Context, caller: Caller, params: types.PaginatedRequestParams | None) -> Any:
            await self.changes.follow(ctx, caller)
            require_first_page(params)
            await self.gateway.lists_settled()
            return carrying(ctx.method, listed.page(entries(caller.again())))

        return answer

    async def call_tool(self, ctx: Context, caller: Caller, params: types.CallToolRequestParams) -> Any:
        if params.name == TOOL_NAME:
            return await self._search(ctx, caller, params.arguments or {})
        await self.allow(caller, "call")
        wire: Mapping[str, Any] = ctx.params or {}
        answer = await self.gateway.call(caller, wire, SdkDownstream(ctx, caller))
        return carrying(CALL_TOOL, with_request_id(answer))

    async def _search(self, ctx: Context, caller: Caller, arguments: Mapping[str, Any]) -> Any:
        await self.allow(caller, "search")
        await self.changes.follow(ctx, caller)
        found = await self.gateway.search(caller, arguments)
        if found.list_changed:
            await self.changes.session_changed(caller)
        structured = None if known_client(caller).reads_text else found.structured
        return carrying(CALL_TOOL, text_result(found.text, structured))

    def passing_on(self, request: Callable[..., Awaitable[dict[str, Any]]]) -> _Answer:
        async def answer(ctx: Context, caller: Caller, _: object) -> Any:
            async with self._content(caller) as caller:
                wire: Mapping[str, Any] = ctx.params or {}
                return carrying(ctx.method, await request(caller, wire, SdkDownstream(ctx, caller)))

        return answer

    async def read_resource(self, ctx: Context, caller: Caller, _: object) -> Any:
        wire: Mapping[str, Any] = ctx.params or {}
        async with self._content(caller) as caller:
            if self.gateway.content.file_of_skill(caller, wire["uri"]) is not None:
                await self.allow(caller, "call")  # since it is read by one
            read = await self.gateway.read_resource(caller, wire, SdkDownstream(ctx, caller))
            return carrying(ctx.method, read)

    async def get_task(self, ctx: Context, caller: Caller, params: _TaskParams) -> Any:
        task = await self._task(ctx, caller, params)
        return task.detailed() if caller.era is Era.MODERN else task.written(caller.era)

    async def update_task(self, ctx: Context, caller: Caller, params: _UpdateParams) -> Any:
        require_era(caller, Era.MODERN)
        task = await self._task(ctx, caller, params)
        task.questions.answer(params.input_responses)
        return {}

    async def cancel_task(self, ctx: Context, caller: Caller, params: _TaskParams) -> Any:
        task = await self._task(ctx, caller, params)
        if caller.era is Era.LEGACY and task.status.is_final:
            raise MCPError(INVALID_PARAMS, f"Cannot cancel a task that is {task.status.value}")
        task.cancel()
        return {} if caller.era is Era.MODERN else task.written(caller.era)

    async def task_result(self, ctx: Context, caller: Caller, params: _TaskParams) -> Any:
        require_era(caller, Era.LEGACY)
        task = await self._task(ctx, caller, params)
        return await self.gateway.tasks.result(caller, task.id, SdkDownstream(ctx, caller))

    async def list_tasks(self, _: Context, caller: Caller, params: types.PaginatedRequestParams) -> Any:
        require_era(caller, Era.LEGACY)
        require_first_page(params)
        async with self._content(caller) as caller:
            return {"tasks": [task.written(caller.era) for task in self.gateway.tasks.of(caller)]}

    async def _task(self, ctx: Context, caller: Caller, params: _TaskParams) -> Task:
        """Raises MCPError if the caller may not know of it, or does not say that it knows tasks at all."""
        require_task_request(ctx, caller, params.task_id)
        async with self._content(caller) as caller:
            return self.gateway.tasks.find(caller, params.task_id)

    async def list_skills(self, _: Context, caller: Caller, params: types.PaginatedRequestParams) -> Any:
        async with self._content(caller) as caller:
            require_first_page(params)
            return carrying(LIST_SKILLS, SKILLS.page(self.gateway.content.skills(caller)))

    async def get_skill(self, _: Context, caller: Caller, params: _SkillParams) -> Any:
        async with self._content(caller) as caller:
            return carrying(GET_SKILL, {"skill": self.gateway.content.skill(caller, params.uri)})

    async def read_directory(self, _: Context, caller: Caller, params: _DirectoryParams) -> Any:
        async with self._content(caller) as caller:
            require_first_page(params)
            return carrying(READ_DIRECTORY, RESOURCES.page(self.gateway.content.directory(caller, params.uri)))

    async def set_log_level(self, ctx: Context, _: Caller, params: types.SetLevelRequestParams) -> types.EmptyResult:
        """Remember the lowest log level that the client of this session wants."""
        connection_of(ctx).state[_LOG_LEVEL] = params.level
        return types.EmptyResult()

    async def subscribe(self, ctx: Context, caller: Caller, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Only sessions can subscribe, and a subscription ends with its session. The client is told of the resource by
        the URI that it used.
        """
        async with self._content(caller) as caller:
            address = self.gateway.content.locate(caller, params.uri)
            if caller.session_key is None:
                raise MCPError(INVALID_REQUEST, "There is no session that could be told of changes")
            connection = connection_of(ctx)
            connection.exit_stack.callback(self.gateway.subscriptions.forget, caller.session_key)
            await self.gateway.subscriptions.subscribe(
                caller.grant, address, caller.session_key, lambda: connection.send_resource_updated(params.uri)
            )
        return types.EmptyResult()

    async def unsubscribe(
        self, _: Context, caller: Caller, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        async with self._content(caller) as caller:
            address = self.gateway.content.locate(caller, params.uri)
            await self.gateway.subscriptions.unsubscribe(caller.grant, address, caller.session_key or "")
        return types.EmptyResult()

    @asynccontextmanager
    async def _content(self, caller: Caller) -> AsyncGenerator[Caller]:
        """Answer a request for content within the block, for the caller as it is by then. Our errors become MCP errors
        there: the results have no field for an error.
        """
        try:
            await self.allow(caller, "content")
            await self.gateway.settled()
            yield caller.again()
        except ToolSearchError as error:
            code = INVALID_REQUEST if isinstance(error, NotPermittedError) else INTERNAL_ERROR
            raise MCPError(code, str(error), about_error(error.code)) from error


class _SkillParams(types.RequestParams):
    uri: str


class _DirectoryParams(types.PaginatedRequestParams):
    uri: str


class _TaskParams(types.RequestParams):
    task_id: str


class _UpdateParams(_TaskParams):
    input_responses: dict[str, Any]


def _handlers(face: _Face) -> Mapping[str, tuple[type[BaseModel], _Answer]]:
    """The parameters and the handler of each method. Clients of 2026 see tasks as an extension; for clients of 2025
    they are a part of the protocol.
    """
    content = face.gateway.content
    page = types.PaginatedRequestParams
    return {
        LIST_TOOLS: (page, face.list_tools),
        CALL_TOOL: (types.CallToolRequestParams, face.call_tool),
        LIST_RESOURCES: (page, face.listing(RESOURCES, content.resources)),
        LIST_TEMPLATES: (page, face.listing(TEMPLATES, content.resource_templates)),
        LIST_PROMPTS: (page, face.listing(PROMPTS, content.prompts)),
        READ_RESOURCE: (types.ReadResourceRequestParams, face.read_resource),
        GET_PROMPT: (types.GetPromptRequestParams, face.passing_on(content.get_prompt)),
        COMPLETE: (types.CompleteRequestParams, face.passing_on(content.complete)),
        SUBSCRIBE: (types.SubscribeRequestParams, face.subscribe),
        UNSUBSCRIBE: (types.UnsubscribeRequestParams, face.unsubscribe),
        LISTEN: (types.SubscriptionsListenRequestParams, face.changes.listen),
        SET_LOG_LEVEL: (types.SetLevelRequestParams, face.set_log_level),
        LIST_SKILLS: (page, face.list_skills),
        GET_SKILL: (_SkillParams, face.get_skill),
        READ_DIRECTORY: (_DirectoryParams, face.read_directory),
        GET_TASK: (_TaskParams, face.get_task),
        UPDATE_TASK: (_UpdateParams, face.update_task),
        CANCEL_TASK: (_TaskParams, face.cancel_task),
        TASK_RESULT: (_TaskParams, face.task_result),
        LIST_TASKS: (page, face.list_tasks),
    }


def require_era(caller: Caller, era: Era) -> None:
    """Raise MCPError unless the protocol of *era*, which has the method, is the caller's."""
    if caller.era is not era:
        raise MCPError(METHOD_NOT_FOUND, "Method not found")


def require_task_request(ctx: Context, caller: Caller, task_id: str) -> None:
    """Raise MCPError for a client of 2026 that does not declare tasks, or whose HTTP header names another task. The SDK
    compares this header only for methods of the protocol itself.
    """
    if caller.era is Era.LEGACY:
        return
    if not follows_tasks(caller.era, caller.capabilities, {}):
        raise tasks_missing()
    if ctx.request is not None and decode_header_value(ctx.request.headers.get(MCP_NAME_HEADER)) != task_id:
        raise MCPError(HEADER_MISMATCH, f"{MCP_NAME_HEADER} header does not name the task of the request body")


async def _send_carried(ctx: Context, call_next: CallNext) -> HandlerResult:
    """The middleware that sends the result that a handler's result carries, once the SDK has checked and stamped
    that.
    """
    result = await call_next(ctx)
    return unpacked(result) if isinstance(result, dict) else result
