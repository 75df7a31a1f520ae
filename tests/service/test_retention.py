"""What is deleted with time, and what is left."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.kit.storage_contracts.audit import decision
from tests.kit.storage_contracts.figures import DAY_S, cell
from tests.kit.storage_contracts.misses import miss
from tests.kit.storage_contracts.receipts import receipt
from toolsearch.errors import StorageError
from toolsearch.service.service import UPKEEP, Pruned, keep_pruning, prune, prune_alone
from toolsearch.service.settings import RetentionSettings
from toolsearch.storage.sqlite.place import SqliteStorage

SETTINGS = RetentionSettings(receipts_s=10.0, figures_s=7_200.0, misses_s=30.0, audit_s=40.0)


@pytest.fixture
def storage(tmp_path: Path) -> SqliteStorage:
    return SqliteStorage(tmp_path / "kept.db")


def test_each_kind_is_kept_for_its_own_time(storage: SqliteStorage) -> None:
    """At 14,500: receipts from 14,490 on, figures of hours from 7,300 on, misses from 14,470, audit from 14,460."""
    storage.receipts.append("a", [receipt("r1", 14_489.0), receipt("r2", 14_490.0)])
    storage.figures.add("a", {cell(2): 1.0, cell(3): 2.0})
    for query, at_s in (("old", 14_469.0), ("new", 14_470.0)):
        miss(storage.misses, query, at_s)
    for at_s in (14_459.0, 14_460.0):
        storage.audit.append(decision(at_s, "a"))

    assert prune(storage, SETTINGS, now_s=14_500.0) == Pruned(receipts=1, figures=1, misses=1, audit=1)
    assert storage.receipts.page("a", limit=9) == [receipt("r2", 14_490.0)]
    assert [each.amount for each in storage.figures.sums("a", by="hour", since_s=0, until_s=DAY_S)] == [2.0]
    assert [each.query for each in storage.misses.page("a", None, limit=9)] == ["new"]
    assert [each.at_s for each in storage.audit.records(limit=9)] == [14_460.0, 14_500.0]  # the second says so
    assert prune(storage, SETTINGS, now_s=14_500.0) == Pruned()


def test_a_session_that_has_expired_goes_whole_and_no_other_of_its_name(storage: SqliteStorage) -> None:
    for tenant, expires_s in (("a", 5.0), ("b", 9.0)):
        storage.records.put(tenant, "session", "s", {}, over=0, at_s=1.0, expires_s=expires_s)
        storage.sessions(tenant).save("s", "found", version=0)
    storage.records.put("b", "job", "s", {}, over=0, at_s=1.0, expires_s=5.0)

    assert prune(storage, SETTINGS, now_s=5.0) == Pruned(records=2)
    assert (storage.sessions("a").ids(), storage.sessions("b").ids()) == ([], ["s"])
    assert storage.records.scan(limit=9)[0][:2] == ("b", "session")


def test_it_deletes_in_batches_so_that_others_can_write_between(storage: SqliteStorage) -> None:
    storage.receipts.append("a", [receipt(f"r{number:04}") for number in range(1_050)])
    storage.figures.add("a", {cell(1, session=f"s{number}"): 1.0 for number in range(1_050)})
    sizes: list[int] = []
    delete = storage.receipts.prune

    def watched(*, before_s: float, limit: int) -> int:
        sizes.append(delete(before_s=before_s, limit=limit))
        return sizes[-1]

    storage.receipts.prune = watched  # type: ignore[method-assign]
    assert prune(storage, SETTINGS, now_s=DAY_S, batch=500) == Pruned(receipts=1_050, figures=1_050)
    assert sizes == [500, 500, 50, 0]


def test_pruning_and_writing_do_not_disturb_each_other(storage: SqliteStorage) -> None:
    storage.receipts.append("a", [receipt(f"old{number:04}") for number in range(2_000)])

    def write(number: int) -> None:
        storage.receipts.append("a", [receipt(f"new{number:04}", 1_000.0)])

    with ThreadPoolExecutor(5) as threads:
        pruning = threads.submit(prune, storage, SETTINGS, now_s=1_000.0, batch=20)
        list(threads.map(write, range(200)))
        assert pruning.result() == Pruned(receipts=2_000)
    assert len(storage.receipts.page("a", limit=9_999)) == 200


def test_one_replica_deletes_at_a_time_and_the_others_skip_it(storage: SqliteStorage) -> None:
    storage.receipts.append("a", [receipt("r1")])
    storage.leases.take(UPKEEP, "one", for_s=60)

    assert prune_alone(storage, SETTINGS, now_s=1_000.0, replica="two") is None
    assert len(storage.receipts.page("a", limit=9)) == 1
    storage.leases.release(UPKEEP, "one")
    assert prune_alone(storage, SETTINGS, now_s=1_000.0, replica="two") == Pruned(receipts=1)
    assert prune_alone(storage, SETTINGS, now_s=1_000.0, replica="one") == Pruned()


def test_a_replica_whose_lease_has_run_out_stops_deleting(storage: SqliteStorage) -> None:
    """Another one may do it by then."""
    storage.receipts.append("a", [receipt(f"r{number:04}") for number in range(1_050)])
    delete = storage.receipts.prune

    def lose_lease(*, before_s: float, limit: int) -> int:
        storage.leases.release(UPKEEP, "one")
        storage.leases.take(UPKEEP, "two", for_s=60)
        return delete(before_s=before_s, limit=limit)

    storage.receipts.prune = lose_lease  # type: ignore[method-assign]
    assert prune_alone(storage, SETTINGS, now_s=1_000.0, replica="one") == Pruned(receipts=500)
    assert storage.leases.held([UPKEEP]) == {UPKEEP}


async def test_a_failure_is_logged_and_the_next_time_it_goes_on(
    storage: SqliteStorage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.receipts.append("a", [receipt("r1")])
    rounds: list[float] = []
    delete, sleep = storage.receipts.prune, asyncio.sleep

    def failing_once(*, before_s: float, limit: int) -> int:
        if not rounds:
            raise StorageError("the disk is gone")
        return delete(before_s=before_s, limit=limit)

    async def no_sleep(seconds: float) -> None:
        rounds.append(seconds)
        if len(rounds) == 2:
            raise asyncio.CancelledError
        await sleep(0)

    storage.receipts.prune = failing_once  # type: ignore[method-assign]
    monkeypatch.setattr(asyncio, "sleep", no_sleep)
    with caplog.at_level(logging.INFO), pytest.raises(asyncio.CancelledError):
        await keep_pruning(storage, SETTINGS, lambda: 1_000.0, replica="one")

    assert "could not be deleted" in caplog.text
    assert rounds == [3_600.0, 3_600.0]
    assert storage.receipts.page("a", limit=9) == []
