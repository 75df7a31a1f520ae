"""Whether the store can be written, as whoever sends requests to this service wants to know."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from toolsearch.errors import StorageError
from toolsearch.storage.records import THE_SERVICE, RecordStore
from toolsearch.tools.json_types import Json

READINESS: Final = "readiness"  # the kind of the record that is written, one for each replica
_KEPT_S: Final = 60.0
_LOOK_EVERY_S: Final = 1.0  # nobody needs a key to ask, and each look waits for the disk

logger = logging.getLogger(__name__)


class Readiness:
    """Use it within one event loop. *clock* gives seconds since 1970, *steady* seconds that only grow."""

    def __init__(
        self, records: RecordStore, replica: str, clock: Callable[[], float], steady: Callable[[], float]
    ) -> None:
        self._records = records
        self._replica = replica
        self._clock = clock
        self._steady = steady
        self._looking = asyncio.Lock()
        self._looked_s: float | None = None
        self._status = ""

    async def status(self) -> str:
        """``ok``, or what is wrong. It writes, unless it did so within the last second."""
        async with self._looking:
            if self._looked_s is None or self._steady() - self._looked_s >= _LOOK_EVERY_S:
                self._status = await asyncio.to_thread(self._look)
                self._looked_s = self._steady()
            return self._status

    def _look(self) -> str:
        now_s, document = self._clock(), dict[str, Json]()
        try:
            self._records.put(
                *(THE_SERVICE, READINESS, self._replica, document), over=None, at_s=now_s, expires_s=now_s + _KEPT_S
            )
        except StorageError as error:
            if error.retry_after_s is not None:
                return "store unavailable"
            logger.error("the store cannot be used: %s", error)  # noqa: TRY400
            return "store unusable"
        return "ok"
