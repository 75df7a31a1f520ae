"""Records that are written in batches, in the background."""

import asyncio
import logging
import threading
from collections.abc import Sequence

import pytest

from toolsearch.errors import Kept, StorageError
from toolsearch.service.activity.figures import Batches


class Store:
    """Writes once it may; *fails* says how many batches it cannot write."""

    def __init__(self, fails: int = 0) -> None:
        self.may_write = threading.Event()
        self.batches: list[list[int]] = []
        self.fails = fails

    def write(self, batch: Sequence[int]) -> None:
        assert self.may_write.wait(10)
        if self.fails:
            self.fails -= 1
            raise StorageError("the disk is full", Kept.RECEIPTS)
        self.batches.append(list(batch))


async def test_what_comes_while_a_batch_is_written_goes_with_the_next() -> None:
    store = Store()
    batches = Batches(store.write)
    first = batches.add(1)
    await asyncio.sleep(0)  # the first batch is being written now
    others = [batches.add(n) for n in (2, 3)]
    assert not first.done()
    store.may_write.set()
    await asyncio.gather(first, *others)
    assert store.batches == [[1], [2, 3]]


async def test_who_waits_is_not_failed_by_a_store_that_cannot_write(caplog: pytest.LogCaptureFixture) -> None:
    store = Store(fails=1)
    store.may_write.set()
    batches = Batches(store.write)
    with caplog.at_level(logging.ERROR):
        await batches.add(1)
    assert "1 records" in caplog.text
    await batches.add(2)
    assert store.batches == [[2]]


class AwayStore:
    """Is away until `is_back` is set."""

    def __init__(self) -> None:
        self.is_back = threading.Event()
        self.batches: list[list[int]] = []
        self.tries = 0

    def write(self, batch: Sequence[int]) -> None:
        self.tries += 1
        if not self.is_back.is_set():
            raise StorageError("nobody answers", Kept.RECEIPTS, retry_after_s=0.001)
        self.batches.append(list(batch))


async def test_what_cannot_be_written_waits_for_the_store_in_its_order_and_nobody_with_it(caplog) -> None:
    store = AwayStore()
    batches = Batches(store.write)
    await batches.add(1)
    await batches.add(2)
    store.is_back.set()
    await batches.settled()

    assert [each for batch in store.batches for each in batch] == [1, 2]
    assert caplog.text == ""


async def test_at_the_end_nothing_waits_for_a_store_that_is_away(caplog) -> None:
    store = AwayStore()
    batches = Batches(store.write)
    await batches.add(1)
    await batches.settled()

    assert store.batches == []
    assert "1 records of" in caplog.text
    assert "nobody answers" in caplog.text


async def test_no_more_wait_for_the_store_than_may(caplog) -> None:
    store = AwayStore()
    batches = Batches(store.write, most=2)
    for number in range(4):
        await batches.add(number)
    store.is_back.set()
    await batches.settled()

    assert [each for batch in store.batches for each in batch] == [0, 1]


async def test_who_is_cancelled_while_waiting_cancels_no_writing() -> None:
    store = Store()
    batches = Batches(store.write)
    one, other = batches.add(1), batches.add(2)
    one.cancel()
    store.may_write.set()
    await other
    assert store.batches == [[1, 2]]


async def test_more_than_can_wait_are_dropped_and_that_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    store = Store()
    batches = Batches(store.write, most=1)
    with caplog.at_level(logging.ERROR):
        batches.add(1)
        batches.add(2)
    store.may_write.set()
    await batches.settled()
    assert store.batches == [[1]]
    assert "one more is dropped" in caplog.text
