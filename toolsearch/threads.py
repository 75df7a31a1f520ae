"""Threads of our own: for plain functions, and one with an event loop for coroutines in code without one.

Nobody waits behind another's work, and the program ends without them.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import sys
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import aclosing, suppress
from functools import partial
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from toolsearch.chores import end
from toolsearch_indexes.forking import follow_forks

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Deliver = Callable[[], None]
_Job = Callable[[], _Deliver]


class ThreadCache:
    """Daemon threads that are started when no idle one is left, and end after *idle_s* seconds without work."""

    def __init__(self, idle_s: float = 10.0) -> None:
        self._idle_s = idle_s
        self._idle: list[SimpleQueue[_Job]] = []  # the queue of each idle thread; the last used thread is taken first
        follow_forks(self)

    def before_fork(self) -> None:
        """Nothing has to be waited for."""

    def after_fork(self, *, in_child: bool) -> None:
        if in_child:
            self._idle.clear()

    def start(self, job: _Job) -> None:
        """Run *job* in a thread at once, and then the function that it returns. Neither may raise."""
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
                except ValueError:  # another thread has just taken the queue: a job will come
                    continue
                return
            deliver = job()
            self._idle.append(jobs)  # idle again before the caller learns the result and asks for a thread
            deliver()
            del job, deliver  # otherwise they stay in memory until the next job


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
        except StopIteration as error:  # a future cannot carry it, and the caller would wait forever
            failure = RuntimeError("the function raised StopIteration")
            failure.__cause__ = error
            settle = partial(_settle, answer, answer.set_exception, failure)
        except BaseException as error:  # noqa: BLE001  the caller's error, which is passed on
            settle = partial(_settle, answer, answer.set_exception, error)
        return partial(_deliver, loop, settle)

    _threads.start(job)
    return await answer


def _deliver(loop: asyncio.AbstractEventLoop, settle: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop is closed, so nobody waits any more
        loop.call_soon_threadsafe(settle)


def _settle(answer: asyncio.Future[Any], set_outcome: Callable[[Any], None], outcome: object) -> None:
    if not answer.done():  # a cancellation may have ended it
        set_outcome(outcome)


class FairLock:
    """A lock between threads that is given in the order of the requests."""

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
        turn.acquire()  # waits until the holder of the lock hands it on

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_held = False


class Places:
    """Room for *count* tasks at once on each event loop. The others wait in order."""

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
        """As `in_thread`, as soon as there is room."""
        async with self._places.here():
            return await in_thread(function, *args, **kwargs)


# Searches compute, so more threads would not be faster.
search_threads = BoundedThreads(min(32, (os.cpu_count() or 1) + 4))


def run_sync(work: Coroutine[Any, Any, _T], instead: str) -> _T:
    """Run *work* and wait for its result; an interrupt cancels it.

    One loop serves all calls, since the open connections of a model's client belong to the loop that made them. Raises
    RuntimeError, which names the coroutine to await *instead*, if an event loop runs, since waiting would stop that
    loop.
    """
    try:
        _require_no_loop(f"await {instead}")
    except RuntimeError:
        work.close()
        raise
    return _result(work)


def iterate_sync(items: AsyncGenerator[_T], instead: str) -> Generator[_T]:
    """Iterate over *items*. Each is computed only when it is asked for.

    Closing or dropping the iterator closes *items*. Raises RuntimeError, which names the iterator to use *instead*, if
    an event loop runs, at the start or at any item.
    """
    _require_no_loop(f"async for ... in {instead}")
    return _iterated(items, instead)


def _iterated(items: AsyncGenerator[_T], instead: str) -> Generator[_T]:
    steps = _Steps(items)
    try:
        while True:
            _require_no_loop(f"async for ... in {instead}")
            if steps.is_of_parent:
                raise RuntimeError(f"{instead} was begun before this process was forked; begin it anew")
            try:
                item = _result(steps.next())
            except StopAsyncIteration:
                return
            yield item
    finally:
        steps.close()


class _Steps(Generic[_T]):
    """Iterates over *items* in one task, one step for each request.

    One task is needed, since a timeout or a context variable within an async generator belongs to its task.
    """

    def __init__(self, items: AsyncGenerator[_T]) -> None:
        self._items = items
        self._asked: asyncio.Queue[asyncio.Future[_T]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._loop = _own_loop.running()

    @property
    def is_of_parent(self) -> bool:
        """Whether the iteration began before a fork, in a loop that only the parent has."""
        return self._loop is not _own_loop.loop

    async def next(self) -> _T:
        """Return the next item. Raises StopAsyncIteration at the end, or the error of the items."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        answer: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        self._asked.put_nowait(answer)
        return await answer

    def close(self) -> None:
        """End the task, and wait for its end where that is possible."""
        if self._task is None or self.is_of_parent:
            return
        if sys.is_finalizing() or _is_in_a_loop():  # the loop's thread has ended, or is perhaps the current one
            self._loop.call_soon_threadsafe(self._task.cancel)
        else:
            _result(self._end(self._task))

    async def _run(self) -> None:
        answer = await self._asked.get()
        try:
            async with aclosing(self._items) as items:
                async for item in items:
                    if not answer.cancelled():  # an interrupt has cancelled the waiting caller
                        answer.set_result(item)
                    answer = await self._asked.get()
        except BaseException as error:
            if answer.done():  # nobody waits, since the iterator is being closed
                raise
            answer.set_exception(error)
        else:
            if not answer.cancelled():
                answer.set_exception(StopAsyncIteration())

    async def _end(self, task: asyncio.Task[None]) -> None:
        await end(task)
        if not task.cancelled():
            task.result()


def _result(work: Coroutine[Any, Any, _T]) -> _T:
    future = asyncio.run_coroutine_threadsafe(work, _own_loop.running())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _require_no_loop(instead: str) -> None:
    if _is_in_a_loop():
        raise RuntimeError(f"an event loop is running here, and waiting would block it; use '{instead}'")


def _is_in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _OwnLoop:
    """The loop that runs all coroutines here. After a fork the child starts one of its own."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()
        follow_forks(self)

    def running(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self.loop is None:
                self.loop = asyncio.new_event_loop()
                threading.Thread(target=self.loop.run_forever, name="toolsearch-sync", daemon=True).start()
            return self.loop

    def before_fork(self) -> None:
        self._starting.acquire()

    def after_fork(self, *, in_child: bool) -> None:
        if in_child:
            self.loop = None
        self._starting.release()


_own_loop = _OwnLoop()
