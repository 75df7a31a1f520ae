"""What replicas tell each other of the rates that are limited."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.clock import Clock
from tests.kit.service import NOW_S
from toolsearch.calling.rates import Bucket
from toolsearch.errors import Kept, StorageError
from toolsearch.service.web.shared_rates import SharedRates
from toolsearch.storage.records import RecordStore
from toolsearch.storage.sqlite.place import SqliteStorage

REQUESTS: Bucket = ("acme\nkey_1", "requests")
Made = Callable[[str], tuple[SharedRates, list[tuple[Bucket, int]]]]


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW_S)


@pytest.fixture
def steady() -> Clock:
    return Clock()


@pytest.fixture
def made(tmp_path: Path, clock: Clock, steady: Clock) -> Made:
    """Makes a replica, and the list of what it is told."""
    records = SqliteStorage(tmp_path / "toolsearch.db").records

    def make(replica: str) -> tuple[SharedRates, list[tuple[Bucket, int]]]:
        told: list[tuple[Bucket, int]] = []
        return SharedRates(records, replica, clock, steady, lambda bucket, amount: told.append((bucket, amount))), told

    return make


async def test_what_was_used_is_told_once(made: Made) -> None:
    (ours, heard_here), (theirs, heard_there) = made("a"), made("b")
    await theirs.exchange()
    ours.used(REQUESTS, 2)
    ours.used(REQUESTS, 1)
    for _ in range(2):
        await ours.exchange()
        await theirs.exchange()
    ours.used(REQUESTS, 4)
    await ours.exchange()
    await theirs.exchange()

    assert (heard_here, heard_there) == ([], [(REQUESTS, 3), (REQUESTS, 4)])


async def test_what_is_used_again_after_a_pause_counts_from_its_beginning(made: Made, steady: Clock) -> None:
    (ours, _), (theirs, heard) = made("a"), made("b")
    await theirs.exchange()
    for amount in (5, 2):
        ours.used(REQUESTS, amount)
        await ours.exchange()
        await theirs.exchange()
        steady.now_s += 11

    assert heard == [(REQUESTS, 5), (REQUESTS, 2)]


async def test_what_cannot_be_read_while_the_clock_is_ahead_is_not_counted_again(made: Made, clock: Clock) -> None:
    """Ahead by more than the minute for which it can be read."""
    (ours, _), (theirs, heard) = made("a"), made("b")
    await theirs.exchange()
    ours.used(REQUESTS, 5)
    await ours.exchange()
    await theirs.exchange()
    for step_s in (100, -100):
        clock.now_s += step_s
        await theirs.exchange()

    assert heard == [(REQUESTS, 5)]


async def test_what_was_used_is_told_for_ten_seconds_whatever_the_clock_says(made: Made, clock: Clock) -> None:
    (ours, _), (theirs, heard) = made("a"), made("b")
    await theirs.exchange()
    ours.used(REQUESTS, 5)
    clock.now_s += 1_000
    await ours.exchange()
    await theirs.exchange()

    assert heard == [(REQUESTS, 5)]


async def test_a_replica_that_starts_does_not_count_what_was_used_before(made: Made) -> None:
    ours, _ = made("a")
    ours.used(REQUESTS, 5)
    await ours.exchange()
    theirs, heard = made("b")
    await theirs.exchange()
    ours.used(REQUESTS, 2)
    await ours.exchange()
    await theirs.exchange()

    assert heard == [(REQUESTS, 2)]


async def test_while_the_store_is_away_nothing_fails_and_what_was_used_is_told_afterwards(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise StorageError("away", Kept.RECORDS)

    (ours, _), (theirs, heard) = made("a"), made("b")
    await theirs.exchange()
    ours.used(REQUESTS, 5)
    with monkeypatch.context() as patch:
        patch.setattr(RecordStore, "put", away)
        await ours.exchange()
    await ours.exchange()
    await theirs.exchange()

    assert heard == [(REQUESTS, 5)]


async def test_nothing_is_written_while_nothing_is_used(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[object] = []
    put = RecordStore.put
    monkeypatch.setattr(RecordStore, "put", lambda *values, **more: written.append(put(*values, **more)))
    ours, _ = made("a")
    await ours.exchange()
    ours.used(REQUESTS, 1)
    await ours.exchange()
    await ours.exchange()

    assert len(written) == 1
