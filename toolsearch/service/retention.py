"""Deletes what has been kept for long enough: expired records, and receipts, figures, misses and audit by age.

Of the replicas of a service one does it at a time, while the others skip it. One that dies meanwhile hinders the others
for a minute at most.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from toolsearch.errors import StorageError
from toolsearch.service.sessions import SESSION
from toolsearch.service.settings import RetentionSettings
from toolsearch.storage.storage import Storage

_BATCH: Final = 500  # rows deleted in one transaction: some milliseconds in which others wait to write
_EVERY_S: Final = 3_600.0
UPKEEP: Final = "upkeep"  # the lease of who does it
_LEASE_S: Final = 60.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many of each were deleted."""

    records: int = 0
    receipts: int = 0
    figures: int = 0
    misses: int = 0
    audit: int = 0


def _always() -> bool:
    return True


def prune(
    storage: Storage,
    settings: RetentionSettings,
    *,
    now_s: float,
    batch: int = _BATCH,
    may_go_on: Callable[[], bool] = _always,
) -> Pruned:
    """Delete, in transactions of at most *batch* rows, what is kept no longer at the time *now_s*.

    may_go_on  is asked before each of them; it ends early where that says no
    """

    def in_batches(delete: Callable[[], int]) -> int:
        total = 0
        while may_go_on() and (deleted := delete()):
            total += deleted
        return total

    def by_age(delete: Callable[..., int], kept_s: float) -> int:
        return in_batches(lambda: delete(before_s=now_s - kept_s, limit=batch))

    return Pruned(
        records=in_batches(lambda: _prune_records(storage, now_s, batch)),
        receipts=by_age(storage.receipts.prune, settings.receipts_s),
        figures=by_age(storage.figures.prune, settings.figures_s),
        misses=by_age(storage.misses.prune, settings.misses_s),
        audit=by_age(storage.audit.prune, settings.audit_s),
    )


def prune_alone(storage: Storage, settings: RetentionSettings, *, now_s: float, replica: str) -> Pruned | None:
    """The same, as *replica*, while no other one does it; None if one does."""
    leases = storage.leases
    if not leases.take(UPKEEP, replica, for_s=_LEASE_S):
        return None
    try:
        return prune(
            storage,
            settings,
            now_s=now_s,
            may_go_on=lambda: leases.renew(UPKEEP, replica, for_s=_LEASE_S),
        )
    finally:
        leases.release(UPKEEP, replica)


async def keep_pruning(
    storage: Storage, settings: RetentionSettings, clock: Callable[[], float], *, replica: str
) -> None:
    """Prune now and once an hour, until it is cancelled. A failure is logged, and it goes on the next time."""
    while True:
        try:
            pruned = await asyncio.to_thread(prune_alone, storage, settings, now_s=clock(), replica=replica)
        except StorageError:
            logger.exception("what is too old could not be deleted")
        else:
            logger.info("deleted what was too old: %s", pruned or "another replica does it")
        await asyncio.sleep(_EVERY_S)


@asynccontextmanager
async def pruning(
    storage: Storage, settings: RetentionSettings, clock: Callable[[], float], *, replica: str
) -> AsyncGenerator[None]:
    """`keep_pruning` while the block runs."""
    task = asyncio.create_task(keep_pruning(storage, settings, clock, replica=replica), name="pruning")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def _prune_records(storage: Storage, now_s: float, batch: int) -> int:
    """A session is a record and, under the same id, the engine's own session, which goes with it."""
    with storage.transaction():
        gone = storage.records.prune(at_s=now_s, limit=batch)
        for tenant, kind, record_id in gone:
            if kind == SESSION:
                storage.sessions(tenant).delete(record_id)
    return len(gone)
