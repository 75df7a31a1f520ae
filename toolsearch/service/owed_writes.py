"""Writes that the store could not take, which are done once it is back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from toolsearch.errors import StorageError

logger = logging.getLogger(__name__)

_PAUSE_S: Final = 1.0
_MOST: Final = 10_000


class OwedWrites:
    """Use it within one event loop. *what* they are is for the log.

    *most* are kept; more are lost, and so is what is owed when the process ends.
    """

    def __init__(self, what: str, *, most: int = _MOST, pause_s: float = _PAUSE_S) -> None:
        self._what = what
        self._most = most
        self._pause_s = pause_s
        self._owed: dict[tuple[str, str], Callable[[], object]] = {}  # by tenant and id
        self._paying = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def owe(self, place: tuple[str, str], write: Callable[[], object], error: StorageError) -> None:
        """Do *write* later, which has failed by *error*, in place of what is owed for *place* already."""
        if error.retry_after_s is None or len(self._owed) >= self._most:
            logger.warning("%s could not be kept: %s", self._what, error)
            return
        self._owed[place] = write
        if self._task is None:
            self._task = asyncio.create_task(self._pay_all())

    async def pay(self, place: tuple[str, str]) -> None:
        """Do at once what is owed for *place*. Raises StorageError, and it is still owed, while the store is away."""
        async with self._paying:
            write = self._owed.get(place)
            if write is None:
                return
            try:
                await asyncio.to_thread(write)
            except StorageError as error:
                if error.retry_after_s is not None:
                    raise
                logger.warning("%s could not be kept: %s", self._what, error)
            del self._owed[place]

    async def aclose(self) -> None:
        """Try once more, and give up."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._try_all()

    async def _pay_all(self) -> None:
        try:
            while self._owed:
                await asyncio.sleep(self._pause_s)
                await self._try_all()
        finally:
            self._task = None

    async def _try_all(self) -> None:
        for place in list(self._owed):
            try:
                await self.pay(place)
            except StorageError:  # still away
                return
