"""Exchanges the use of rates between the replicas of one store every second."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from toolsearch.calling.rates import Bucket
from toolsearch.chores import running
from toolsearch.errors import StorageError
from toolsearch.repeated_warnings import RepeatedWarning
from toolsearch.storage.records import THE_SERVICE, Record, RecordStore

logger = logging.getLogger(__name__)
OnUse: TypeAlias = Callable[[Bucket, int], None]
RATE_USE: Final = "rate use"  # the kind of the records of use, one for each replica
_EXCHANGED_EVERY_S: Final = 1.0
# Seconds for which a replica reports a bucket after its last use; the others look every second.
_TOLD_FOR_S: Final = 10.0
_KEPT_S: Final = 60.0  # seconds for which the report of a replica that has ended is kept
_MOST: Final = 50_000  # buckets that one replica keeps
_PAGE: Final = 1_000  # replicas that are read


@dataclass(slots=True)
class _Used:
    """*begun_s* distinguishes this count from an earlier, forgotten one of the same bucket."""

    begun_s: float
    total: int = 0
    at_s: float = 0.0


class SharedRates:
    """Use it within one event loop. *replica* is the id of this one.

    clock   gives seconds since 1970, for the expiry of this replica's reports
    steady  gives seconds that only grow
    on_use  called with the use of a bucket through another replica
    """

    def __init__(
        self,
        records: RecordStore,
        replica: str,
        clock: Callable[[], float],
        steady: Callable[[], float],
        on_use: OnUse,
    ) -> None:
        self._records = records
        self._replica = replica
        self._clock = clock
        self._steady = steady
        self._on_use = on_use
        # Buckets used through this replica, least recently used first.
        self._used: OrderedDict[Bucket, _Used] = OrderedDict()
        self._is_told = True
        self._seen: dict[str, Mapping[str, Any]] | None = None  # other replica -> its last report
        self._one_at_a_time = asyncio.Lock()  # two overlapping readings would count some uses twice
        self._warning = RepeatedWarning(logger)

    def used(self, bucket: Bucket, amount: int) -> None:
        now_s = self._steady()
        used = self._used.setdefault(bucket, _Used(now_s))
        used.total, used.at_s = used.total + amount, now_s
        self._used.move_to_end(bucket)
        self._is_told = False
        self._forget(now_s)

    async def exchange(self) -> None:
        """Report this replica's use to the others, and take note of theirs."""
        async with self._one_at_a_time:
            await self._exchange()

    async def _exchange(self) -> None:
        self._forget(self._steady())
        told = None if self._is_told else {"\n".join(bucket): [u.begun_s, u.total] for bucket, u in self._used.items()}
        self._is_told = True
        try:
            others = await asyncio.to_thread(self._write_and_read, told, self._clock())
        except StorageError as error:
            self._is_told = False
            self._warning.warn(f"rates hold for this replica alone for now: {error}")
            return
        self._warning.is_well()
        self._take_note({record.id: record.document for record in others if record.id != self._replica})

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Exchange every second while the block runs."""
        async with running(self._keep_exchanging()):
            yield

    async def _keep_exchanging(self) -> None:
        while True:
            await self.exchange()
            await asyncio.sleep(_EXCHANGED_EVERY_S)

    def _forget(self, now_s: float) -> None:
        while self._used:
            bucket, oldest = next(iter(self._used.items()))
            if oldest.at_s >= now_s - _TOLD_FOR_S and len(self._used) <= _MOST:
                return
            del self._used[bucket]

    def _write_and_read(self, told: dict[str, Any] | None, now_s: float) -> list[Record]:
        if told is not None:
            expires_s = now_s + _KEPT_S
            self._records.put(THE_SERVICE, RATE_USE, self._replica, told, over=None, at_s=now_s, expires_s=expires_s)
        return self._records.page(THE_SERVICE, RATE_USE, limit=_PAGE, at_s=now_s)

    def _take_note(self, told: dict[str, Mapping[str, Any]]) -> None:
        """Apply the reports of other replicas. Use from before the first look is ignored, since this replica was not
        running.

        A replica's last report is kept while its record cannot be read, for example after a clock was set forwards.
        Otherwise all its use would be counted again.
        """
        seen = self._seen or {}
        if self._seen is not None:
            for replica, counts in told.items():
                before = seen.get(replica, {})
                for bucket, (begun_s, total) in counts.items():
                    known_begun_s, known = before.get(bucket, (begun_s, 0))
                    if more := total - (known if known_begun_s == begun_s else 0):
                        self._on_use(_shared_bucket(bucket), more)
        absent = [each for each in seen.items() if each[0] not in told]
        self._seen = {**dict(absent[-_PAGE:]), **told}


def _shared_bucket(text: str) -> Bucket:
    owner, _, what = text.rpartition("\n")
    return owner, what
