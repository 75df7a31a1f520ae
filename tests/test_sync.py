"""Streams for code without an event loop: when items are worked out, and how an iteration ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from contextvars import ContextVar

import pytest

from tests.kit.commands import Ran
from toolsearch.threads import iterate_sync, run_sync


class Numbers:
    """Counts up, and keeps what it has come to."""

    def __init__(self, last: int = 9, fault: Exception | None = None) -> None:
        self.made: list[int] = []
        self.is_closed = False
        self._last = last
        self._fault = fault

    async def stream(self) -> AsyncGenerator[int]:
        try:
            for number in range(self._last + 1):
                self.made.append(number)
                yield number
            if self._fault:
                raise self._fault
        finally:
            await asyncio.sleep(0)  # closing may have to wait, as for a connection
            self.is_closed = True


def test_all_items_come_in_order_and_the_stream_is_closed_at_its_end() -> None:
    numbers = Numbers(last=2)
    assert list(iterate_sync(numbers.stream(), "stream()")) == [0, 1, 2]
    assert numbers.is_closed


def test_an_item_is_worked_out_when_it_is_asked_for_and_not_before() -> None:
    numbers = Numbers()
    items = iterate_sync(numbers.stream(), "stream()")
    assert numbers.made == []
    assert next(items) == 0
    run_sync(asyncio.sleep(0), "sleep()")  # the loop goes round, and could go on
    assert numbers.made == [0]
    assert next(items) == 1
    assert numbers.made == [0, 1]
    items.close()


def test_leaving_an_iteration_early_closes_the_stream_before_going_on() -> None:
    numbers = Numbers()
    with contextlib.closing(iterate_sync(numbers.stream(), "stream()")) as items:
        for number in items:
            if number == 1:
                break
    assert numbers.is_closed
    assert numbers.made == [0, 1]


def test_dropping_an_iteration_closes_the_stream() -> None:
    numbers = Numbers()
    next(iterate_sync(numbers.stream(), "stream()"))
    assert numbers.is_closed


def test_what_the_stream_raises_comes_after_the_items_before_it() -> None:
    numbers = Numbers(last=1, fault=LookupError("no more"))
    items = iterate_sync(numbers.stream(), "stream()")
    assert [next(items), next(items)] == [0, 1]
    with pytest.raises(LookupError, match="no more"):
        next(items)
    assert numbers.is_closed
    assert list(items) == []


def test_what_closing_raises_is_raised_to_who_closes() -> None:
    async def stream() -> AsyncGenerator[int]:
        try:
            yield 1
        finally:
            raise ConnectionError("cut off")

    items = iterate_sync(stream(), "stream()")
    next(items)
    with pytest.raises(ConnectionError, match="cut off"):
        items.close()


def test_a_stream_that_cancels_itself_does_not_hang() -> None:
    async def stream() -> AsyncGenerator[int]:
        yield 1
        raise asyncio.CancelledError

    items = iterate_sync(stream(), "stream()")
    next(items)
    with pytest.raises(BaseException, match=r"^$") as raised:
        next(items)
    assert type(raised.value).__name__ == "CancelledError"


def test_an_interrupt_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    from concurrent.futures import Future

    numbers = Numbers()
    items = iterate_sync(numbers.stream(), "stream()")
    next(items)
    wait = Future.result

    def interrupted(_future: Future[int], _timeout: float | None = None) -> int:
        monkeypatch.setattr(Future, "result", wait)
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(items)
    assert numbers.is_closed


def test_one_task_runs_all_of_a_stream_with_the_context_of_who_began_it() -> None:
    """So that timeouts and context variables hold between its items."""
    here: ContextVar[str] = ContextVar("here")
    here.set("caller")

    async def stream() -> AsyncGenerator[str]:
        async with asyncio.timeout(60):
            yield here.get()
            here.set("stream")
            yield here.get()
            yield here.get()

    assert list(iterate_sync(stream(), "stream()")) == ["caller", "stream", "stream"]
    assert here.get() == "caller"


async def test_within_an_event_loop_it_is_an_error_that_says_what_to_write() -> None:
    numbers = Numbers()
    with pytest.raises(RuntimeError, match=r"use 'async for \.\.\. in stream\(\)'"):
        iterate_sync(numbers.stream(), "stream()")
    begun = await asyncio.to_thread(iterate_sync, numbers.stream(), "stream()")
    with pytest.raises(RuntimeError, match="async for"):
        next(begun)
    assert numbers.made == []


def test_a_program_that_ends_in_the_midst_of_an_iteration_ends(run_python: Callable[..., Ran]) -> None:
    program = """
from toolsearch.chat import ChatClient, ScriptedModel
chunks = ChatClient(ScriptedModel("one two three")).prompt("Count.").stream_sync()
print(next(chunks).text)
"""
    done = run_python("-c", program)
    assert (done.code, done.out, done.err) == (0, "one\n", "")
