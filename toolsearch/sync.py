"""Coroutines and streams for code without an event loop: all run on one, in a thread that starts when first needed."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncGenerator, Coroutine, Generator
from contextlib import aclosing
from typing import Any, Generic, TypeVar

from toolsearch_indexes.forking import follow_forks

_T = TypeVar("_T")


def run_sync(work: Coroutine[Any, Any, _T], instead: str) -> _T:
    """Run *work* and wait for its result; an interrupt cancels it.

    One loop serves all calls, since the connections that a model's client keeps open belong to the loop that made them.
    Raises RuntimeError, which names what to await *instead*, where an event loop runs: waiting would stop that loop.
    """
    try:
        _require_no_loop(f"await {instead}")
    except RuntimeError:
        work.close()
        raise
    return _result(work)


def iterate_sync(items: AsyncGenerator[_T], instead: str) -> Generator[_T]:
    """Iterate over *items*, each of which is worked out only when it is asked for.

    Closing the iterator closes *items*, and so does dropping it. Raises RuntimeError, which names what to iterate over
    *instead*, where an event loop runs: at once, and at each item as well.
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
    """Goes through *items* in one task, a step whenever one is asked for.

    It has to be one task, since a timeout or a context variable within an async generator belongs to the task.
    """

    def __init__(self, items: AsyncGenerator[_T]) -> None:
        self._items = items
        self._asked: asyncio.Queue[asyncio.Future[_T]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._loop = _own_loop.running()

    @property
    def is_of_parent(self) -> bool:
        """Whether this was begun before the process was forked, by a loop that only the parent has."""
        return self._loop is not _own_loop.loop

    async def next(self) -> _T:
        """Raises StopAsyncIteration at the end, else what the items raise."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        answer: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        self._asked.put_nowait(answer)
        return await answer

    def close(self) -> None:
        """End the task, and wait for its end where that is possible."""
        if self._task is None or self.is_of_parent:
            return
        if sys.is_finalizing() or _is_in_a_loop():  # the loop's thread has ended, or may be this one
            self._loop.call_soon_threadsafe(self._task.cancel)
        else:
            _result(self._end(self._task))

    async def _run(self) -> None:
        answer = await self._asked.get()
        try:
            async with aclosing(self._items) as items:
                async for item in items:
                    if not answer.cancelled():  # as it is once the one who waits was interrupted
                        answer.set_result(item)
                    answer = await self._asked.get()
        except BaseException as error:
            if answer.done():  # nobody waits: it is being closed
                raise
            answer.set_exception(error)
        else:
            if not answer.cancelled():
                answer.set_exception(StopAsyncIteration())

    async def _end(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        await asyncio.wait([task])
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
    """The loop that runs everything here. After a fork the child starts one of its own."""

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
