"""Runs calls of tools, by name or through a call tool, in the pipeline that all calls use.

A server's answer is passed on whole: neither cut nor converted.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from mcp import MCPError
from mcp.types import INVALID_PARAMS

from toolsearch.calling.hooks import AfterCall, BeforeCall, log_failure
from toolsearch.calling.pipeline import Admitted, CallOutcome, CallPipeline, Refused, admit
from toolsearch.discovery.call_tools import InnerCall
from toolsearch.discovery.view import View
from toolsearch.documents.skills import SKILL_FILE
from toolsearch.engine import ToolSearch
from toolsearch.errors import (
    BadArgumentsError,
    CallDeniedError,
    NotCallableHereError,
    ToolExecutionError,
    ToolSearchError,
    TooManyError,
    UnapprovedToolError,
    UnknownToolError,
)
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.exposure.clients import ClientSessions
from toolsearch.gateway.proxy.entries import Entries
from toolsearch.gateway.proxy.repeats import RepeatGuard
from toolsearch.gateway.proxy.suspended_calls import ANY_ROOM, Room
from toolsearch.gateway.registry import Registry
from toolsearch.gateway.status import ASKS, CANCELLED, INTERNAL_ERROR, CallEnd
from toolsearch.sessions.skills import place_of
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool, ToolCallback, ToolContext, ToolDefinition
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.results import ToolOutput, text_block
from toolsearch.upstreams.interface import Downstream
from toolsearch.wire.mcp.definitions import INPUT_SCHEMA
from toolsearch.wire.mcp.eras import result_for
from toolsearch.wire.mcp.requests import (
    as_error,
    asks_for_input,
    call_params,
    read_call,
    read_content,
    read_result,
    write_result,
)

if TYPE_CHECKING:
    from toolsearch.gateway.audit import GatewayAudit
    from toolsearch.gateway.proxy.tool_rates import CountedCall, ToolRates


@runtime_checkable
class RawToolCallback(ToolCallback, Protocol):
    """A callback for a tool that is called under another name, or in another place, than it was found.

    The gateway calls `call_raw` in place of `call`, which serves everybody else.
    """

    async def call_raw(
        self, params: Mapping[str, Any], caller: Caller, downstream: Downstream, room: Room
    ) -> dict[str, Any]:
        """Answer ``tools/call`` with *params*, whose arguments are checked; return the raw result for *caller*'s era.

        *params* also hold the data that the client brings from an earlier round: answers, and the state of the server.
        *downstream* takes progress and questions. *room* is as in `Relay.send`. Raises the errors of `Gateway.call`.
        """
        ...


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClientCall:
    """One ``tools/call`` with *params* as the client sent them.

    view   the tools, skills, prompts and resources in the caller's reach
    call   the call of the tool itself, even if the client has called a call tool; *inner* is None if it has not
    fault  the reason why the call cannot be read, or made
    is_for_program  the client itself reads a skill, and verifies it, so that no budget of a model holds
    """

    caller: Caller
    params: Mapping[str, Any]
    downstream: Downstream
    view: View
    call: ToolCall
    inner: InnerCall | None = None
    fault: ToolSearchError | None = None
    is_for_program: bool = False

    @property
    def tool(self) -> Tool | None:
        """The tool in reach that is called, or the skill, prompt or resource that is read."""
        return self.view.find_entry(self.call.name)

    def with_params(self, name: str, arguments: JsonObject) -> dict[str, Any]:
        return {**self.params, **call_params(name, arguments)}


class ClientCalls:
    """Answers the calls of clients, by name or through a call tool, in the pipeline that all calls use.

    sessions       knows how much of skills each client's model has read
    before, after  hooks around each call
    repeats        refuses calls that are repeated in vain; it may be changed
    rates          counts the calls of principals; it may be changed
    audit          records each call before it is sent
    """

    def __init__(
        self,
        engine: ToolSearch,
        registry: Registry,
        entries: Entries,
        sessions: ClientSessions,
        *,
        before: Sequence[BeforeCall] = (),
        after: Sequence[AfterCall] = (),
        repeats: RepeatGuard | None = None,
        rates: ToolRates | None = None,
        audit: GatewayAudit | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._registry = registry
        self._entries = entries
        self._sessions = sessions
        self._runner = engine.manager.runner
        self._pipeline = CallPipeline(
            self._runner.max_result_characters, before=before, after=after, telemetry=engine.telemetry
        )
        self._is_reviewed = bool(before)
        self.repeats = repeats
        self.rates = rates
        self._audit = audit
        self._clock = clock

    def read(self, caller: Caller, params: Mapping[str, Any], downstream: Downstream) -> ClientCall:
        call = ClientCall(caller, params, downstream, self._engine.view(caller.principal.reach), read_call(params))
        try:
            inner = InnerCall.parse(call.call)
        except BadArgumentsError as error:
            return replace(call, fault=error)
        return call if inner is None else replace(call, call=ToolCall("", inner.name, inner.arguments), inner=inner)

    def again(self, call: ClientCall) -> ClientCall:
        """*call*, with what is in the reach of its caller by now."""
        caller = call.caller.again()
        if caller is call.caller:
            return call
        return replace(call, caller=caller, view=self._engine.view(caller.principal.reach))

    def may_know(self, caller: Caller, name: str) -> bool:
        """Whether *caller* reaches the tool of that name, and it is approved."""
        reach = caller.principal.reach
        try:
            self._registry.require_approved(name, reach)
        except UnapprovedToolError:
            return False
        return self._engine.view(reach).find_entry(name) is not None

    async def complete(self, call: ClientCall) -> CallOutcome:
        """Failures on our side become results with ``isError``, for the model to read.

        The outcome's *error* is a ToolSearchError by which we refused the call or could not bring it to its server, or
        an MCPError if the server refused it, with the server's own error. It is a NotCallableHereError for a tool with
        neither a server nor a callback, once the call has passed all other checks.
        """
        item, counted = self._counted(call)
        run = partial(self._run_or_read, call, counted or ANY_ROOM)
        outcome = await self._pipeline.complete(item, run, _context(call.caller))
        if isinstance(item, Admitted) and not outcome.is_pending:
            is_held = outcome.result.error_code == ToolExecutionError.HELD.code  # and is to be asked for again
            if self.repeats is not None and not is_held:
                self.repeats.note(call.caller, item, outcome.result)
            if counted is not None:
                await counted.answered(outcome.result)
        return outcome

    async def count_content(
        self, caller: Caller, method: str, definition: ToolDefinition, send: Callable[[Room], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        """Have *send* answer a request by *method* for what an entry contains. It counts as a call of the entry.

        Raises as *send*, and TooManyError and StorageError before anything is sent.
        """
        started_s, code = self._clock(), INTERNAL_ERROR
        try:
            counted = self.rates.begin(caller, Tool(definition)) if self.rates is not None else None
            if self._audit is not None:
                await self._audit.begins(caller, definition, method)
            raw = await send(counted or ANY_ROOM)
            code = ASKS if asks_for_input(raw) else ""
            if counted is not None and not code:
                await counted.answered(ToolResult("", definition.name, read_content(raw)))
        except asyncio.CancelledError:
            code = CANCELLED
            raise
        except (ToolSearchError, MCPError) as error:
            code = error.code if isinstance(error, ToolSearchError) else ToolExecutionError.code
            raise
        finally:
            if self._audit is not None:
                seconds = self._clock() - started_s
                self._audit.ended(caller, CallEnd(definition.name, definition, code=code, seconds=seconds), method)
        return raw

    def _counted(self, call: ClientCall) -> tuple[Admitted | Refused, CountedCall | None]:
        """Admit the call, and only then count it: nobody learns of a limit of a tool that is out of reach."""
        try:
            if call.fault is not None:
                raise call.fault
            admitted = self._admitted(call, call.call)
            if self.repeats is not None:
                admitted = self.repeats.checked(call.caller, admitted)
            return admitted, self.rates.begin(call.caller, admitted.tool) if self.rates is not None else None
        except ToolSearchError as error:
            return Refused(call.call, error), None

    def _admitted(self, call: ClientCall, made: ToolCall) -> Admitted:
        """Check the call: clients need not check arguments, even of tools that they list."""
        try:
            return admit(made, partial(self._callable, call))
        except BadArgumentsError as error:
            if call.inner is None:
                raise
            raise BadArgumentsError(f"{error}; query select:{made.name} for its {INPUT_SCHEMA}") from error

    def _callable(self, call: ClientCall, name: str) -> Tool:
        """The tool of that name, which the caller may call in this way, or what is read under that name.

        Raises UnknownToolError with near names, UnapprovedToolError for a tool in reach that awaits approval, and
        CallDeniedError for one that needs another call tool.
        """
        call = self.again(call)
        self._registry.require_approved(name, call.caller.principal.reach)
        tool = call.view.get_entry(name)
        if call.inner is not None:
            call.inner.require_allowed(tool)
        return tool

    def _look_again(self, call: ClientCall, admitted: Admitted) -> None:
        """Raise ToolSearchError if *admitted* may not be sent any more. Called right before it is sent.

        Connecting to its server may bring a new listing. In that listing the tool may await approval, be missing, have
        another safety class or take other arguments.
        """
        tool = admitted.tool
        now = self._callable(call, admitted.call.name)
        if now is tool:
            return
        now = self._admitted(call, replace(admitted.call, arguments=admitted.arguments)).tool
        if now.remote_name != tool.remote_name:
            raise UnknownToolError(tool.name)
        if now.override != tool.override or (self._is_reviewed and now != tool):
            raise CallDeniedError(
                f"the definition of {tool.name!r} has changed since the call was approved; look at it, and call again"
            )

    async def _run_or_read(self, call: ClientCall, room: Room, admitted: Admitted, context: ToolContext) -> CallOutcome:
        """Run the tool, or read the skill as far as the budget of the caller's model allows."""
        if self._audit is not None:
            try:
                await self._audit.begins(call.caller, admitted.tool.definition)
            except ToolSearchError as error:
                return self._pipeline.failed(admitted.call, error, was_run=False)
        if call.is_for_program or not admitted.tool.is_skill:
            return await self._run(call, room, admitted, context)
        path, line = place_of(admitted.arguments)
        asked = replace(admitted, arguments={} if path is None else {"file": path})
        outcome = await self._run(call, room, asked, context)
        if outcome.is_pending or outcome.result.is_error:
            return outcome
        whole = ToolOutput(outcome.result.content)
        try:
            read = await self._sessions.skill_within_budget(call.caller, whole, path or SKILL_FILE, line)
        except ToolSearchError as error:
            return self._pipeline.failed(admitted.call, error)
        raw = None if outcome.raw is None else {**outcome.raw, "content": [*map(dict, read.content)]}
        return replace(outcome, result=replace(outcome.result, content=read.content), raw=raw)

    async def _run(self, call: ClientCall, room: Room, admitted: Admitted, context: ToolContext) -> CallOutcome:
        """Have the tool's server or callback answer within *room*, or hand the call back if it has neither."""
        tool, is_refused = admitted.tool, False

        def look_again() -> None:
            nonlocal is_refused
            is_refused = True
            self._look_again(call, admitted)
            is_refused = False

        try:
            if tool.callback is None and tool.origin is not None:
                sent = call.with_params(tool.remote_name, admitted.arguments)
                raw = await self._entries.answer(call.caller, tool, sent, call.downstream, look_again, room)
                return _answered(admitted.call, raw)
            look_again()
            if isinstance(tool.callback, RawToolCallback):
                sent = call.with_params(tool.name, admitted.arguments)
                raw = await tool.callback.call_raw(sent, call.caller, call.downstream, room)
                return _answered(admitted.call, raw)
            if tool.callback is not None:
                with room:
                    return await self._runner.run(admitted, context)
        except NotCallableHereError:
            pass
        except ToolSearchError as error:
            log_failure(logger, f"tool {tool.name} failed", error)
            was_run = not is_refused and not isinstance(error, BadArgumentsError | CallDeniedError | TooManyError)
            return self._pipeline.failed(admitted.call, error, was_run=was_run)
        except MCPError as error:
            return CallOutcome(_failure(admitted.call, error.message, ToolExecutionError.code), error=error)
        # The error has the name and the definition that the caller knows.
        handed_back = NotCallableHereError(tool.definition, admitted.arguments)
        result = _failure(admitted.call, str(handed_back), handed_back.code)
        return CallOutcome(result, error=handed_back, was_run=False)


def _answered(call: ToolCall, raw: Mapping[str, Any]) -> CallOutcome:
    if asks_for_input(raw):
        return CallOutcome(ToolResult(call.id, call.name, ()), raw, is_pending=True)
    return CallOutcome(read_result(raw, call), raw)


def _failure(call: ToolCall, message: str, code: str) -> ToolResult:
    return ToolResult(call.id, call.name, (text_block(message),), is_error=True, error_code=code)


def mcp_answer(call: ClientCall, outcome: CallOutcome) -> dict[str, Any]:
    """The answer to *call* in the form of the caller's era.

    Raises MCPError if the server refused the call, or if the client itself has called a tool that it may not call. A
    call tool answers with a result then, for the model to read. Raises NotCallableHereError for a call that is handed
    back.
    """
    match outcome.error:
        case MCPError() | NotCallableHereError() as error:
            raise error
        case UnknownToolError() as error if call.inner is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {error}")
        case UnapprovedToolError() as error if call.inner is None:
            raise MCPError(INVALID_PARAMS, str(error))
        case _:
            pass
    if outcome.raw is not None:
        return dict(outcome.raw)
    written, result = write_result(outcome.result), outcome.result
    return result_for(as_error(written, result.error_code) if result.is_error else written, call.caller.era)


def _context(caller: Caller) -> ToolContext:
    """Data about the caller for hooks and callbacks; nothing of it goes to a server."""
    session = caller.session or caller.session_key
    return ToolContext(principal=caller.principal.id, client=caller.client_name, session=session)
