"""What keeps one server up: waiting, giving up, queueing, and the actor that does all of it."""

import asyncio

import pytest

from toolsearch.errors import ServerBusyError
from toolsearch.gateway.upstream.backoff import delay_s
from toolsearch.gateway.upstream.breaker import Breaker
from toolsearch.gateway.upstream.lanes import Lanes


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock) -> Breaker:
    return Breaker(clock=clock, random=lambda: 0.5)


def fail(breaker: Breaker, times: int) -> None:
    for _ in range(times):
        passage = breaker.admit()
        assert passage is not None
        passage.failed()


def test_each_failure_doubles_what_the_wait_may_be_up_to_a_minute():
    assert [delay_s(failures, lambda: 0.5) for failures in (1, 2, 3, 7, 8, 1_000)] == [0.25, 0.5, 1, 16, 30, 30]


def test_a_wait_is_anything_down_to_nothing_but_never_less_than_the_server_asked_for():
    assert delay_s(4, lambda: 0.0) == 0
    assert delay_s(1, lambda: 0.0, asked_s=7) == 7
    assert delay_s(1, lambda: 0.0, asked_s=1e9) == 600


def test_a_breaker_opens_at_the_fifth_fault_in_a_row(breaker):
    fail(breaker, 4)
    assert not breaker.is_open
    passage = breaker.admit()
    passage.answered()
    fail(breaker, 4)
    assert not breaker.is_open
    fail(breaker, 1)
    assert breaker.is_open
    assert breaker.admit() is None


def test_after_the_wait_one_request_is_let_through_and_its_answer_closes_the_breaker(breaker, clock):
    fail(breaker, 5)
    assert breaker.retry_at_s == 4  # half of 0.5 * 2**4
    clock.now_s = 4
    probe = breaker.admit()
    assert breaker.admit() is None
    probe.answered()
    assert breaker.admit() is not None


def test_a_probe_that_fails_prolongs_the_wait_and_one_that_is_given_up_leaves_its_place(breaker, clock):
    fail(breaker, 5)
    clock.now_s = 4
    breaker.admit().left()
    breaker.admit().failed()
    assert breaker.retry_at_s == 4 + 8


def test_faults_of_requests_sent_before_it_opened_change_nothing(breaker):
    early = breaker.admit()
    fail(breaker, 5)
    early.failed()
    assert (breaker.faults, breaker.retry_at_s) == (5, 4)


def test_one_fault_is_enough_where_the_server_asks_for_patience(breaker, clock):
    breaker.admit().failed(asked_s=30)
    assert breaker.is_open
    clock.now_s = 30
    assert not breaker.is_open


async def test_lanes_are_given_in_order_of_arrival_and_a_waiter_that_leaves_is_no_hole():
    lanes = Lanes("s", max_running=1, max_waiting=3)
    order: list[str] = []
    release = asyncio.Event()

    async def ride(name: str) -> None:
        async with lanes.lane():
            order.append(name)
            await release.wait()

    async with asyncio.TaskGroup() as group:
        tasks = []
        for name in "abcd":
            tasks.append(group.create_task(ride(name)))
            await asyncio.sleep(0)
        assert (lanes.running, lanes.waiting) == (1, 3)
        with pytest.raises(ServerBusyError, match="1 requests run and 3 wait; this one did not run"):
            await ride("e")
        tasks[1].cancel()
        release.set()

    assert order == ["a", "c", "d"]
    assert (lanes.running, lanes.waiting, lanes.shed) == (0, 0, 1)


async def test_a_lane_that_comes_as_its_waiter_gives_up_goes_to_the_next():
    lanes = Lanes("s", max_running=1, max_waiting=3)
    held = asyncio.Event()

    async def ride() -> None:
        async with lanes.lane():
            await held.wait()

    first, second, third = (asyncio.create_task(ride()) for _ in range(3))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)  # the second's turn has been set, and it has not run yet
    second.cancel()
    held.set()
    await asyncio.gather(first, second, third, return_exceptions=True)

    assert not third.cancelled()
    assert lanes.running == 0
