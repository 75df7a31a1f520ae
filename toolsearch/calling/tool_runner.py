"""Runs one tool by its callback for every caller: within its time, with a converted result or a failure as a result.

Plain tools run in threads of their manager: a limited number at once, and some may hang.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

from toolsearch.calling.delivery import converted, failure
from toolsearch.calling.hooks import ToolExecutionErrorProcessor, log_failure
from toolsearch.calling.pipeline import Admitted, CallOutcome
from toolsearch.errors import ToolSearchError, ToolStuckError, ToolTimeoutError
from toolsearch.threads import Places, in_thread
from toolsearch.tools.callbacks import contained, plain_runner, run_callback
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.definition import Tool, ToolCallback, ToolContext
from toolsearch.tools.json_types import JsonObject
from toolsearch_indexes.forking import follow_forks

_T = TypeVar("_T")


@dataclass(eq=False)
class _Call:
    """A running call. Only *task*, in which it runs, may change *deadline*."""

    tool_name: str
    deadline: asyncio.Timeout
    task: asyncio.Task[Any] | None = field(default_factory=asyncio.current_task)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop the clock of this call for the length of the block."""
        when = self.deadline.when()
        if when is None or self.deadline.expired() or asyncio.current_task() is not self.task:
            yield
            return
        now_s = asyncio.get_running_loop().time
        left_s = when - now_s()
        self.deadline.reschedule(None)
        try:
            yield
        finally:
            self.deadline.reschedule(now_s() + left_s)


class ToolThreads:
    """Runs the plain functions of tool calls in threads: *count* at once on each event loop; the others wait in order.

    The wait does not count towards a call's timeout. A function cannot be stopped when its call times out or is
    cancelled: it keeps running, its place goes to the next one, and it is counted as given up until it ends. Once
    *count* functions are given up, all further calls are refused with ToolStuckError; once functions of one tool make
    up a quarter of *count*, further calls of that tool are refused.
    """

    def __init__(self, count: int) -> None:
        self._places = Places(count)
        self._max_given_up = count
        self._max_given_up_of_one = max(1, count // 4)
        self._given_up: Counter[str] = Counter()  # tool -> functions that were given up but still run
        self._lock = threading.Lock()
        follow_forks(self)

    def before_fork(self) -> None:
        self._lock.acquire()

    def after_fork(self, *, in_child: bool) -> None:
        if in_child:
            self._given_up.clear()  # those functions run in the parent
        self._lock.release()

    @contextmanager
    def serving(self, tool_name: str, deadline: asyncio.Timeout) -> Generator[None]:
        """Run the plain functions of the block, which is one call of a tool, in these threads."""
        token = plain_runner.set(partial(self._run, _Call(tool_name, deadline)))
        try:
            yield
        finally:
            plain_runner.reset(token)

    async def _run(self, call: _Call, function: Callable[[], _T]) -> _T:
        self._refuse_if_stuck(call.tool_name)
        places = self._places.here()
        with call.paused():
            await places.acquire()
        try:
            self._refuse_if_stuck(call.tool_name)  # it may have become stuck while the call waited
            return await self._in_thread(call.tool_name, function)
        finally:
            places.release()

    def _refuse_if_stuck(self, tool_name: str) -> None:
        with self._lock:
            of_this, of_all = self._given_up[tool_name], self._given_up.total()
        if of_this >= self._max_given_up_of_one:
            raise ToolStuckError(tool_name, "earlier calls of it", of_this)
        if of_all >= self._max_given_up:
            raise ToolStuckError(tool_name, "earlier calls of tools", of_all)

    async def _in_thread(self, tool_name: str, function: Callable[[], _T]) -> _T:
        has_ended = is_given_up = False

        def run() -> _T:
            nonlocal has_ended
            try:
                return function()
            finally:
                with self._lock:
                    has_ended = True
                    if is_given_up:
                        self._given_up[tool_name] -= 1

        try:
            return await in_thread(run)
        except asyncio.CancelledError:
            with self._lock:
                if not has_ended:
                    is_given_up = True
                    self._given_up[tool_name] += 1
            raise


async def run_tool(
    tool: Tool, arguments: JsonObject, context: ToolContext, *, timeout_s: float, threads: ToolThreads
) -> object:
    """Call *tool*, which has a callback, and return what it returns.

    *timeout_s* applies unless the tool's metadata has its own. Raises ToolTimeoutError if the tool takes longer,
    ToolStuckError if it was not run because too many others hang, and the tool's own errors (see `contained`).
    """
    timeout_s = tool.metadata.timeout_s or timeout_s
    callback = cast("ToolCallback", tool.callback)
    deadline = asyncio.timeout(timeout_s)
    try:
        async with deadline:
            with contained("the tool"), threads.serving(tool.name, deadline):
                return await run_callback(callback, arguments, context)
    except TimeoutError as error:
        if not deadline.expired():
            raise  # the tool raised it, not our deadline
        raise ToolTimeoutError(
            f"the tool {tool.name!r} did not answer within {timeout_s:g} s; it may have had its effect"
        ) from error


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolRunner:
    """Keeps no state of a call, so one runner serves all calls. Its fields are as in `ToolCallingManager`."""

    threads: ToolThreads
    error_processor: ToolExecutionErrorProcessor
    timeout_s: float
    max_result_characters: int

    async def run(self, admitted: Admitted, context: ToolContext) -> CallOutcome:
        """Run the call of a tool that has a callback."""
        call, tool, characters = admitted.call, admitted.tool, self.max_result_characters
        try:
            value = await run_tool(tool, admitted.arguments, context, timeout_s=self.timeout_s, threads=self.threads)
            return CallOutcome(await converted(call, tool, value, characters))
        except ToolStuckError as error:
            return CallOutcome(failure(call, str(error), error, characters), was_run=False)
        except Exception as error:  # noqa: BLE001  the error processor judges every exception of a tool
            return self._judged(call, tool, error)

    def _judged(self, call: ToolCall, tool: Tool, error: Exception) -> CallOutcome:
        ends_turn: Exception | None = None
        if isinstance(error, ToolSearchError):
            log_failure(logger, f"tool {tool.name} failed", error)
        else:
            logger.error("tool %s failed", tool.name, exc_info=error)
        try:
            message = self.error_processor.process(error, call, tool)
        except Exception as raised:  # noqa: BLE001  raised to the application once the other calls are done
            message, ends_turn = "the tool failed; only its application can mend that", raised
        return CallOutcome(failure(call, message, error, self.max_result_characters), ends_turn=ends_turn)
