"""A session: the tools that one conversation sees, has discovered, and runs."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, Protocol, TypedDict, cast, overload

from toolsearch.access.principals import LOCAL, Principal
from toolsearch.calling.limits import TurnCounter
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.discovery.call_tools import inner_call
from toolsearch.sessions.conversation import Conversation, settle_for
from toolsearch.sessions.host import ConversationHost
from toolsearch.sessions.port import ToolScope
from toolsearch.sessions.savings import Savings
from toolsearch.sessions.state import SessionState
from toolsearch.sessions.unit_of_work import ConversationScope, UnitOfWork
from toolsearch.threads import run_sync
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool, ToolDefinition, ToolReference
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.tools.results import ToolOutput
from toolsearch.wire import anthropic
from toolsearch.wire.capabilities import Cloud, Endpoint, capabilities_of
from toolsearch.wire.formats import RenderedTools, WireFormat, render_change, render_results, render_tool_list
from toolsearch.wire.native_search import NativeSearch, found_names
from toolsearch.wire.replies import input_tokens, parse_tool_calls
from toolsearch.wire.sendable_tools import sendable_definition
from toolsearch_indexes.queries import Strategy


@dataclass(frozen=True, slots=True)
class ToolDelta:
    """The difference between a model's tools and its tools before.

    added    tools in the format's shape, to append in order; a changed definition is here under
             the same name
    removed  names of tools that were removed. This breaks the provider's cache only if it is lost anyway
    """

    added: tuple[ToolDefinition, ...] = ()
    removed: tuple[str, ...] = ()


class RequestTools(TypedDict):
    """The tools of a request as arguments for the SDK of OpenAI or Anthropic: pass them by ``**``.

    tools          in the format's own shape
    extra_headers  only if the exposure needs any
    """

    tools: list[Any]
    extra_headers: NotRequired[dict[str, str]]


class RequestToolsAndModel(RequestTools):
    """The same with the model that was named; a model that is not known, ``""``, is left out."""

    model: NotRequired[str]


class RequestToolsToKeep(RequestToolsAndModel):
    """The same with the mark for Anthropic's cache, unless that is on a tool."""

    cache_control: NotRequired[Any]


class SessionHost(ConversationHost, Protocol):
    """The parts of an engine that a session needs."""

    @property
    def manager(self) -> ToolCallingManager: ...
    @property
    def rendered(self) -> RenderedTools:
        """Deferred tools in Anthropic's format, shared by all sessions, since they hardly differ."""
        ...


class Session:
    """One conversation over a shared catalog. Made by `ToolSearch.session`.

    Send `tools` in each model request. Give the reply to `execute`, and append the messages that it returns. When the
    model has answered the user, call `end_turn`, which evicts tools. The session's state is in the engine's store:
    after its eviction there, every method raises UnknownSessionError.

    Any number of threads, tasks and event loops may use it at the same time. They share one state, so that each sees at
    once the tools that the others found. The list of tools only grows as long as a provider may have it cached, and a
    tool that is being called stays. `begin_turn` and `end_turn` concern the shared turn. Simultaneous additions to the
    figures of `savings` may be lost.

    If sessions are stored, `execute` and `call` read and write without holding up an event loop. The plain methods read
    and write in the caller's thread, except `tools`, `shown` and the properties, which use the state in memory.
    """

    def __init__(self, engine: SessionHost, session_id: str, principal: Principal = LOCAL) -> None:
        self.id = session_id
        self.principal = principal
        self._engine = engine
        self._turn = TurnCounter()
        self._told: dict[str, ToolDefinition] = {}  # definitions that `delta` has returned
        self._lock = threading.Lock()

    @property
    def state(self) -> SessionState:
        return self._engine.sessions.get(self.id, owner=self.principal.id)

    @property
    def discovered(self) -> list[str]:
        """The names of the discovered tools, in the order of discovery."""
        return self._in_memory().discovered

    def tools(
        self,
        format: WireFormat = "openai",  # noqa: A002  the SDKs' word
        *,
        model: str = "",
        cloud: Cloud = "",
    ) -> list[Any]:
        """Return the tools for one model request, in *format*: openai, openai-responses, anthropic or mcp.

        As `request`, for code that needs only the tools. Without a *model* the result suits every model.
        """
        return self.request(format, model=model, cloud=cloud)["tools"]

    @overload
    def request(self, format: WireFormat, *, cloud: Cloud = "") -> RequestTools: ...

    @overload
    def request(self, format: WireFormat, *, model: str, cloud: Cloud = "") -> RequestToolsAndModel: ...

    @overload
    def request(
        self, format: Literal["anthropic"], *, model: str, cloud: Cloud = "", cache_prompt: bool
    ) -> RequestToolsToKeep: ...

    def request(
        self,
        format: WireFormat,  # noqa: A002
        *,
        model: str = "",
        cloud: Cloud = "",
        cache_prompt: bool = False,
    ) -> RequestTools:
        """Return the arguments for the SDK's call, to be passed by ``**``: ``tools``, and ``model``, ``extra_headers``
        and ``cache_control`` if there are any.

        ``toolSearchTool`` comes first. How found tools reach the model depends on *format*, *model* and *cloud*; see
        `SessionOptions.exposure`. A catalog of a few tools is given whole, sorted by name. Call it once for each
        request, since `savings` counts the calls. Entries are shared with later requests: do not change them.

        Anthropic does not cache a prompt unless it is asked to. *cache_prompt* asks for it, with one of the four marks
        that a request may have. The other APIs cache by themselves.
        """
        endpoint = Endpoint(format, model, cloud)
        conversation = self._in_memory()
        tools = conversation.tool_list(endpoint)
        conversation.note_request()
        known = capabilities_of(endpoint)
        request: RequestToolsAndModel = {
            "tools": render_tool_list(tools.listed, tools.deferred, format, self._engine.rendered)
        }
        if model:
            request["model"] = model
        if headers := known.headers.get(tools.mode):
            request["extra_headers"] = dict(headers)
        if cache_prompt and format == anthropic.PROVIDER:
            return cast("RequestTools", anthropic.with_cache_mark(request, marks_requests=known.marks_requests))
        return request

    def delta(
        self,
        format: WireFormat = "mcp",  # noqa: A002
        *,
        model: str = "",
        cloud: Cloud = "",
    ) -> ToolDelta:
        """Return the difference between the tools for the next model request and those of the last call; at first, all
        tools.

        This is for a framework that keeps its own list. It appends `ToolDelta.added`, and removes `ToolDelta.removed`.
        Both follow the list of `request`: a tool is removed only when the model is not sent it any more. Use it in
        place of `request`, once for each model request, with the same *format*, *model* and *cloud*. By default found
        tools are appended.
        """
        conversation = self._in_memory()
        conversation.tool_list(Endpoint(format, model, cloud))
        conversation.tool_change()
        conversation.note_request()
        visible = conversation.state.sent.now.visible
        with self._lock:
            told, self._told = self._told, visible
        added = tuple(sendable_definition(each, format) for name, each in visible.items() if told.get(name) != each)
        return ToolDelta(added, tuple(name for name in told if name not in visible))

    def compacted(self) -> None:
        """Note that earlier messages were dropped or rewritten, so that the provider's cache is lost anyway.

        The next list begins anew, with the discovered tools. Earlier messages about tools no longer count.
        """
        with self.conversation() as conversation:
            conversation.compacted()

    def shown(self) -> list[Tool]:
        """Return the tools that `tools` renders, without counting a request. The search tool has no callback: see
        `scope`.
        """
        return self._in_memory().shown()

    @property
    def is_passed_through(self) -> bool:
        """Whether the catalog in reach is so small that it is shown whole, and not searched."""
        return not self._in_memory().exposure.is_searched

    def note_request(self) -> None:
        """Count a model request with the tools that are `shown` now."""
        self._in_memory().note_request()

    def search(
        self,
        query: str,
        *,
        limit: int | None = None,
        strategy: Strategy | None = None,
        server: str | None = None,
    ) -> list[ToolReference]:
        """Search as `ToolSearch.search` does, within reach, and expand what is found into this session.

        If *query* is a tool's full name, that tool alone is expanded. Tools that exceed the budget by themselves are
        left out; `ToolSearch.notes` names them and the reason.
        """
        with self.conversation() as conversation:
            return conversation.search(query, limit=limit, strategy=strategy, server=server).shown

    async def call(
        self,
        name: str,
        arguments: JsonObject | str = "",
        *,
        context: Mapping[str, Any] | None = None,
        turn: TurnCounter | None = None,
        unfinished: str = "",
    ) -> ToolResult:
        """Run one tool, ``toolSearchTool`` included; a failure is a result with `is_error`.

        *context* has the values of the tool's `ToolContext`; no model sees them. For *turn* see `execute`.

        *unfinished* is the reason why the model's reply ended early, if it did. Then nothing runs, and the result says
        so to the model.
        """
        call = ToolCall("call_1", name, arguments, unfinished)
        async with self.conversation() as conversation:
            return (await self._run(conversation, [call], context, turn))[0]

    async def execute(
        self, reply: object, *, context: Mapping[str, Any] | None = None, turn: TurnCounter | None = None
    ) -> list[Any]:
        """Run the tool calls of a model's reply and return the messages to append to the conversation, in its format.

        *reply* is a reply of the OpenAI or Anthropic SDK, or its tool calls; see `parse_tool_calls`. Without calls
        there is nothing to append.

        Limits for the calls of a turn hold over all its replies: the session counts calls until `end_turn` or
        `begin_turn`, as long as it is in memory. *turn* replaces this counter with one of your own.
        """
        wire_format, calls = parse_tool_calls(reply)
        async with self.conversation() as conversation:
            conversation.note_usage(input_tokens(reply))
            results = await self._run(conversation, calls, context, turn)
            written = render_results(results, wire_format, native_search=conversation.native_search())
            if not written or not conversation.is_for(wire_format):  # an unwritten change must not count as told
                return written
            return written + render_change(conversation.tool_change(), wire_format)

    def call_sync(
        self,
        name: str,
        arguments: JsonObject | str = "",
        *,
        context: Mapping[str, Any] | None = None,
        turn: TurnCounter | None = None,
        unfinished: str = "",
    ) -> ToolResult:
        """As `call`, for code without an event loop. Raises RuntimeError if an event loop is running."""
        call = self.call(name, arguments, context=context, turn=turn, unfinished=unfinished)
        return run_sync(call, "session.call()")

    def execute_sync(
        self, reply: object, *, context: Mapping[str, Any] | None = None, turn: TurnCounter | None = None
    ) -> list[Any]:
        """As `execute`, for code without an event loop. Raises RuntimeError if an event loop is running."""
        return run_sync(self.execute(reply, context=context, turn=turn), "session.execute()")

    def begin_turn(
        self,
        said: str = "",
        format: WireFormat | None = None,  # noqa: A002
        *,
        model: str = "",
        cloud: Cloud = "",
    ) -> list[Any]:
        """Begin a turn after the user's message *said*. Return the messages to append behind it; mostly there are none.

        Tools that *said* surely asks for are shown at once, so that the model need not search for them; see
        `SessionOptions.anticipate`. The returned messages add them, if the API takes such messages. Otherwise they may
        be in the first list. Before the first request, this needs the *format* and *model* of the requests. This
        searches, so an event loop is to run it in a thread.

        Tools that were idle beyond the budget's TTL are evicted, and not sent again.
        """
        with self.conversation() as conversation:
            self._turn = TurnCounter()
            conversation.begin_turn()
            return anticipated_entries(conversation, said, Endpoint(format, model, cloud) if format else None)

    def end_turn(self) -> list[str]:
        """Say that the model has answered the user; return the tools that were evicted for it, in append order."""
        with self.conversation() as conversation:
            self._turn = TurnCounter()
            return conversation.end_turn()

    def savings(self) -> Savings:
        """The cost of the session so far. The first call counts every definition of the catalog."""
        return self._in_memory().savings()

    def scope(self) -> ToolScope:
        """Return the session as a calling manager sees it, for the calls of one reply."""
        return ConversationScope(self._read())

    def note_results(self, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> None:
        """Count one reply's *calls* that ran in this session's `scope`, and save it. `execute` and `call` do this."""
        with self.conversation() as conversation:
            note_results(conversation, calls, results)

    def answer(self, arguments: Mapping[str, Json]) -> ToolOutput:
        """As `Conversation.answer`."""
        with self.conversation() as conversation:
            return conversation.answer(arguments)

    def resolve(self, name: str) -> Tool:
        """As `ToolScope.resolve`; the search tool gets its callback with the reply that calls it."""
        with self.conversation() as conversation:
            return conversation.resolve(name)

    async def _run(
        self,
        conversation: Conversation,
        calls: Sequence[ToolCall],
        context: Mapping[str, Any] | None,
        turn: TurnCounter | None,
    ) -> list[ToolResult]:
        turn = self._turn if turn is None else turn
        calls = [inner_call(call, conversation.view.find_entry) for call in calls]
        results = await self._engine.manager.execute(calls, ConversationScope(conversation), context=context, turn=turn)
        note_results(conversation, calls, results)
        return results

    def _in_memory(self) -> Conversation:
        return Conversation(self._engine, self.state, self.principal)

    def _read(self) -> Conversation:
        settle = settle_for(self._engine)
        state = self._engine.sessions.refresh(self.id, owner=self.principal.id, settle=settle)
        return Conversation(self._engine, state, self.principal)

    def conversation(self) -> UnitOfWork:
        """Take several steps that are read and written as one: ``async with session.conversation() as conversation``.

        Raises UnknownSessionError on entering it.
        """
        return UnitOfWork(self._engine.sessions, self._read)


def anticipated_entries(conversation: Conversation, said: str, endpoint: Endpoint | None = None) -> list[Any]:
    """As `Conversation.anticipate`. Return the messages to append behind the user's, in the format of the list."""
    names, sent = conversation.anticipate(said, endpoint), conversation.state.sent.now
    if not names or sent.endpoint is None:
        return []
    return render_change(conversation.tool_change(), cast("WireFormat", sent.endpoint.wire_format))


def note_results(conversation: Conversation, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> None:
    """Count the results of one reply's *calls*."""
    searches = [(call, result) for call, result in zip(calls, results, strict=True) if call.name == TOOL_NAME]
    note_searches(conversation, searches, is_search_round=bool(calls) and len(searches) == len(calls))
    for call, result in zip(calls, results, strict=True):
        if call.name != TOOL_NAME:
            conversation.note_call(call.name, is_error=result.is_error)


def note_searches(
    conversation: Conversation, searches: Sequence[tuple[ToolCall, ToolResult]], *, is_search_round: bool
) -> None:
    """Count calls of the search tool. *is_search_round* says that their reply made no other calls."""
    conversation.note_loaded(name for _, result in searches for name in found_names(result))
    loads = conversation.native_search() or NativeSearch()
    written = [(call.arguments, loads.text_read(result)) for call, result in searches]
    conversation.note_searches(written, is_search_round=is_search_round)
