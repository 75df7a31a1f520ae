"""Runs the tool calls of one reply: in parallel, within limits, and with a result for each call, even if it fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from toolsearch.calling.hooks import (
    AfterCall,
    BeforeCall,
    DefaultToolExecutionErrorProcessor,
    ToolExecutionErrorProcessor,
    with_results,
)
from toolsearch.calling.limits import CallLimits, CallOptions, TurnCounter
from toolsearch.calling.pipeline import Admitted, CallOutcome, CallPipeline, Refused, admit
from toolsearch.calling.tool_runner import ToolRunner, ToolThreads
from toolsearch.errors import CallLimitError, ToolExecutionError, ToolSearchError, UnknownToolError
from toolsearch.sessions.port import ToolScope
from toolsearch.telemetry import Telemetry
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import Tool, ToolContext

_DEFAULTS = CallOptions()


class ToolCallingManager:
    """Runs tool calls. Holds nothing of a turn or a session: one manager serves them all, also on several loops.

    timeout_s              for one call of a tool whose metadata sets none; waiting for others is not counted
    max_parallel           calls of one batch that run at once; the others wait in order
    max_threads            plain functions that run at once on one event loop, over all batches; see `ToolThreads`
    max_result_characters  longest text of one result; the rest is cut off, and the result says so
    before, after          hooks around each call, in this order; see `toolsearch.calling.hooks`
    error_processor        handles a tool's failure; by default the model is told of it
    context                contents of every tool's `ToolContext`; a request's own context overrides it
    clock                  gives seconds for the log; only differences count
    """

    def __init__(
        self,
        *,
        limits: CallLimits | None = None,
        timeout_s: float = _DEFAULTS.timeout_s,
        max_parallel: int = _DEFAULTS.max_parallel,
        max_threads: int = _DEFAULTS.max_threads,
        max_result_characters: int = _DEFAULTS.max_result_characters,
        before: Sequence[BeforeCall] = (),
        after: Sequence[AfterCall] = (),
        error_processor: ToolExecutionErrorProcessor | None = None,
        context: Mapping[str, Any] | None = None,
        telemetry: Telemetry | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        # Raises BadSettingError for unusable values.
        CallOptions(timeout_s, max_parallel, max_threads, max_result_characters)
        self._limits = limits or CallLimits()
        self._max_parallel = max_parallel
        self._context = dict(context or {})
        self._pipeline = CallPipeline(
            max_result_characters, before=before, after=after, telemetry=telemetry, clock=clock
        )
        self.runner = ToolRunner(
            ToolThreads(max_threads),
            error_processor or DefaultToolExecutionErrorProcessor(),
            timeout_s=timeout_s,
            max_result_characters=max_result_characters,
        )

    async def execute(
        self,
        calls: Sequence[ToolCall],
        scope: ToolScope,
        *,
        context: Mapping[str, Any] | None = None,
        turn: TurnCounter | None = None,
    ) -> list[ToolResult]:
        """Return one result per call, in the order of *calls*; a failed call gives a result with the reason.

        context  the ToolContext of every tool, each tool with its own copy; no model sees it
        turn     the earlier calls of this turn; without it, *calls* are a turn of their own

        Cancelling this cancels every call. If a limit that raises is reached, or the error processor raises, the other
        calls are run to their end, and then the first such error, in call order, is raised; `partial_results` gives its
        results. Any other error that is raised here is a fault of *scope*, or no Exception at all.
        """
        turn = turn or TurnCounter()
        admitted = [self._admit(call, scope, turn) for call in calls]
        room = asyncio.Semaphore(self._max_parallel)
        run = partial(self._run, scope)
        merged = {**self._context, **(context or {})}
        complete = self._pipeline.complete
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(complete(each, run, ToolContext(merged), room)) for each in admitted]
        outcomes = [task.result() for task in tasks]
        results = [outcome.result for outcome in outcomes]
        ran = zip(admitted, results, strict=True)
        turn.note_results((each.key, result) for each, result in ran if isinstance(each, Admitted))
        for outcome in outcomes:
            if (error := self._ending(outcome)) is not None:
                raise with_results(error, results)
        return results

    async def _run(self, scope: ToolScope, admitted: Admitted, context: ToolContext) -> CallOutcome:
        name = admitted.tool.name
        try:
            scope.begin_call(name)
        except UnknownToolError as error:
            return self._pipeline.failed(admitted.call, error, was_run=False)
        try:
            return await self.runner.run(admitted, context)
        finally:
            scope.end_call(name)

    def _ending(self, outcome: CallOutcome) -> Exception | None:
        """The error that ends the turn, if there is one."""
        is_breach = self._limits.on_breach == "raise" and isinstance(outcome.error, CallLimitError)
        return outcome.error if is_breach else outcome.ends_turn

    def _admit(self, call: ToolCall, scope: ToolScope, turn: TurnCounter) -> Admitted | Refused:
        """Decide whether *call* may run. Calls are admitted in order, before any of them runs, so the decision is
        repeatable.
        """
        try:
            turn.count(call.name, self._limits)
            admitted = admit(call, partial(_runnable, scope))
            return replace(admitted, key=turn.check_repeat(call.name, admitted.arguments, self._limits))
        except ToolSearchError as error:
            return Refused(call, error)


def _runnable(scope: ToolScope, name: str) -> Tool:
    tool = scope.resolve(name)
    if tool.callback is None:
        raise ToolExecutionError(f"the tool {name!r} can be found, but not called: its source gives no way to run it")
    return tool
