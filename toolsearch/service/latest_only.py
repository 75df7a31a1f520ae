"""Work that is asked for more often than it can be done: of what is asked for meanwhile, only the last is done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class LatestOnly(Generic[_Key, _Value]):
    """Does *work* for each key in turn, and for different keys at once. It must not raise. For one event loop."""

    def __init__(self, work: Callable[[_Key, _Value], Awaitable[None]]) -> None:
        self._work = work
        self._waiting: dict[_Key, _Value] = {}
        self._tasks: dict[_Key, asyncio.Task[None]] = {}

    def put(self, key: _Key, value: _Value) -> None:
        """Have the work done for *key* with *value*, in place of a value that waits, and after one that is at work."""
        self._waiting[key] = value
        if key not in self._tasks:
            self._tasks[key] = asyncio.create_task(self._run(key))

    @property
    def is_idle(self) -> bool:
        return not self._tasks

    async def aclose(self) -> None:
        """Break off what is at work, and forget what waits."""
        self._waiting.clear()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, key: _Key) -> None:
        try:
            while key in self._waiting:
                await self._work(key, self._waiting.pop(key))
        finally:
            del self._tasks[key]
