"""Runs the tool calls of one reply: in parallel, within limits, and with a result for each, whatever happens to it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolsearch.calling.arguments import parse_arguments
from toolsearch.calling.convert import capped
from toolsearch.calling.failures import DefaultToolExecutionErrorProcessor, ToolExecutionErrorProcessor, with_results
from toolsearch.calling.hooks import AfterCall, BeforeCall, checked_hooks, decide, revise
from toolsearch.calling.limits import CallLimits, TurnCounter
from toolsearch.calling.result import ToolResult
from toolsearch.calling.running import run_tool
from toolsearch.calling.tool_threads import ToolThreads
from toolsearch.calling.validation import checked_arguments
from toolsearch.calling.wire import ToolCall
from toolsearch.errors import (
    BadSettingError,
    CallLimitError,
    ToolExecutionError,
    ToolSearchError,
    ToolStuckError,
    UnfinishedCallError,
    UnknownToolError,
    shown_name,
)
from toolsearch.sessions.port import ToolScope
from toolsearch.telemetry import Telemetry
from toolsearch.tools.blocks import text_block
from toolsearch.tools.definition import Tool, ToolCallback, ToolContext
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.output import ToolOutput

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Admitted:
    """A call that may run: its tool is known and within limits, its arguments fit. *key* is the turn counter's."""

    call: ToolCall
    tool: Tool
    callback: ToolCallback
    arguments: JsonObject
    key: str


@dataclass(frozen=True, slots=True)
class _Refused:
    """A call that will not be run."""

    call: ToolCall
    error: ToolSearchError


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of a call; *ends_turn* is for the application, and the result all the same for the history."""

    result: ToolResult
    ends_turn: Exception | None = None
    was_run: bool = True


class ToolCallingManager:
    """Runs tool calls. Holds nothing of a turn or a session: one manager serves them all, also on several loops.

    timeout_s              for one call of a tool whose metadata sets none; waiting for others is not counted
    max_parallel           calls of one batch that run at once; the others wait in order
    max_threads            plain functions that run at once on one event loop, over all batches; see `ToolThreads`
    max_result_characters  of text in one result; the rest is cut off, and the result says so
    before, after          hooks around each call, in this order; see `toolsearch.calling.hooks`
    error_processor        what a tool's failure means; by default the model is told of it
    context                what every tool's `ToolContext` holds; what a request gives goes before it
    clock                  gives seconds for the log; only differences count
    """

    def __init__(
        self,
        *,
        limits: CallLimits | None = None,
        timeout_s: float = 60.0,
        max_parallel: int = 16,
        max_threads: int = 64,
        max_result_characters: int = 100_000,
        before: Sequence[BeforeCall] = (),
        after: Sequence[AfterCall] = (),
        error_processor: ToolExecutionErrorProcessor | None = None,
        context: Mapping[str, Any] | None = None,
        telemetry: Telemetry | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        for name, value in (
            ("timeout_s", timeout_s),
            ("max_parallel", max_parallel),
            ("max_threads", max_threads),
            ("max_result_characters", max_result_characters),
        ):
            if not value > 0:
                raise BadSettingError(f"{name} must be more than 0, got {value}")
        self._limits = limits or CallLimits()
        self._timeout_s = timeout_s
        self._max_parallel = max_parallel
        self._threads = ToolThreads(max_threads)
        self._max_result_characters = max_result_characters
        self._before = checked_hooks(before, "before")
        self._after = checked_hooks(after, "after")
        self._error_processor = error_processor or DefaultToolExecutionErrorProcessor()
        self._context = dict(context or {})
        self._telemetry = telemetry or Telemetry()
        self._clock = clock

    async def execute(
        self,
        calls: Sequence[ToolCall],
        scope: ToolScope,
        *,
        context: Mapping[str, Any] | None = None,
        turn: TurnCounter | None = None,
    ) -> list[ToolResult]:
        """Return one result per call, in the order of *calls*; a call that fails is a result that says why.

        context  what every tool gets as its ToolContext, each a copy of its own; no model sees it
        turn     the calls made before in this turn; without it, *calls* are a turn of their own

        Cancelling this cancels every call. If a limit that raises is reached, or the error processor raises, the other
        calls are run to their end, and then the first such error, in call order, is raised: `partial_results` gives
        what it carries. What else is raised here is a fault of *scope*, or no Exception at all.
        """
        turn = turn or TurnCounter()
        admitted = [self._admit(call, scope, turn) for call in calls]
        room = asyncio.Semaphore(self._max_parallel)
        merged = {**self._context, **(context or {})}
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._settle(each, scope, ToolContext(merged), room)) for each in admitted]
        outcomes = [task.result() for task in tasks]
        results = [outcome.result for outcome in outcomes]
        ran = zip(admitted, results, strict=True)
        turn.note_results((each.key, result) for each, result in ran if isinstance(each, _Admitted))
        for outcome in outcomes:
            if outcome.ends_turn is not None:
                raise with_results(outcome.ends_turn, results)
        return results

    def _admit(self, call: ToolCall, scope: ToolScope, turn: TurnCounter) -> _Admitted | _Refused:
        """Say whether *call* may run. In order and before any call runs, so repeatable."""
        try:
            turn.count(call.name, self._limits)
            if call.unfinished:
                raise UnfinishedCallError(call.unfinished)
            tool = scope.resolve(call.name)
            if tool.callback is None:
                raise ToolExecutionError(
                    f"the tool {call.name!r} can be found, but not called: its source gives no way to run it"
                )
            arguments = checked_arguments(tool.definition, parse_arguments(call.arguments))
            key = turn.check_repeat(call.name, arguments, self._limits)
        except ToolSearchError as error:
            return _Refused(call, error)
        return _Admitted(call, tool, tool.callback, arguments, key)

    async def _settle(
        self, item: _Admitted | _Refused, scope: ToolScope, context: ToolContext, room: asyncio.Semaphore
    ) -> _Outcome:
        if isinstance(item, _Admitted):
            item = await self._reviewed(item, context)
        if isinstance(item, _Refused):
            return self._refuse(item)
        async with room:
            return await self._observed(item, scope, context)

    async def _reviewed(self, admitted: _Admitted, context: ToolContext) -> _Admitted | _Refused:
        """Let the hooks decide; outside the room for parallel calls, since they may wait for a person."""
        try:
            arguments = await decide(self._before, admitted.call, admitted.arguments, admitted.tool, context)
        except ToolSearchError as error:
            return _Refused(admitted.call, error)
        return replace(admitted, arguments=arguments)

    def _refuse(self, refused: _Refused) -> _Outcome:
        call, error = refused.call, refused.error
        logger.info("call of %r refused: %s", shown_name(call.name), error.code)
        # At a limit, and for half a call, nothing was looked up.
        is_known = not isinstance(error, UnknownToolError | CallLimitError | UnfinishedCallError)
        with self._telemetry.tool_call(call.name, call_id=call.id, is_known=is_known) as span:
            span.failed(error.code)
        ends_turn = isinstance(error, CallLimitError) and self._limits.on_breach == "raise"
        return _Outcome(self._failure(call, str(error), error), error if ends_turn else None)

    async def _observed(self, admitted: _Admitted, scope: ToolScope, context: ToolContext) -> _Outcome:
        call, name = admitted.call, admitted.tool.name
        started_s = self._clock()
        with self._telemetry.tool_call(name, call_id=call.id, arguments=admitted.arguments) as span:
            outcome = await self._run(admitted, scope, context)
            if outcome.was_run:
                outcome = replace(outcome, result=await self._revised(admitted, outcome.result))
            if outcome.result.error_code is not None:
                span.failed(outcome.result.error_code)
            span.answered(outcome.result.text)
        elapsed_ms = (self._clock() - started_s) * 1_000
        logger.debug("tool %s: %s after %.1f ms", name, outcome.result.error_code or "answered", elapsed_ms)
        return outcome

    async def _run(self, admitted: _Admitted, scope: ToolScope, context: ToolContext) -> _Outcome:
        call, tool = admitted.call, admitted.tool
        scope.begin_call(tool.name)
        try:
            arguments = admitted.arguments
            output = await run_tool(
                tool,
                admitted.callback,
                arguments,
                context,
                timeout_s=self._timeout_s,
                max_characters=self._max_result_characters,
                threads=self._threads,
            )
        except ToolStuckError as error:
            return _Outcome(self._failure(call, str(error), error), was_run=False)
        except Exception as error:  # noqa: BLE001  whatever a tool raises is the processor's to judge
            return self._failed(call, tool, error)
        finally:
            scope.end_call(tool.name)
        return _Outcome(
            ToolResult(
                call_id=call.id,
                name=call.name,
                content=output.content,
                structured=output.structured,
                is_error=output.is_error,
                return_direct=tool.metadata.return_direct and not output.is_error,
                error_code=ToolExecutionError.code if output.is_error else None,
            )
        )

    def _failed(self, call: ToolCall, tool: Tool, error: Exception) -> _Outcome:
        if isinstance(error, ToolSearchError):
            logger.info("tool %s failed: %s", tool.name, error.code)
        else:
            logger.error("tool %s failed", tool.name, exc_info=error)
        try:
            message = self._error_processor.process(error, call, tool)
        except Exception as raised:  # noqa: BLE001  raised to the application, once the other calls are done
            return _Outcome(self._failure(call, "the tool failed, and that ended the turn", error), raised)
        return _Outcome(self._failure(call, message, error))

    def _failure(self, call: ToolCall, message: str, error: Exception) -> ToolResult:
        output = capped(ToolOutput((text_block(message),)), self._max_result_characters)
        code = error.code if isinstance(error, ToolSearchError) else ToolExecutionError.code
        return ToolResult(call.id, call.name, output.content, is_error=True, error_code=code)

    async def _revised(self, admitted: _Admitted, result: ToolResult) -> ToolResult:
        try:
            return await revise(self._after, admitted.call, admitted.tool, result)
        except ToolExecutionError as error:
            return self._failure(admitted.call, str(error), error)
