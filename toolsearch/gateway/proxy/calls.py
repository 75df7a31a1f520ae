"""Runs calls of tools, by name or through a call tool, in the pipeline that all calls use.

A server's answer is passed on whole: neither cut nor converted.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

from mcp import MCPError
from mcp.types import INVALID_PARAMS

from toolsearch.calling.hooks import AfterCall, BeforeCall, log_failure
from toolsearch.calling.limits import CallLimits, TurnCounter
from toolsearch.calling.pipeline import Admitted, CallPipeline, Outcome, Refused, admit
from toolsearch.calling.tool_runner import ToolRunner
from toolsearch.discovery.call_tools import InnerCall
from toolsearch.errors import (
    BadArgumentsError,
    CallDeniedError,
    NotCallableHereError,
    ToolExecutionError,
    ToolSearchError,
    UnapprovedToolError,
    UnknownToolError,
    text_for_model,
)
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.exposure.surface import Surface
from toolsearch.gateway.proxy.relay import Relay
from toolsearch.gateway.settings import GatewaySettings, SessionCallLimits
from toolsearch.gateway.status import SESSION_IDLE_S
from toolsearch.telemetry import Telemetry
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool, ToolCallback, ToolContext
from toolsearch.tools.results import text_block
from toolsearch.upstreams.interface import Downstream
from toolsearch.wire.mcp.definitions import INPUT_SCHEMA
from toolsearch.wire.mcp.eras import result_for
from toolsearch.wire.mcp.requests import (
    CALL_TOOL,
    as_error,
    asks_for_input,
    call_params,
    error_result,
    read_call,
    read_result,
    write_result,
)


@runtime_checkable
class RawToolCallback(ToolCallback, Protocol):
    """A callback for a tool that is called under another name, or in another place, than it was found.

    The gateway calls `call_raw` in place of `call`, which serves everybody else.
    """

    async def call_raw(self, params: Mapping[str, Any], caller: Caller, downstream: Downstream) -> dict[str, Any]:
        """Answer ``tools/call`` with *params*, whose arguments are checked; return the raw result for *caller*'s era.

        *params* also hold the data that the client brings from an earlier round: answers, and the state of the server.
        *downstream* takes progress and questions. Raises the errors of `Gateway.call`.
        """
        ...


logger = logging.getLogger(__name__)
McpReply: TypeAlias = dict[str, Any] | MCPError | NotCallableHereError


@dataclass(frozen=True, slots=True)
class VerbatimFace:
    """The `Face` of one request; *params* are those of its ``tools/call``.

    runner      runs the callbacks of tools without a server
    readmit     called right before a call is sent; raises ToolSearchError if it may not be sent any more
    is_by_name  whether the client has called the tool itself rather than a call tool. Then an unknown tool is answered
                with an error of the protocol, as any server would
    """

    relay: Relay
    runner: ToolRunner
    caller: Caller
    params: Mapping[str, Any]
    downstream: Downstream
    readmit: Callable[[Admitted], None]
    is_by_name: bool

    async def run(self, admitted: Admitted, context: ToolContext) -> Outcome[McpReply]:
        callback, last_look = admitted.tool.callback, _LastLook(self.readmit, admitted)
        if callback is None and admitted.tool.origin is not None:
            return await self._answered(admitted, self._by_server(admitted, last_look), last_look)
        try:
            last_look()
        except ToolSearchError as error:
            return replace(self.failed(admitted.call, error), was_run=False)
        if isinstance(callback, RawToolCallback):
            return await self._answered(admitted, self._by_raw_callback(callback, admitted), last_look)
        if callback is None:
            return _handed_back(admitted)
        outcome = await self.runner.run(admitted, context)
        return replace(self.replaced(admitted, outcome.delivered), was_run=outcome.was_run)

    def _by_server(self, admitted: Admitted, admit: Callable[[], None]) -> Coroutine[Any, Any, dict[str, Any]]:
        tool = admitted.tool
        sent = {**self.params, **call_params(tool.remote_name, admitted.arguments)}
        return self.relay.send(self.caller, tool.definition.server, CALL_TOOL, sent, self.downstream, admit)

    def _by_raw_callback(self, callback: RawToolCallback, admitted: Admitted) -> Coroutine[Any, Any, dict[str, Any]]:
        sent = {**self.params, **call_params(admitted.tool.name, admitted.arguments)}
        return callback.call_raw(sent, self.caller, self.downstream)

    async def _answered(
        self, admitted: Admitted, answer: Coroutine[Any, Any, dict[str, Any]], last_look: _LastLook
    ) -> Outcome[McpReply]:
        call = admitted.call
        try:
            raw = await answer
        except NotCallableHereError:
            return _handed_back(admitted)  # the reply has the name and definition that the caller knows
        except ToolSearchError as error:
            log_failure(logger, f"tool {admitted.tool.name} failed", error)
            return replace(self.failed(call, error), was_run=not last_look.has_refused)
        except MCPError as error:
            return Outcome(error, _refusal(call, error.message, ToolExecutionError.code))
        return Outcome(raw, None if asks_for_input(raw) else read_result(raw, call))

    def failed(self, call: ToolCall, error: ToolSearchError) -> Outcome[McpReply]:
        text = text_for_model(error)
        result = _refusal(call, text, error.code)
        if self.is_by_name and isinstance(error, UnknownToolError):
            return Outcome(MCPError(INVALID_PARAMS, f"Unknown tool: {error}"), result)
        if self.is_by_name and isinstance(error, UnapprovedToolError):
            return Outcome(MCPError(INVALID_PARAMS, str(error)), result)
        return Outcome(error_result(text, error.code), result)

    def replaced(self, admitted: Admitted, result: ToolResult) -> Outcome[McpReply]:  # noqa: ARG002
        """Only *result* is kept. Everything that the server sent is dropped, in particular its ``_meta``."""
        raw = write_result(result)
        return Outcome(
            result_for(as_error(raw, result.error_code) if result.is_error else raw, self.caller.era), result
        )


@dataclass(slots=True)
class _LastLook:
    """Calls `VerbatimFace.readmit` for an `UpstreamRequest`, and remembers whether it has refused the call."""

    readmit: Callable[[Admitted], None]
    admitted: Admitted
    has_refused: bool = field(default=False, init=False)

    def __call__(self) -> None:
        try:
            self.readmit(self.admitted)
        except ToolSearchError:
            self.has_refused = True
            raise


def _handed_back(admitted: Admitted) -> Outcome[McpReply]:
    error = NotCallableHereError(admitted.tool.definition, admitted.arguments)
    return Outcome(error, _refusal(admitted.call, str(error), error.code), was_run=False)


def _refusal(call: ToolCall, message: str, code: str) -> ToolResult:
    return ToolResult(call.id, call.name, (text_block(message),), is_error=True, error_code=code)


class SessionLimits:
    """Counts the calls of the *max_sessions* latest sessions; after *idle_s* without a call a session starts again at
    zero.

    Clients without a session, such as those of 2026, are counted together by principal. To be used from one event loop.
    """

    def __init__(
        self,
        limits: CallLimits,
        *,
        max_sessions: int,
        idle_s: float = SESSION_IDLE_S,
        clock: Callable[[], float],
    ) -> None:
        self._limits = limits
        self._max_sessions = max_sessions
        self._idle_s = idle_s
        self._clock = clock
        self._sessions: OrderedDict[tuple[str, str | None], tuple[float, TurnCounter]] = OrderedDict()  # oldest first

    @classmethod
    def of(cls, settings: GatewaySettings, clock: Callable[[], float]) -> Self | None:
        """None if *settings* limit nothing."""
        if settings.limits == SessionCallLimits():
            return None
        return cls(settings.limits, max_sessions=settings.http.max_sessions, clock=clock)

    def counted(self, caller: Caller, admitted: Admitted) -> Admitted:
        """Count the call. Every request counts, even one that only brings answers for a server.

        Raises CallLimitError or RepeatedCallError if a limit is reached.
        """
        counter, name = self._counter(caller), admitted.tool.name
        counter.count(name, self._limits)
        return replace(admitted, key=counter.check_repeat(name, admitted.arguments, self._limits))

    def note(self, caller: Caller, admitted: Admitted, result: ToolResult) -> None:
        """Note the result of the call, for the guard against repeated calls."""
        self._counter(caller).note_results([(admitted.key, result)])

    def _counter(self, caller: Caller) -> TurnCounter:
        key, now_s = (caller.principal.id, caller.session or caller.session_key), self._clock()
        used_s, counter = self._sessions.pop(key, (now_s, None))
        if counter is None or now_s - used_s >= self._idle_s:
            counter = TurnCounter(unit="session")
        self._sessions[key] = (now_s, counter)
        if len(self._sessions) > self._max_sessions:
            self._sessions.popitem(last=False)
        return counter


@dataclass(frozen=True, slots=True)
class CallReply:
    """The outcome of a call of *name*: *delivered* is the raw result, or the exception for `CallProxy.call` to raise.

    *tool* is None if nothing in reach has the name; *code* is the code of the error, "" if there is none.
    """

    name: str
    tool: Tool | None
    delivered: McpReply
    was_run: bool
    code: str


class CallProxy:
    """*runner* runs callbacks; *before* and *after* are hooks around each call; *limits* counts the calls of client
    sessions.
    """

    def __init__(
        self,
        surface: Surface,
        relay: Relay,
        runner: ToolRunner,
        *,
        before: Sequence[BeforeCall] = (),
        after: Sequence[AfterCall] = (),
        telemetry: Telemetry | None = None,
        limits: SessionLimits | None = None,
    ) -> None:
        self._surface = surface
        self._relay = relay
        self._runner = runner
        self._pipeline = CallPipeline(before=before, after=after, telemetry=telemetry)
        self._is_reviewed = bool(before)
        self._limits = limits

    async def call(self, caller: Caller, params: Mapping[str, Any], downstream: Downstream) -> CallReply:
        """Answer ``tools/call`` with *params* as the client sent them.

        Failures on our side become results with ``isError``, for the model to read. *delivered* is an MCPError if the
        server refused the call, with the server's own error, or if there is no such tool. It is a NotCallableHereError
        for a tool with neither a server nor a callback, once the call has passed all other checks.
        """
        call, inner = read_call(params), None
        item: Admitted | Refused
        try:
            if inner := InnerCall.parse(call):
                call = ToolCall("", inner.name, inner.arguments)
            item = self._admitted(caller, call, inner)
            if self._limits is not None:
                item = self._limits.counted(caller, item)
        except ToolSearchError as error:
            item = Refused(call, error)
        face = VerbatimFace(
            self._relay,
            self._runner,
            caller,
            params,
            downstream,
            readmit=partial(self._readmitted, caller, inner),
            is_by_name=inner is None,
        )
        outcome = await self._pipeline.complete(item, face, _context(caller))
        if self._limits is not None and isinstance(item, Admitted) and outcome.result is not None:
            self._limits.note(caller, item, outcome.result)
        tool = item.tool if isinstance(item, Admitted) else self._surface.find(caller, call.name)
        code = outcome.result.error_code if outcome.result is not None else None
        return CallReply(call.name, tool, outcome.delivered, outcome.was_run, code or "")

    def _admitted(self, caller: Caller, call: ToolCall, inner: InnerCall | None) -> Admitted:
        """Check the call, by name or through a call tool: clients need not check arguments, even of tools that they
        list.
        """
        try:
            return admit(call, partial(self._resolve, caller, inner))
        except BadArgumentsError as error:
            if inner is None:
                raise
            raise BadArgumentsError(f"{error}; query select:{call.name} for its {INPUT_SCHEMA}") from error

    def _resolve(self, caller: Caller, inner: InnerCall | None, name: str) -> Tool:
        tool = self._surface.resolve(caller, name)
        if inner is not None:
            inner.require_allowed(tool)
        return tool

    def _readmitted(self, caller: Caller, inner: InnerCall | None, admitted: Admitted) -> None:
        """Raise ToolSearchError if *admitted* may not be sent any more.

        Connecting to its server may bring a new listing. In that listing the tool may await approval, be missing, have
        another safety class or take other arguments.
        """
        tool = admitted.tool
        now = self._resolve(caller, inner, admitted.call.name)
        if now is tool:
            return
        now = self._admitted(caller, replace(admitted.call, arguments=admitted.arguments), inner).tool
        if now.remote_name != tool.remote_name:
            raise UnknownToolError(tool.name)
        if self._is_reviewed and now != tool:
            raise CallDeniedError(
                f"the definition of {tool.name!r} has changed since the call was approved; look at it, and call again"
            )


def _context(caller: Caller) -> ToolContext:
    """Data about the caller for hooks and callbacks; nothing of it goes to a server."""
    session = caller.session or caller.session_key
    return ToolContext(principal=caller.principal.id, client=caller.client_name, session=session)
