"""Threads of our own for plain functions: nobody waits behind another's work, and the program ends without them.

The threads of asyncio and `concurrent.futures` are few, are shared with everything else in the process, and are joined
when the interpreter exits, which a function that hangs then prevents. anyio's end with the loop, but count a function
that nobody waits for any more as gone. Source of the design: trio's thread cache (trio/_core/_thread_cache.py).
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from toolsearch_indexes.forking import follow_forks

_P = ParamSpec("_P")
_T = TypeVar("_T")

_Deliver = Callable[[], None]
_Job = Callable[[], _Deliver]


class ThreadCache:
    """Daemon threads that are started when no idle one is left, and end after *idle_s* seconds without work."""

    def __init__(self, idle_s: float = 10.0) -> None:
        self._idle_s = idle_s
        self._idle: list[SimpleQueue[_Job]] = []  # the queue of each idle thread; the thread used last is used first
        follow_forks(self)

    def before_fork(self) -> None:
        """Nothing has to be waited for."""

    def after_fork(self, *, in_child: bool) -> None:
        if in_child:
            self._idle.clear()

    def start(self, job: _Job) -> None:
        """Run *job* in a thread at once, and then what it returns. Neither may raise."""
        try:
            self._idle.pop().put(job)
        except IndexError:
            jobs: SimpleQueue[_Job] = SimpleQueue()
            jobs.put(job)
            threading.Thread(target=self._work, args=(jobs,), name="toolsearch-worker", daemon=True).start()

    def _work(self, jobs: SimpleQueue[_Job]) -> None:
        while True:
            try:
                job = jobs.get(timeout=self._idle_s)
            except Empty:
                try:
                    self._idle.remove(jobs)
                except ValueError:  # somebody has just taken it: a job is on its way
                    continue
                return
            deliver = job()
            self._idle.append(jobs)  # before anybody learns of the result, and asks for a thread again
            deliver()
            del job, deliver  # or they would live, with all that they hold, until the next one


_threads = ThreadCache()


async def in_thread(function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Return what *function* returns, run in a thread at once and with the caller's context variables.

    Cancelling this stops the waiting; the function itself runs to its end.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[_T] = loop.create_future()
    context = contextvars.copy_context()

    def job() -> _Deliver:
        try:
            settle = partial(_settle, answer, answer.set_result, context.run(function, *args, **kwargs))
        except StopIteration as error:  # which no future can carry: the caller would wait forever
            failure = RuntimeError("the function raised StopIteration")
            failure.__cause__ = error
            settle = partial(_settle, answer, answer.set_exception, failure)
        except BaseException as error:  # noqa: BLE001  it is the caller's
            settle = partial(_settle, answer, answer.set_exception, error)
        return partial(_deliver, loop, settle)

    _threads.start(job)
    return await answer


def _deliver(loop: asyncio.AbstractEventLoop, settle: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop is closed, so nobody waits any more
        loop.call_soon_threadsafe(settle)


def _settle(answer: asyncio.Future[Any], set_outcome: Callable[[Any], None], outcome: object) -> None:
    if not answer.done():  # by a cancellation
        set_outcome(outcome)


class FairLock:
    """A lock between threads that is given in the order in which it was asked for."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._is_held = False
        self._waiting: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        with self._guard:
            if not self._is_held:
                self._is_held = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()  # until whoever holds this lock hands it on

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_held = False


class Places:
    """Room for *count* at once on each event loop; the others wait in the order in which they came."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def here(self) -> asyncio.Semaphore:
        """The places of the loop that runs."""
        loop = asyncio.get_running_loop()
        if loop not in self._by_loop:
            self._by_loop[loop] = asyncio.Semaphore(self._count)
        return self._by_loop[loop]


class BoundedThreads:
    """Runs at most *count* functions at once on each event loop, in threads; the others wait in order."""

    def __init__(self, count: int) -> None:
        self._places = Places(count)

    async def run(self, function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """As `in_thread`, once there is room."""
        async with self._places.here():
            return await in_thread(function, *args, **kwargs)


search_threads = BoundedThreads(min(32, (os.cpu_count() or 1) + 4))  # searches compute, so more would not be faster
