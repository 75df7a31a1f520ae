"""What arrives from a server unasked: so much of it a second, and never in the way of an answer."""

from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp.types import ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from tests.kit.clock import Clock
from toolsearch.upstreams.config import read_mcp_config
from toolsearch.upstreams.streams import PacedReading

ANSWER = SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={}))


class SleepingClock(Clock):
    """Goes on by what is slept."""

    def __init__(self) -> None:
        super().__init__(100.0)
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SleepingClock:
    clock = SleepingClock()
    monkeypatch.setattr(anyio, "current_time", clock)
    monkeypatch.setattr(anyio, "sleep", clock.sleep)
    return clock


class Arriving:
    """A stream of messages, each in a context of its own, which is its number here."""

    def __init__(self, *items: SessionMessage | Exception) -> None:
        self._items = list(enumerate(items))
        self.last_context: Any = None

    async def receive(self) -> SessionMessage | Exception:
        if not self._items:
            raise anyio.EndOfStream
        self.last_context, item = self._items.pop(0)
        return item


def paced(*items: SessionMessage | Exception, **entry: object) -> PacedReading:
    (server,) = read_mcp_config({"mcpServers": {"s": {"command": "x", **entry}}}, {}).servers
    reading: Any = Arriving(*items)
    return PacedReading(reading, server)


def told(method: str, **params: Any) -> SessionMessage:
    return SessionMessage(JSONRPCNotification(jsonrpc="2.0", method=f"notifications/{method}", params=params or None))


def asked(number: int) -> SessionMessage:
    return SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=number, method="ping"))


async def all_of(reading: PacedReading) -> list[Any]:
    return [item async for item in reading]


@pytest.mark.parametrize("item", [told("message", data="x"), told("progress", progress=1), ValueError("junk")])
async def test_an_answer_waits_for_nothing_that_was_sent_before_it(clock, item):
    received = await all_of(paced(*[item] * 4_000, ANSWER))

    assert received == [item] * 500 + [ANSWER]
    assert clock.slept == []


async def test_after_a_burst_a_hundred_come_each_second_so_that_passing_them_on_holds_up_no_answer(clock):
    reading = paced(*[told("message", data="x")] * 20_000, ANSWER)

    assert len(await all_of(reading)) == 500 + 3 * 100 + 1  # in the three seconds in which the server has to wait


async def test_after_a_pause_as_much_may_come_at_once_again(clock):
    reading = paced(*[told("progress", progress=1)] * 1_200)
    for _ in range(500):
        await reading.receive()
    clock.now_s += 60

    assert len(await all_of(reading)) == 500


async def test_what_must_not_be_lost_comes_in_the_next_second_and_the_same_only_once(clock):
    changed, one, other = (
        told("tools/list_changed"),
        told("resources/updated", uri="a"),
        told("resources/updated", uri="b"),
    )
    late = [changed, one, changed, asked(1), other, asked(2), one]
    reading = paced(*[told("message", data="x")] * 500, *late, ANSWER)
    for _ in range(500):
        await reading.receive()

    assert await reading.receive() is ANSWER
    clock.now_s += 1
    assert await all_of(reading) == [changed, one, asked(1), other, asked(2)]


async def test_a_message_that_comes_later_comes_in_its_own_context_yet(clock):
    """By which it is told whose request the server means."""
    reading = paced(*[told("message", data="x")] * 500, asked(1), asked(2), ANSWER)
    for _ in range(501):
        await reading.receive()
    assert reading.last_context == 502
    clock.now_s += 1
    await reading.receive()
    assert reading.last_context == 500


async def test_a_server_that_sends_without_end_is_read_no_faster_than_five_thousand_a_second(clock):
    await all_of(paced(*[told("message", data="x")] * 10_500))
    assert clock.slept == [1.0, 1.0]


async def test_requests_without_end_are_held_only_so_far_and_are_handed_on_in_order(clock):
    """1,500 in the first second: 500 are handed on, 1,000 held, and no more is read until the next second."""
    requests = [asked(number) for number in range(2_500)]
    reading = paced(*requests)
    received = [await reading.receive() for _ in range(501)]
    assert clock.slept == [1.0]
    received += [await reading.receive() for _ in range(999)]
    assert received == requests[:1_500]


def answered(**result: Any) -> SessionMessage:
    return SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result=result))


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (answered(text='key p"w-123', keys={'p"w-123': [7]}), answered(text="key ***", keys={"***": [7]})),
        (told("message", data=['p"w-123']), told("message", data=["***"])),
    ],
)
async def test_a_secret_is_shown_in_nothing_that_its_server_sends(said, heard):
    """By the keys of objects neither; and what is no certain secret, such as a folder or a number, stays."""
    assert await all_of(paced(said, env={"API_KEY": 'p"w-123'})) == [heard]
    assert await all_of(paced(said, env={"FOLDER": 'p"w-123', "AUTHOR": "key p", "KEY": "7"})) == [said]


async def test_a_refusal_shows_nothing_of_its_servers_settings():
    """It is a text for people, in which a word too many is no loss."""

    def refused(message: str, data: Any) -> SessionMessage:
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=1, error=ErrorData(code=-1, message=message, data=data)))

    said = refused("blue-sky is bad", {"keys": ["blue-sky", 1, None]})
    assert await all_of(paced(said, env={"PLACE": "blue-sky"})) == [refused("*** is bad", {"keys": ["***", 1, None]})]
