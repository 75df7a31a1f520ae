"""Runs the tool calls of one reply: in parallel, within limits, and with a result for each, whatever happens to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolsearch.calling.arguments import parse_arguments
from toolsearch.calling.blocks import text_block
from toolsearch.calling.convert import capped, convert
from toolsearch.calling.limits import CallLimits, TurnCounter
from toolsearch.calling.result import ToolResult
from toolsearch.calling.validation import check_arguments
from toolsearch.calling.wire import ToolCall
from toolsearch.discovery.port import ToolScope
from toolsearch.errors import BadSettingError, ToolExecutionError, ToolSearchError, ToolTimeoutError
from toolsearch.tools.definition import Json, Tool, ToolCallback, ToolContext
from toolsearch.tools.output import ToolOutput

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Permitted:
    """A call that may run: its tool is known and within limits, its arguments fit."""

    call: ToolCall
    tool: Tool
    callback: ToolCallback
    arguments: Mapping[str, Json]


class ToolCallingManager:
    """Runs tool calls. Holds nothing of a turn or a session: one manager serves them all, also on several loops.

    timeout_s              for one call of a tool whose metadata sets none; waiting for others is not counted
    max_parallel           calls of one batch that run at once; the others wait in order
    max_result_characters  of text in one result; the rest is cut off, and the result says so
    """

    def __init__(
        self,
        *,
        limits: CallLimits | None = None,
        timeout_s: float = 60.0,
        max_parallel: int = 16,
        max_result_characters: int = 100_000,
    ) -> None:
        for name, value in (
            ("timeout_s", timeout_s),
            ("max_parallel", max_parallel),
            ("max_result_characters", max_result_characters),
        ):
            if not value > 0:
                raise BadSettingError(f"{name} must be more than 0, got {value}")
        self._limits = limits or CallLimits()
        self._timeout_s = timeout_s
        self._max_parallel = max_parallel
        self._max_result_characters = max_result_characters

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

        Cancelling this cancels every call. What is raised here is a fault of *scope*, or no Exception at all.
        """
        turn = turn or TurnCounter()
        prepared = [self._prepare(call, scope, turn) for call in calls]
        room = asyncio.Semaphore(self._max_parallel)

        async def finish(item: _Permitted | ToolResult) -> ToolResult:
            if isinstance(item, ToolResult):
                return item
            async with room:
                return await self._run(item, scope, ToolContext(context or {}))

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(finish(item)) for item in prepared]
        return [task.result() for task in tasks]

    def _prepare(self, call: ToolCall, scope: ToolScope, turn: TurnCounter) -> _Permitted | ToolResult:
        """Say whether *call* may run; if not, its result says why. In order and before any call runs, so repeatable."""
        try:
            turn.count(call.name, self._limits)
            tool = scope.resolve(call.name)
            if tool.callback is None:
                raise ToolExecutionError(
                    f"the tool {call.name!r} can be found, but not called: its source gives no way to run it"
                )
            arguments = parse_arguments(call.arguments)
            check_arguments(tool.definition, arguments)
        except ToolSearchError as error:
            logger.info("call of %.80r refused: %s", call.name, error.code)
            return self._failure(call, error)
        return _Permitted(call, tool, tool.callback, arguments)

    async def _run(self, permitted: _Permitted, scope: ToolScope, context: ToolContext) -> ToolResult:
        call, tool = permitted.call, permitted.tool
        scope.begin_call(tool.name)
        try:
            value = await self._answer(permitted, context)
            output = capped(convert(value), self._max_result_characters)
        except ToolSearchError as error:
            logger.info("tool %s failed: %s", tool.name, error.code)
            return self._failure(call, error)
        except Exception as error:
            logger.exception("tool %s failed", tool.name)
            return self._failure(call, error)
        finally:
            scope.end_call(tool.name)
        return ToolResult(
            call_id=call.id,
            name=call.name,
            content=output.content,
            structured=output.structured,
            is_error=output.is_error,
            return_direct=tool.metadata.return_direct and not output.is_error,
            error_code=ToolExecutionError.code if output.is_error else None,
        )

    async def _answer(self, permitted: _Permitted, context: ToolContext) -> object:
        """Raises ToolTimeoutError, and whatever the tool raises."""
        timeout_s = permitted.tool.metadata.timeout_s or self._timeout_s
        deadline = asyncio.timeout(timeout_s)
        try:
            async with deadline:
                return await _uncancelled(permitted.callback, permitted.arguments, context)
        except TimeoutError as error:
            if not deadline.expired():
                raise  # the tool's own
            raise ToolTimeoutError(
                f"the tool {permitted.tool.name!r} did not answer within {timeout_s:g} s; it may have had its effect"
            ) from error

    def _failure(self, call: ToolCall, error: Exception) -> ToolResult:
        message = str(error).strip() or type(error).__name__
        output = capped(ToolOutput((text_block(message),)), self._max_result_characters)
        code = error.code if isinstance(error, ToolSearchError) else ToolExecutionError.code
        return ToolResult(call.id, call.name, output.content, is_error=True, error_code=code)


async def _uncancelled(callback: ToolCallback, arguments: Mapping[str, Json], context: ToolContext) -> object:
    """Call; a cancellation that came from inside the tool is its failure, not ours to pass on."""
    try:
        return await callback.call(arguments, context)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise ToolExecutionError("the tool was cancelled from within") from error
