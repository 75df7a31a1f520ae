"""Writes items in batches, in the background: what comes while one batch is written goes with the next.

While the store is away, items wait for it, as many as there is room for; nobody who has added one waits with them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from toolsearch.errors import StorageError

_Item = TypeVar("_Item")

logger = logging.getLogger(__name__)


class Batches(Generic[_Item]):
    """Use it within one event loop.

    write  writes a batch; called in a thread, never twice at a time, and again with items that it may have written, if
           it says when to try again. What it cannot write otherwise is lost, and that is logged
    most   items that wait at a time; more are dropped, and that is logged, too
    """

    def __init__(self, write: Callable[[Sequence[_Item]], None], *, most: int = 100_000) -> None:
        self._write = write
        self._most = most
        self._waiting: list[_Item] = []
        self._written: asyncio.Future[None] | None = None  # of those that wait
        self._task: asyncio.Task[None] | None = None
        self._settling = asyncio.Event()  # set while somebody waits for the end, so that nothing waits for the store

    def add(self, item: _Item) -> asyncio.Future[None]:
        """What is returned is done once *item* is written, or could not be for now; it never fails."""
        if self._written is None:
            self._written = asyncio.get_running_loop().create_future()
        if len(self._waiting) < self._most:
            self._waiting.append(item)
        else:
            logger.error("%d records wait to be written already; one more is dropped", self._most)
        written = self._written
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        return asyncio.shield(written)  # so that who is cancelled while waiting cancels it for nobody else

    async def settled(self) -> None:
        """Wait until all that was added is written. What the store does not take now is lost, and that is logged."""
        self._settling.set()
        try:
            while self._task is not None:
                await asyncio.wait([self._task])
        finally:
            self._settling.clear()

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                written, self._written = self._written, None
                again_s = None
                try:
                    await asyncio.to_thread(self._write, batch)
                except StorageError as error:
                    again_s = self._kept_for_later(batch, error)
                finally:
                    if written is not None and not written.done():
                        written.set_result(None)
                if again_s is not None:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._settling.wait(), again_s)
        finally:
            self._task = None

    def _kept_for_later(self, batch: list[_Item], error: StorageError) -> float | None:
        """Return in how many seconds the store is to be tried again; None if *batch* is lost."""
        if error.retry_after_s is None or self._settling.is_set():
            logger.error("%d records of what was done could not be kept: %s", len(batch), error)
            return None
        self._waiting[:0] = batch
        return error.retry_after_s
