"""The ways in which a model can be given its tools. A conversation is counted in each of them.

Searches really run, but tools do not: their answers are known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Final, Literal, Protocol, TypeAlias, TypedDict, cast

from toolsearch.bench.conversations import Use
from toolsearch.calling.limits import TurnCounter
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.discovery.pass_through import PassThrough
from toolsearch.engine import ToolSearch
from toolsearch.sessions.anticipation import ANTICIPATING
from toolsearch.sessions.options import SessionOptions
from toolsearch.sessions.port import ToolScope
from toolsearch.sessions.savings import Savings
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool, ToolContext, ToolDefinition
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import CALL_TOOL
from toolsearch.tools.results import text_block
from toolsearch.wire.capabilities import Endpoint, RevealMode, capabilities_of
from toolsearch.wire.formats import Entries, WireFormat, as_reply, render_messages, wire_module
from toolsearch.wire.messages import AssistantMessage
from toolsearch.wire.native_search import NativeSearch

ANSWERS: Final = "canned answers"  # the context key of a dict: id of a call -> the tool's answer


class Clock:
    """The time of a conversation that is played: *now_s* is set by who plays it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class CannedManager(ToolCallingManager):
    """Gives each call the answer that its context has for it, and runs nothing but searches."""

    async def execute(
        self,
        calls: Sequence[ToolCall],
        scope: ToolScope,
        *,
        context: Mapping[str, Any] | None = None,
        turn: TurnCounter | None = None,
    ) -> list[ToolResult]:
        answers = (context or {}).get(ANSWERS)
        if answers is None:
            return await super().execute(calls, scope, context=context, turn=turn)
        return [_answered(call, scope, answers) for call in calls]


class CannedOptions(TypedDict):
    """Options of an engine, see `ToolSearch`."""

    manager: ToolCallingManager
    clock: Clock
    options: SessionOptions


class _NotRun:
    """Marks a tool as callable, since answers to searches mark tools that are not."""

    async def call(self, arguments: JsonObject, context: ToolContext) -> object:
        raise NotImplementedError("tools are answered for by the `CannedManager`")


def callable_tools(tools: Iterable[Tool]) -> list[Tool]:
    """*tools*, each with a callback. Tools from a listing have none of their own."""
    return [tool if tool.callback is not None else replace(tool, callback=_NotRun()) for tool in tools]


def engine_options(clock: Clock, options: SessionOptions | None = None) -> CannedOptions:
    """The engine's options for playing conversations over its catalog: tools are searched even if they are few."""
    searched = replace(options or SessionOptions(), pass_through=PassThrough(0), anticipate=True)
    return {"manager": CannedManager(), "clock": clock, "options": searched}


def _answered(call: ToolCall, scope: ToolScope, answers: Mapping[str, str]) -> ToolResult:
    scope.resolve(call.name)  # a call that really runs resolves its tool, too
    return ToolResult(call.id, call.name, (text_block(answers[call.id]),))


EVERY: Final = "every definition"
FOUND_BEFORE: Final = "found before"
ANTICIPATED: Final = "anticipated"
_numbers = count(1)  # every conversation gets a session of its own
WayName: TypeAlias = Literal["every definition", "found before", "anticipated"] | RevealMode


class Way(Protocol):
    """A way of giving one conversation its tools.

    can_search     whether the model can search for more tools
    has_own_front  whether the conversation's list is of no other, so that no other has it cached
    """

    can_search: bool
    has_own_front: bool

    def hear(self, said: str) -> Entries:
        """The user has spoken. Return the entries to append behind the user's."""
        ...

    def tools(self) -> Sequence[JsonObject]:
        """The tool list of the next request."""
        ...

    def can_call(self, name: str) -> bool:
        """Whether the model knows the tool from the list of the last request and from the conversation."""
        ...

    def call(self, use: Use, call_id: str) -> ToolCall:
        """How the model calls it."""
        ...

    def write(self, calls: Sequence[ToolCall], text: str) -> Entries:
        """The model's reply with *calls* and the text before them, in the conversation's format."""
        ...

    async def execute(self, reply: Entries, answers: Mapping[str, str] | None) -> Entries:
        """The entries to append after *reply*. *answers* are by the calls' ids; None for a search."""
        ...

    def end_turn(self) -> None:
        """The model has answered the user."""
        ...


class Every:
    """All definitions in each request."""

    can_search = False
    has_own_front = False

    def __init__(self, definitions: Iterable[ToolDefinition], endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._list(definitions)

    def hear(self, said: str) -> Entries:  # noqa: ARG002  the list stays
        return []

    def tools(self) -> Sequence[JsonObject]:
        return self._tools

    def can_call(self, name: str) -> bool:
        return name in self._names

    def call(self, use: Use, call_id: str) -> ToolCall:
        return ToolCall(call_id, use.name, use.arguments)

    def write(self, calls: Sequence[ToolCall], text: str) -> Entries:
        return render_messages([AssistantMessage(text, tuple(calls))], self.endpoint.wire_format)

    # No session reads it.
    async def execute(self, reply: Entries, answers: Mapping[str, str] | None) -> Entries:  # noqa: ARG002
        results = [ToolResult(call_id, "", (text_block(text),)) for call_id, text in (answers or {}).items()]
        return wire_module(self.endpoint.wire_format).write_results(results)

    def end_turn(self) -> None:
        """The list stays."""

    def _list(self, definitions: Iterable[ToolDefinition]) -> None:
        definitions = sorted(definitions, key=lambda definition: definition.name)
        self._tools = list(map(wire_module(self.endpoint.wire_format).write_tool, definitions))
        self._names = {definition.name for definition in definitions}


class FoundBefore(Every):
    """Gives each turn the tools that a search for the user's words finds. The model cannot search itself."""

    has_own_front = True

    def __init__(self, engine: ToolSearch, endpoint: Endpoint, count: int) -> None:
        super().__init__((), endpoint)
        self._engine = engine
        self._count = count

    def hear(self, said: str) -> Entries:
        found = self._engine.search(said, limit=self._count, kinds=["tool"])
        self._list(self._engine.catalog.get(each.name).definition for each in found)
        return []


class Searched:
    """The search tool and the tools that the model finds by it, in one of the exposures.

    anticipates  whether tools that the user's words surely ask for are shown before the model is asked
    """

    can_search = True

    def __init__(
        self, engine: ToolSearch, endpoint: Endpoint, exposure: RevealMode, *, anticipates: bool = False
    ) -> None:
        self.endpoint = endpoint
        self.has_own_front = False
        self._exposure = exposure
        self._anticipates = anticipates
        self._session = engine.session(f"conversation {next(_numbers)}", exposure=exposure)

    def hear(self, said: str) -> Entries:
        if not self._anticipates:
            return []
        is_first, endpoint = self._session.state.sent.now.endpoint is None, self.endpoint
        entries = self._session.begin_turn(said, self._format, model=endpoint.model, cloud=endpoint.cloud)
        self.has_own_front |= is_first and not entries and bool(self._session.discovered)
        return entries

    def tools(self) -> Sequence[JsonObject]:
        return self._session.tools(self._format, model=self.endpoint.model, cloud=self.endpoint.cloud)

    @property
    def _format(self) -> WireFormat:
        return cast("WireFormat", self.endpoint.wire_format)

    def can_call(self, name: str) -> bool:
        return self._session.state.sent.now.has_shown(name)

    def call(self, use: Use, call_id: str) -> ToolCall:
        if use.name in self._session.state.sent.now.visible:
            return ToolCall(call_id, use.name, use.arguments)
        return ToolCall(call_id, CALL_TOOL, {"name": use.name, "arguments": use.arguments})

    def write(self, calls: Sequence[ToolCall], text: str) -> Entries:
        native = NativeSearch() if self._exposure == "deferred" else None
        message = AssistantMessage(text, tuple(calls))
        return render_messages([message], self.endpoint.wire_format, native_search=native)

    async def execute(self, reply: Entries, answers: Mapping[str, str] | None) -> Entries:
        context: dict[str, Any] = {} if answers is None else {ANSWERS: answers}
        return await self._session.execute(as_reply(reply, self.endpoint.wire_format), context=context)

    def end_turn(self) -> None:
        self._session.end_turn()

    def savings(self) -> Savings:
        """As the session counts them."""
        return self._session.savings()


def ways_of(endpoint: Endpoint) -> list[WayName]:
    """All ways that the model takes: without a search first, then the best exposure with anticipation, if it has any,
    then the exposures, the best first.
    """
    modes = capabilities_of(endpoint).modes
    anticipated: list[WayName] = [ANTICIPATED] if modes[0] in ANTICIPATING else []
    return [EVERY, FOUND_BEFORE, *anticipated, *modes]


def way_of(name: WayName, engine: ToolSearch, endpoint: Endpoint, *, found_before: int) -> Way:
    """Begin a conversation; *found_before* is how many tools are looked up for the user's words."""
    if name == EVERY:
        return Every((tool.definition for tool in engine.catalog), endpoint)
    if name == FOUND_BEFORE:
        return FoundBefore(engine, endpoint, found_before)
    if name == ANTICIPATED:
        return Searched(engine, endpoint, capabilities_of(endpoint).modes[0], anticipates=True)
    return Searched(engine, endpoint, name)
