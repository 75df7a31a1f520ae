"""What replicas tell each other of the rates that are limited: every second each writes what was used through it, and
reads what was used through the others. So no request waits for that, and a limit holds over all of them, but for what
they let through within one second.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from toolsearch.errors import StorageError
from toolsearch.storage.records import THE_SERVICE, Record, RecordStore
from toolsearch.upstreams.repeated import RepeatedWarning

logger = logging.getLogger(__name__)

RATE_USE: Final = "rate use"  # the kind of their records: one for each replica
_EXCHANGED_EVERY_S: Final = 1.0
_TOLD_FOR_S: Final = 10.0  # after the last use of a bucket; the others look every second
_KEPT_S: Final = 60.0  # what a replica has told that has gone
_MOST: Final = 50_000  # buckets of one replica
_PAGE: Final = 1_000  # replicas

Bucket: TypeAlias = tuple[str, str]
OnUse: TypeAlias = Callable[[Bucket, int], None]


@dataclass(slots=True)
class _Used:
    """*begun_s* tells this count from an earlier one of the same bucket, which was forgotten meanwhile."""

    begun_s: float
    total: int = 0
    at_s: float = 0.0


class SharedRates:
    """Use it within one event loop. *replica* is the id of this one.

    clock   gives seconds since 1970, for how long the others can read what this one tells
    steady  gives seconds that only grow
    on_use  is told what was used of a bucket through another replica
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
        self._used: OrderedDict[Bucket, _Used] = OrderedDict()  # through this one; used longest ago first
        self._is_told = True
        self._seen: dict[str, Mapping[str, Any]] | None = None  # what the others have told, by replica
        self._one_at_a_time = asyncio.Lock()  # else what was read first may be noted last, and be counted again
        self._warning = RepeatedWarning(logger)

    def used(self, bucket: Bucket, amount: int) -> None:
        now_s = self._steady()
        used = self._used.setdefault(bucket, _Used(now_s))
        used.total, used.at_s = used.total + amount, now_s
        self._used.move_to_end(bucket)
        self._is_told = False
        self._forget(now_s)

    async def exchange(self) -> None:
        """Tell the others what was used here, and take note of what they have told."""
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
        task = asyncio.create_task(self._keep_exchanging())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

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
            self._records.put(
                *(THE_SERVICE, RATE_USE, self._replica, told), over=None, at_s=now_s, expires_s=now_s + _KEPT_S
            )
        return self._records.page(THE_SERVICE, RATE_USE, limit=_PAGE, at_s=now_s)

    def _take_note(self, told: dict[str, Mapping[str, Any]]) -> None:
        """What was used before the first look counts no more: this replica was not there.

        What a replica told last stays known while its record cannot be read, as when a clock was set forwards. Without
        that, all that it ever told would count again.
        """
        seen = self._seen or {}
        if self._seen is not None:
            for replica, counts in told.items():
                before = seen.get(replica, {})
                for bucket, (begun_s, total) in counts.items():
                    known_begun_s, known = before.get(bucket, (begun_s, 0))
                    if more := total - (known if known_begun_s == begun_s else 0):
                        self._on_use(_bucket(bucket), more)
        absent = [each for each in seen.items() if each[0] not in told]
        self._seen = {**dict(absent[-_PAGE:]), **told}


def _bucket(text: str) -> Bucket:
    owner, _, what = text.rpartition("\n")
    return owner, what
