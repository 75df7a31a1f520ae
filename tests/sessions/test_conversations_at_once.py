"""Replies of one session at the same time, in one process: nobody waits for another's tools or for a slow store."""

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from typing import Any

import pytest

from tests.kit.fake_servers import EXPANDING, LEGACY, call, gateway_of, search
from tests.kit.kept_sessions import NAMES, SEARCH, Counted, engine_of, select, stored
from toolsearch import Session, SessionStore, ToolSearch
from toolsearch.chat import ChatClient, ScriptedModel, ToolSearchAdvisor
from toolsearch.chat.models.scripted import scripted_calls
from toolsearch.sessions.state import SessionState
from toolsearch.sessions.usage import UsageLog
from toolsearch.storage.memory import InMemorySessionPersistence, InMemoryUsageStore
from toolsearch.storage.usage import UsageCell, UsageStore


class Stuck(InMemorySessionPersistence):
    """Waits, once it is told to, in the middle of each writing."""

    def __init__(self) -> None:
        super().__init__()
        self.is_slow = False
        self.writing, self.go_on = threading.Event(), threading.Event()

    def save(self, session_id: str, text: str, *, version: int) -> int:
        if self.is_slow:
            self.writing.set()
            assert self.go_on.wait(10)
        return super().save(session_id, text, version=version)


async def while_writing(kept: Stuck, work: Coroutine[Any, Any, object]) -> None:
    """Start *work*, and prove that the loop still runs while its session is written."""
    kept.is_slow = True
    task = asyncio.create_task(work)
    assert await asyncio.get_running_loop().run_in_executor(None, kept.writing.wait, 10)
    assert not task.done()  # this line is run by the loop that would be held
    kept.go_on.set()
    await task


async def test_a_store_that_is_slow_to_write_does_not_hold_the_event_loop() -> None:
    kept = Stuck()
    session = engine_of(kept).session("a")

    await while_writing(kept, session.call(SEARCH, {"query": "select:send_mail"}))

    assert stored(kept) == ["send_mail"]


async def test_a_chat_over_a_store_that_is_slow_to_write_does_not_hold_the_event_loop() -> None:
    kept = Stuck()
    model = ScriptedModel(scripted_calls((SEARCH, {"query": "select:send_mail"})), "Done.")
    client = ChatClient(model, advisors=[ToolSearchAdvisor(engine_of(kept))])

    await while_writing(kept, client.prompt("Write").context(conversation_id="a").call())

    assert stored(kept) == ["send_mail"]


async def test_a_gateway_over_a_store_that_is_slow_to_write_does_not_hold_the_event_loop() -> None:
    kept = Stuck()
    async with gateway_of("a") as (gateway, servers):
        gateway.engine.sessions = SessionStore(persistence=kept)
        await servers["a"].lists("send_mail")
        await search(gateway, EXPANDING, "mail")

        await while_writing(kept, call(gateway, "a__send_mail", {}, EXPANDING))


class StuckUsage(InMemoryUsageStore):
    """Waits in the middle of each writing."""

    def __init__(self) -> None:
        super().__init__()
        self.writing, self.go_on = threading.Event(), threading.Event()

    def add(self, principal: str, weights: Mapping[UsageCell, float], *, at_s: float, half_life_s: float) -> None:
        self.writing.set()
        assert self.go_on.wait(10)
        super().add(principal, weights, at_s=at_s, half_life_s=half_life_s)


def learning_engine(usage: UsageStore) -> ToolSearch:
    def write_letter(text: str) -> str:
        """Write a letter."""
        return text

    engine = engine_of(None, write_letter)
    engine.usage = UsageLog(usage)
    return engine


async def while_learning(usage: StuckUsage, work: Coroutine[Any, Any, object]) -> None:
    """Start *work*, and prove that the loop still runs while what it calls is learnt from."""
    task = asyncio.create_task(work)
    assert await asyncio.get_running_loop().run_in_executor(None, usage.writing.wait, 10)
    assert not task.done()  # this line is run by the loop that would be held
    usage.go_on.set()
    await task
    assert usage.principals()


async def test_a_store_of_use_that_is_slow_to_write_does_not_hold_the_event_loop() -> None:
    usage = StuckUsage()
    session = learning_engine(usage).session("a")
    session.search("letter")

    await while_learning(usage, session.call("write_letter", {"text": "hello"}))


async def test_a_chat_over_a_store_of_use_that_is_slow_to_write_does_not_hold_the_event_loop() -> None:
    usage = StuckUsage()
    found, called = scripted_calls((SEARCH, {"query": "letter"})), scripted_calls(("write_letter", {"text": "hello"}))
    advisor = ToolSearchAdvisor(learning_engine(usage))
    client = ChatClient(ScriptedModel(found, called, "Done."), advisors=[advisor])

    await while_learning(usage, client.prompt("Write").context(conversation_id="a").call())


async def test_a_gateway_over_a_store_of_use_that_is_slow_to_write_does_not_hold_the_event_loop() -> None:
    usage = StuckUsage()
    async with gateway_of("a") as (gateway, servers):
        gateway.engine.usage = UsageLog(usage)
        await servers["a"].lists("send_mail")
        await search(gateway, LEGACY, "mail")

        await while_learning(usage, call(gateway, "a__send_mail", {}, LEGACY))


async def test_a_reply_does_not_wait_for_the_slow_tool_of_another_one() -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    async def wait_long() -> str:
        """Wait for a long time."""
        started.set()
        await go_on.wait()
        return "done"

    kept = InMemorySessionPersistence()
    session = engine_of(kept, wait_long).session("a")
    slow = asyncio.create_task(session.call("wait_long"))
    await started.wait()

    await session.execute([select("send_mail")])
    assert not slow.done()
    assert stored(kept) == ["wait_long", "send_mail"]  # of the reply that goes on, what it has found so far
    go_on.set()
    assert (await slow).text == "done"
    assert session.state.counters.calls == 1


@pytest.mark.parametrize("is_kept", [False, True])
async def test_a_tool_may_use_the_session_that_it_is_called_in(*, is_kept: bool) -> None:
    opened: list[Session] = []

    async def look_around() -> str:
        """Use the session of this very call, in a reply and by itself."""
        await opened[0].call(SEARCH, {"query": "select:send_mail"})
        return ",".join(found.name for found in opened[0].search("select:pay_bill"))

    engine = engine_of(InMemorySessionPersistence() if is_kept else None, look_around)
    opened.append(engine.session("a"))

    assert (await opened[0].call("look_around")).text == "pay_bill"
    assert opened[0].discovered == ["look_around", "send_mail", "pay_bill"]


async def test_all_that_replies_at_the_same_time_find_is_kept(kept: Counted) -> None:
    session = engine_of(kept).session("a")

    await asyncio.gather(*(session.execute([select(name)]) for name in NAMES))

    assert sorted(stored(kept)) == sorted(session.discovered) == sorted(NAMES)
    assert session.state.counters.searches == 4


def test_what_is_read_and_written_of_one_session_goes_in_the_order_in_which_it_was_asked_for() -> None:
    """The first writes; of the others, each has asked before the next one does."""
    kept = Stuck()
    store = SessionStore(persistence=kept)
    state = store.get_or_create("a", lambda: SessionState.new("a", clock=lambda: 0.0))
    kept.is_slow = True
    order: list[int] = []
    threads = [threading.Thread(target=store.save, args=(state,))]
    threads[0].start()
    assert kept.writing.wait(10)
    lock = store._lock_of("a")
    for number in range(1, 6):

        def ask(number: int = number) -> None:
            store.refresh("a")
            order.append(number)

        threads.append(threading.Thread(target=ask))
        threads[-1].start()
        while len(lock._waiting) < number:
            threading.Event().wait(0.001)
    kept.go_on.set()
    for thread in threads:
        thread.join(10)

    assert order == [1, 2, 3, 4, 5]
