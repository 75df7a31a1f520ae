"""A session as a unit of work: read once, worked with in memory, written once; and what two processes make of one."""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest

from tests.kit.fake_servers import EXPANDING, HEDGED, call, gateway_of, names, search
from toolsearch import (
    Budget,
    Catalog,
    ChatClient,
    LruEvictionStrategy,
    PassThrough,
    Principal,
    Reach,
    ScriptedModel,
    Session,
    SessionOptions,
    SessionStore,
    ToolDefinition,
    ToolSearch,
    ToolSearchAdvisor,
)
from toolsearch.access.principals import LOCAL
from toolsearch.chat.models.scripted import scripted_calls
from toolsearch.discovery.view import ViewCache
from toolsearch.errors import SessionConflictError, SessionStoreError, UnknownSessionError, UnknownToolError
from toolsearch.sessions.eviction import NeverEvictStrategy
from toolsearch.sessions.state import SessionState
from toolsearch.sessions.usage.log import UsageLog
from toolsearch.storage.memory import InMemorySessionPersistence, InMemoryUsageStore
from toolsearch.storage.sessions import SessionPersistence, StoredSession
from toolsearch.storage.usage import UsageCell, UsageStore

SEARCH = "toolSearchTool"
NAMES = ["send_mail", "list_events", "pay_bill", "play_music"]
ACME = Principal("acme")


class Counted(InMemorySessionPersistence):
    """Counts how often a session is read and written."""

    def __init__(self) -> None:
        super().__init__()
        self.done: Counter[str] = Counter()

    def load(self, session_id: str) -> StoredSession | None:
        self.done["read"] += 1
        return super().load(session_id)

    def save(self, session_id: str, text: str, *, version: int) -> int:
        self.done["written"] += 1
        return super().save(session_id, text, version=version)


@pytest.fixture
def kept() -> Counted:
    return Counted()


@pytest.fixture
def views(kept: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Count the views that are looked up, too."""
    get = ViewCache.get

    def counted(self: ViewCache, *given: Any) -> Any:
        kept.done["views"] += 1
        return get(self, *given)

    monkeypatch.setattr(ViewCache, "get", counted)


def engine_of(kept: SessionPersistence | None = None, *tools: Callable[..., Any], **options: Any) -> ToolSearch:
    """What one process has: an engine over NAMES and *tools*, and its own store over what is *kept* for all."""
    definitions = [ToolDefinition(name, name.replace("_", " ").title()) for name in NAMES]
    chosen = SessionOptions(pass_through=PassThrough(max_tools=0), **options)
    store = SessionStore(NeverEvictStrategy(), kept, budget=chosen.budget)
    return ToolSearch(Catalog([*definitions, *tools]), encoder=None, sessions=store, options=chosen)


def select(*names: str) -> dict[str, Any]:
    return {"name": SEARCH, "arguments": {"query": f"select:{','.join(names)}"}}


def stored(kept: SessionPersistence, session_id: str = "a") -> list[str]:
    return list(SessionStore(persistence=kept).get(session_id).discovered.tools)


# How often a session is read and written


@pytest.mark.usefixtures("views")
async def test_a_search_reply_reads_the_session_once_and_writes_it_once(kept: Counted) -> None:
    session = engine_of(kept).session("a")
    kept.done.clear()
    await session.execute([select("send_mail"), select("pay_bill")])

    assert kept.done == {"read": 1, "written": 1, "views": 3}  # of which one for each search
    assert stored(kept) == ["send_mail", "pay_bill"]


@pytest.mark.usefixtures("views")
async def test_a_reply_that_calls_tools_reads_the_session_once_and_writes_it_once(kept: Counted) -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    session = engine_of(kept, add).session("a")
    kept.done.clear()
    await session.execute([{"name": "add", "arguments": {"a": 1, "b": 2}}] * 2)

    assert kept.done == {"read": 1, "written": 1, "views": 1}


@pytest.mark.usefixtures("views")
@pytest.mark.parametrize("caller", [EXPANDING, HEDGED])
async def test_a_search_and_a_call_through_the_gateway_read_the_session_once_and_write_it_once(
    kept: Counted, caller: Any
) -> None:
    async with gateway_of("a") as (gateway, servers):
        gateway.engine.sessions = SessionStore(persistence=kept)
        await servers["a"].lists("send_mail", "pay_bill")
        await search(gateway, caller, "mail")
        kept.done.clear()

        await search(gateway, caller, "bill")
        assert kept.done == {"read": 1, "written": 1, "views": 3}
        kept.done.clear()
        await call(gateway, "a__pay_bill", {}, caller)
        assert {each: kept.done[each] for each in ("read", "written")} == {"read": 1, "written": 1}
        kept.done.clear()
        await names(gateway, caller)
        assert (kept.done["read"], kept.done["written"]) == (1, 0)


def test_opening_a_session_again_writes_nothing_unless_something_changes(kept: Counted) -> None:
    engine = engine_of(kept)
    engine.session("a")
    engine.session("a")
    assert kept.done["written"] == 1
    engine.session("a", deny=["pay_bill"])
    assert kept.done["written"] == 2


def test_looking_at_what_is_shown_changes_and_reads_nothing(kept: Counted) -> None:
    engine = engine_of(kept)
    session = engine.session("a")
    session.search("select:send_mail,pay_bill")
    engine.catalog.remove("send_mail")
    kept.done.clear()

    assert [tool.name for tool in session.shown()] == [SEARCH, "pay_bill"]
    assert session.discovered == ["send_mail", "pay_bill"]
    assert session.savings().cache_breaks == 0
    assert kept.done == {}

    session.end_turn()  # a unit of work, which drops what is gone
    assert (session.discovered, session.savings().cache_breaks, stored(kept)) == (["pay_bill"], 1, ["pay_bill"])


# Work at the same time, in one process


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
        await search(gateway, HEDGED, "mail")

        await while_writing(kept, call(gateway, "a__send_mail", {}, HEDGED))


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
        await search(gateway, HEDGED, "mail")

        await while_learning(usage, call(gateway, "a__send_mail", {}, HEDGED))


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


# Sessions that end meanwhile


@pytest.mark.parametrize("is_kept", [False, True])
async def test_a_session_that_is_evicted_between_two_steps_of_a_reply_finishes_it(*, is_kept: bool) -> None:
    engines: list[ToolSearch] = []

    def crowd_out() -> str:
        """Open another session, where there is room for one."""
        engines[0].session("b")
        return "done"

    kept = InMemorySessionPersistence() if is_kept else None
    engine = engine_of(kept, crowd_out)
    engine.sessions = SessionStore(LruEvictionStrategy(1), kept)
    engines.append(engine)
    session = engine.session("a")

    messages = await session.execute([{"name": "crowd_out"}, select("send_mail"), {"name": "pay_bill"}])

    assert [message["content"][0]["text"].partition(".")[0] for message in messages] == [
        "done",
        "1 tool found, 1 of them new",
        "the tool 'pay_bill' can be found, but not called: its source gives no way to run it",
    ]
    if kept is not None:
        assert stored(kept) == ["crowd_out", "pay_bill", "send_mail"]
        assert session.discovered == ["crowd_out", "pay_bill", "send_mail"]
    else:
        with pytest.raises(UnknownSessionError):
            _ = session.discovered


async def test_a_session_that_is_ended_during_a_reply_is_not_brought_back_by_it(kept: Counted) -> None:
    engines: list[ToolSearch] = []

    def end() -> str:
        """End the session in another process."""
        return str(engine_of(kept).sessions.evict("a"))

    engines.append(engine_of(kept, end))
    session = engines[0].session("a")

    assert (await session.call("end")).text == "True"
    assert (kept.ids(), engines[0].sessions.ids()) == ([], [])
    with pytest.raises(UnknownSessionError):
        session.search("mail")


# Two processes


def test_two_processes_find_each_others_tools_in_one_order(kept: Counted) -> None:
    ours, theirs = engine_of(kept), engine_of(kept)
    ours.session("a").search("select:send_mail")

    with theirs.conversation("a") as conversation:
        conversation.search("select:pay_bill")
        ours.session("a").search("select:list_events")

    assert stored(kept) == theirs.session("a").discovered == ["send_mail", "list_events", "pay_bill"]
    assert ours.session("a").discovered == ["send_mail", "list_events", "pay_bill"]
    assert theirs.session("a").state.counters.searches == 3


def test_what_one_process_has_dropped_is_not_brought_back_by_the_stale_copy_of_another(kept: Counted) -> None:
    ours, theirs = engine_of(kept), engine_of(kept)
    ours.session("a").search("select:send_mail,pay_bill")

    with theirs.conversation("a") as conversation:
        ours.session("a", deny=["pay_bill"])
        ours.session("a", reach=Reach())
        conversation.search("select:list_events")

    assert stored(kept) == ["send_mail", "list_events"]
    assert conversation.discovered == ["send_mail", "list_events"]


def test_a_stale_copy_does_not_widen_a_reach(kept: Counted) -> None:
    ours, theirs = engine_of(kept), engine_of(kept)
    theirs.session("a")

    with theirs.conversation("a") as conversation:
        conversation.search("select:pay_bill,send_mail")
        ours.session("a", deny=["pay_bill"])

    assert conversation.reach == Reach.parse(deny=["pay_bill"])
    assert conversation.discovered == stored(kept) == ["send_mail"]
    assert [tool.name for tool in theirs.session("a").shown()] == [SEARCH, "send_mail"]


def test_of_two_who_change_a_reach_at_once_neither_gets_more_than_both_allow(kept: Counted) -> None:
    ours, theirs = engine_of(kept), engine_of(kept)
    ours.session("a", allow=["send_mail"])

    with theirs.conversation("a", reach=Reach.parse(allow=["send_mail", "pay_bill", "list_events"])):
        ours.session("a", allow=["pay_bill", "list_events", "play_music"], deny=["list_events"])

    session = engine_of(kept).session("a")
    assert [found.name for found in session.search(f"select:{','.join(NAMES)}")] == ["pay_bill"]


def test_a_reach_that_one_process_has_narrowed_holds_in_another_with_its_next_step(kept: Counted) -> None:
    ours, theirs = engine_of(kept), engine_of(kept)
    session = theirs.session("a")
    session.search("select:pay_bill")
    ours.session("a", deny=["pay_bill"])

    assert session.search("select:pay_bill") == []
    assert session.discovered == []


def test_the_budget_holds_after_a_turn_that_ends_in_two_processes_at_once(kept: Counted) -> None:
    budget = Budget(max_tools=2, low_water=1)
    ours, theirs = engine_of(kept, budget=budget), engine_of(kept, budget=budget)

    with theirs.conversation("a") as conversation:
        conversation.search("select:send_mail,list_events")
        conversation.end_turn()
        ours.session("a").search("select:pay_bill,play_music")
        ours.session("a").end_turn()

    assert len(stored(kept)) == len(conversation.discovered) == 2


def test_two_who_open_a_new_session_at_once_share_it_unless_it_is_somebody_elses(kept: Counted) -> None:
    ours, theirs, acme = engine_of(kept), engine_of(kept), engine_of(kept)

    with ours.conversation("a", deny=["pay_bill"]) as first, theirs.conversation("a", deny=["send_mail"]) as second:
        first.search("select:list_events")
        second.search("select:play_music")
    assert stored(kept) == ["play_music", "list_events"]
    assert sorted(map(str, first.reach.deny)) == ["name:pay_bill", "name:send_mail"]

    work = acme.conversation("b", principal=ACME)
    with work as conversation:
        ours.session("b").search("select:send_mail")
        conversation.search("select:pay_bill")
    assert stored(kept, "b") == ["send_mail"]
    with pytest.raises(UnknownSessionError):
        acme.session("b", principal=ACME)


def test_a_saving_that_others_always_overtake_fails_visibly() -> None:
    class Overtaken(InMemorySessionPersistence):
        def save(self, session_id: str, text: str, *, version: int) -> int:
            if version:  # another process has just counted one search more
                document = json.loads(self._sessions[session_id].text)
                document["counters"]["searches"] += 1
                super().save(session_id, json.dumps(document), version=version)
            return super().save(session_id, text, version=version)

    store = SessionStore(persistence=Overtaken())
    state = store.get_or_create("a", lambda: SessionState.new("a", clock=lambda: 0.0))
    store.save(state)
    state.counters.searches = 1

    with pytest.raises(SessionConflictError, match="'a' was changed by another writer"):
        store.save(state, lambda _: None)


# Principals


def test_a_session_of_a_principal_never_sees_more_than_the_principal() -> None:
    reader = Principal("reader", Reach.parse(deny=["pay_bill"]))
    engine = engine_of()
    session = engine.session("a", principal=reader, allow=["pay_bill", "send_mail"])
    assert [found.name for found in session.search("select:pay_bill,send_mail")] == ["send_mail"]

    engine.sessions.evict("a")
    again = engine.session("a", principal=reader)  # without saying what it may see
    assert [found.name for found in again.search(f"select:{','.join(NAMES)}")] == [
        "send_mail",
        "list_events",
        "play_music",
    ]
    assert engine.search("select:pay_bill", principal=reader) == []
    assert engine.explain("pay bill", "pay_bill", principal=reader).place is None


async def test_a_principal_calls_by_name_only_what_it_reaches_and_is_shown_no_more() -> None:
    session = engine_of().session("a", principal=Principal("reader", Reach.parse(deny=["pay_bill"])))
    assert (await session.call("pay_bill")).error_code == "unknown_tool"
    with pytest.raises(UnknownToolError):
        session.resolve("pay_bill")


def test_pins_of_both_processes_stay(kept: Counted) -> None:
    ours, theirs = engine_of(kept), engine_of(kept)
    ours.session("a")
    with theirs.conversation("a", pins=["pay_bill"]):
        ours.session("a", pins=["send_mail"])

    assert engine_of(kept).session("a").state.pins == {"send_mail", "pay_bill"}


def test_a_principal_whose_reach_was_narrowed_is_bound_by_it_in_the_sessions_it_has(kept: Counted) -> None:
    engine = engine_of(kept)
    session = engine.session("a", principal=Principal("acme"))
    session.search("select:pay_bill,send_mail")

    narrowed = engine.session("a", principal=Principal("acme", Reach.parse(deny=["pay_bill"])))

    assert narrowed is session
    assert session.discovered == stored(kept) == ["send_mail"]
    assert session.search("select:pay_bill") == []


async def test_no_handle_on_a_session_that_has_ended_serves_the_one_of_somebody_else() -> None:
    engine = engine_of()
    session = engine.session("a", principal=ACME)
    engine.sessions.evict("a")
    engine.session("a").search("select:send_mail")

    for act in (session.shown, session.tools, session.end_turn, session.scope, lambda: session.search("x")):
        with pytest.raises(UnknownSessionError):
            act()
    with pytest.raises(UnknownSessionError):
        await session.call(SEARCH, {"query": "mail"})


async def test_a_conversation_in_a_chat_stays_with_its_principal_and_within_its_reach() -> None:
    engine = engine_of()
    reader = Principal("reader", Reach.parse(deny=["pay_bill"]))

    async def ask(principal: Principal) -> None:
        model = ScriptedModel(scripted_calls((SEARCH, {"query": "select:pay_bill,send_mail"})), "Done.")
        client = ChatClient(model, advisors=[ToolSearchAdvisor(engine)])
        await client.prompt("Pay").context(conversation_id="a", principal=principal).call()

    await ask(reader)
    assert engine.session("a", principal=reader).discovered == ["send_mail"]
    with pytest.raises(UnknownSessionError):
        await ask(LOCAL)


@pytest.mark.parametrize("version", [1, 2])
def test_a_session_that_was_stored_before_there_were_principals_is_of_its_tenant_or_local(
    kept: Counted, version: int
) -> None:
    counters = dict.fromkeys(("requests", "searches"), 1)
    document = {
        "version": version, "created_s": 1.0, "used_s": 2.0, "reach": {"allow": ["name:*"], "deny": []}, "pins": [],
        "tools": [["send_mail", 9, 1.5]], "cache_breaks": 0, "evicted": 0, "counters": counters,
    }  # fmt: skip
    kept.save("a", json.dumps({"id": "a", **document}), version=0)
    kept.save("b", json.dumps({"id": "b", "tenant": "acme", **document}), version=0)

    engine = engine_of(kept)
    assert engine.session("a").discovered == ["send_mail"]
    assert engine.session("b", principal=ACME).discovered == ["send_mail"]
    with pytest.raises(UnknownSessionError):
        engine.session("b")
    written = kept.load("b")
    assert written is not None
    assert (json.loads(written.text)["version"], json.loads(written.text)["principal"]) == (3, "acme")


async def test_a_gateway_hands_on_the_result_of_a_call_whose_use_cannot_be_noted() -> None:
    class Full(InMemorySessionPersistence):
        is_full = False

        def save(self, session_id: str, text: str, *, version: int) -> int:
            if self.is_full:
                raise SessionStoreError("disk full")
            return super().save(session_id, text, version=version)

    kept = Full()
    async with gateway_of("a") as (gateway, servers):
        gateway.engine.sessions = SessionStore(persistence=kept)
        await servers["a"].lists("send_mail")
        await search(gateway, HEDGED, "mail")
        kept.is_full = True

        assert await call(gateway, "a__send_mail", {}, HEDGED) == {"content": []}
        kept.is_full = False
