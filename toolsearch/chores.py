"""Tasks that run in the background while nobody awaits them, and how they are ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any


async def end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel *tasks*, and wait until each has ended, however it does."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


@asynccontextmanager
async def running(*work: Coroutine[Any, Any, Any]) -> AsyncGenerator[None]:
    """Have *work* done while the block runs. Whatever has not ended by then is cancelled."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield
    finally:
        await end(*tasks)


async def is_set_within(event: asyncio.Event, seconds: float | None) -> bool:
    """Wait for *event*, but no longer than *seconds* if that is given. Return whether it is set."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


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
