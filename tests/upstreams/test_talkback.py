"""Whom a server means: never the wrong client, and in the end the right one."""

import asyncio
import contextvars
import random
from collections.abc import Mapping
from typing import Any

import mcp.types as types
import pytest
from mcp.client import ClientRequestContext

from toolsearch.upstreams.session import SessionPeer
from toolsearch.upstreams.talkback import RunningRequests, Talkback

CONTEXT = ClientRequestContext(session=None, request_id=1)  # type: ignore[arg-type]
FORM = types.ElicitRequestFormParams(message="Who?", requested_schema={"type": "object"})


class Session:
    """A client's session, as a `Downstream` that answers with its own name."""

    capabilities: Mapping[str, Any] = {"elicitation": {}}
    log_level = None

    def __init__(self, key: str) -> None:
        self.session_key = key
        self.told: list[Any] = []
        self.think = asyncio.Event()
        self.think.set()

    async def progress(self, *_: Any) -> None: ...

    async def ask(self, *_: Any) -> dict[str, Any]:
        await self.think.wait()
        return {"action": "accept", "content": {"name": self.session_key}}

    async def tell(self, _: str, params: Mapping[str, Any]) -> None:
        self.told.append(params["data"])


async def ignore(_: object) -> None: ...


def asked(peer: SessionPeer, context: contextvars.Context | None = None) -> asyncio.Task[Any]:
    """A question of the server, as the SDK hands it on: in a task of no request, or of the request in *context*."""
    assert peer.elicit is not None
    question = peer.elicit(CONTEXT, FORM)
    return asyncio.create_task(question, context=context or contextvars.Context())  # type: ignore[arg-type]


def name_in(answer: Any) -> str | None:
    """Who has answered; None where nobody was asked."""
    return answer.content["name"] if isinstance(answer, types.ElicitResult) else None


async def test_a_turn_that_is_free_goes_past_one_who_has_just_given_up_waiting():
    turns = RunningRequests()
    turns.one_session_at_a_time = True

    async def go(key: str, order: list[str]) -> None:
        async with turns.turn(Session(key), None):
            order.append(key)

    order: list[str] = []
    async with turns.turn(Session("first"), None):
        gives_up, goes_on = (asyncio.create_task(go(key, order)) for key in ("second", "third"))
        await asyncio.sleep(0)
        gives_up.cancel()
    await goes_on
    assert order == ["third"]
    assert gives_up.cancelled()


@pytest.mark.parametrize("seed", range(20))
async def test_no_question_ever_reaches_a_session_that_it_does_not_belong_to(seed):
    """Sessions come and go as chance has it; the server asks in the middle of each request, without saying whom."""
    chance = random.Random(seed)  # noqa: S311  a schedule, no secret
    talkback = Talkback(ask_timeout_s=300)
    peer = talkback.peer(ignore)
    answers: list[tuple[str, str | None]] = []

    async def request(session: Session) -> None:
        for _ in range(chance.randrange(5)):
            await asyncio.sleep(0)
        async with talkback.turn(session):
            for _ in range(chance.randrange(3)):
                await asyncio.sleep(0)
            answers.append((session.session_key, name_in(await asked(peer))))

    sessions = [Session(f"s{number}") for number in range(4)]
    await asyncio.gather(*(request(chance.choice(sessions)) for _ in range(40)))

    assert {given for meant, given in answers if given != meant} <= {None}
    answers.clear()
    assert talkback.asks  # it has been refused by now
    await asyncio.gather(*(request(chance.choice(sessions)) for _ in range(40)))
    assert len(answers) == 40
    assert all(given == meant for meant, given in answers)


async def test_a_question_on_a_requests_own_stream_is_for_that_request_whoever_else_is_there():
    talkback = Talkback(ask_timeout_s=300)
    peer = talkback.peer(ignore)
    async with talkback.turn(Session("ann")):
        stream = contextvars.copy_context()
        other = contextvars.Context()
        bobs = talkback.turn(Session("bob"))
        await asyncio.create_task(bobs.__aenter__(), context=other)
        assert name_in(await asked(peer, stream)) == "ann"
        assert name_in(await asked(peer, other)) == "bob"
        assert not talkback.asks


async def test_a_question_about_a_request_that_was_cancelled_reaches_nobody_else():
    """The server may ask before it reads of the cancellation, or not care."""
    talkback = Talkback(ask_timeout_s=300)
    peer = talkback.peer(ignore)
    streams: list[contextvars.Context] = []

    async def request() -> None:
        async with talkback.turn(Session("ann")):
            streams.append(contextvars.copy_context())
            await asyncio.Event().wait()

    given_up = asyncio.create_task(request())
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.wait([given_up])

    async with talkback.turn(Session("bob")):
        refusal = await asked(peer, streams[0])
        assert refusal.message.endswith("its request has ended")
        assert not talkback.asks
        assert name_in(await asked(peer)) is None
    peer = talkback.peer(ignore)  # another process
    async with talkback.turn(Session("bob")):
        assert name_in(await asked(peer)) == "bob"


async def test_a_question_about_no_request_is_refused_and_so_is_one_about_the_gateways_own():
    talkback = Talkback(ask_timeout_s=300)
    peer = talkback.peer(ignore)
    assert name_in(await asked(peer)) is None
    async with talkback.turn(None):
        assert name_in(await asked(peer)) is None
        refusal = await asked(peer, contextvars.copy_context())
    assert refusal.message.endswith("nobody can be asked")


async def test_a_question_that_is_not_answered_in_time_is_an_error_for_the_server():
    talkback = Talkback(ask_timeout_s=0)
    peer = talkback.peer(ignore)
    silent = Session("ann")
    silent.think.clear()
    async with talkback.turn(silent):
        refusal = await asked(peer)
    assert refusal == types.ErrorData(code=-32603, message="elicitation/create: there was no answer within 0 s")


async def test_log_messages_go_to_whom_they_belong_or_to_nobody():
    heard: list[object] = []

    async def hear(message: object) -> None:
        heard.append(message)

    talkback = Talkback(ask_timeout_s=300)
    on_message = talkback.peer(hear).on_message
    assert on_message is not None
    ann, bob = Session("ann"), Session("bob")

    def logged(data: str) -> Any:
        params = types.LoggingMessageNotificationParams(level="info", data=data)
        return on_message(types.LoggingMessageNotification(params=params))

    await logged("before")
    async with talkback.turn(ann):
        await logged("one session")
        stream = contextvars.copy_context()
        async with talkback.turn(bob):
            await asyncio.create_task(logged("which?"), context=contextvars.Context())
            await asyncio.create_task(logged("ann's own stream"), context=stream)
    await on_message(types.ToolListChangedNotification())

    assert (ann.told, bob.told) == (["one session", "ann's own stream"], [])
    assert talkback.dropped_messages == 2
    assert heard == [types.ToolListChangedNotification()]


async def test_the_clock_of_a_request_stands_still_while_a_person_thinks():
    async with RunningRequests().turn(None, timeout_s=60) as turn:
        with turn.paused():
            assert turn.clock.when() is None
            with turn.paused():
                pass
            assert turn.clock.when() is None
        assert turn.clock.when() is not None


async def test_a_request_that_waits_too_long_for_its_turn_is_out_of_time():
    turns = RunningRequests()
    turns.one_session_at_a_time = True
    async with turns.turn(Session("ann"), None):
        with pytest.raises(TimeoutError):
            async with turns.turn(Session("bob"), 0):
                pytest.fail("two sessions at once")


async def test_sessions_take_turns_in_the_order_they_came_and_one_that_gives_up_holds_nobody_up():
    turns = RunningRequests()
    turns.one_session_at_a_time = True
    order: list[str] = []
    until = asyncio.Event()

    async def request(key: str, name: str) -> None:
        async with turns.turn(Session(key), None):
            order.append(name)
            await until.wait()

    tasks = [
        asyncio.create_task(request(key, name))
        for key, name in [("a", "a1"), ("a", "a2"), ("b", "b1"), ("a", "a3"), ("c", "c1")]
    ]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert order == ["a1", "a2"]  # and a3 does not overtake b1

    tasks[2].cancel()
    await asyncio.wait([tasks[2]])
    await asyncio.sleep(0)
    assert order == ["a1", "a2", "a3"]
    until.set()
    await asyncio.wait(tasks)
    assert order == ["a1", "a2", "a3", "c1"]
