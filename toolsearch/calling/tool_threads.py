"""The threads of one manager's plain tools: how many run at once, and what happens when tools hang."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from toolsearch.errors import ToolStuckError
from toolsearch.threads import Places, in_thread
from toolsearch.tools.callbacks import plain_runner
from toolsearch_indexes.forking import follow_forks

_T = TypeVar("_T")


@dataclass(eq=False)
class _Call:
    """A call as it runs: in *task*, the only one that may change *deadline*."""

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
    """Runs the plain functions of tool calls in threads: *count* at once on each event loop, the others wait in order.

    The wait does not count towards a call's timeout. A function cannot be stopped when its call times out or is
    cancelled: it keeps running, its place goes to the next one, and it is counted as given up until it ends. Once
    *count* functions are given up, all further calls are refused with ToolStuckError; once a quarter of *count* are
    functions of one tool, further calls of that tool are.
    """

    def __init__(self, count: int) -> None:
        self._places = Places(count)
        self._max_given_up = count
        self._max_given_up_of_one = max(1, count // 4)
        self._given_up: Counter[str] = Counter()  # functions that still run, by tool
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
            self._refuse_if_stuck(call.tool_name)  # it may have become so meanwhile
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
