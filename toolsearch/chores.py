"""Tasks that run in the background while nobody awaits them, and how they are ended."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel *tasks*, and wait until each has ended, however it does."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


class Chores:
    """Tasks that run until they are done, or until `aclose`. To be used from one event loop."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()  # the loop itself keeps no task alive

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        await end(*self._tasks)
