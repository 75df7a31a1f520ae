import gc
import sqlite3
import threading
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.kit.clock import Clock
from toolsearch.access.reach import Reach
from toolsearch.discovery.discovered_tools import Budget
from toolsearch.errors import ConflictError, Kept, StorageError, UnknownSessionError
from toolsearch.sessions.session_eviction import (
    AlwaysEvictStrategy,
    EvictionStrategy,
    LruEvictionStrategy,
    NeverEvictStrategy,
    TtlEvictionStrategy,
)
from toolsearch.sessions.state import SessionCounters, SessionState
from toolsearch.sessions.store import SessionStore
from toolsearch.storage.memory import InMemorySessionPersistence
from toolsearch.storage.sqlite.stores import SqliteSessionPersistence


class MemoryPersistence(InMemorySessionPersistence):
    """Counts what it was asked to do."""

    def __init__(self) -> None:
        super().__init__()
        self.saved: list[str] = []

    def save(self, session_id: str, text: str, *, version: int) -> int:
        self.saved.append(session_id)
        return super().save(session_id, text, version=version)


class FullDisk(InMemorySessionPersistence):
    def save(self, session_id: str, text: str, *, version: int) -> int:
        raise StorageError(
            f"disk full: no room for {len(text)} characters of {session_id} after {version}", Kept.SESSIONS
        )


def new(session_id: str) -> Callable[[], SessionState]:
    return lambda: SessionState.new(session_id, clock=Clock())


def open_all(store: SessionStore, session_ids: str) -> list[SessionState]:
    return [store.get_or_create(session_id, new(session_id)) for session_id in session_ids]


def test_a_session_is_made_once_and_found_again(clock: Clock) -> None:
    store = SessionStore(clock=clock)
    made = store.get_or_create("a", new("a"))
    clock.now_s = 7

    assert store.get_or_create("a", lambda: pytest.fail("made twice")) is made
    assert store.get("a") is made
    assert made.used_s == 7
    assert (store.ids(), len(store)) == (["a"], 1)


def test_a_session_that_was_never_opened_is_an_error_and_pushes_none_out() -> None:
    store = SessionStore(LruEvictionStrategy(1))
    open_all(store, "a")

    with pytest.raises(UnknownSessionError, match="no session 'b'"):
        store.get("b")
    assert store.ids() == ["a"]


def test_an_evicted_session_is_an_error_not_an_empty_one() -> None:
    store = SessionStore(LruEvictionStrategy(2))
    open_all(store, "abc")

    with pytest.raises(UnknownSessionError):
        store.get("a")
    assert store.ids() == ["b", "c"]


def test_a_search_or_call_counts_as_a_use() -> None:
    store = SessionStore(LruEvictionStrategy(2))
    open_all(store, "ab")
    store.get("a")
    open_all(store, "c")

    assert store.ids() == ["a", "c"]


def test_ttl_evicts_when_another_session_is_used(clock: Clock) -> None:
    store = SessionStore(TtlEvictionStrategy(60, clock), clock=clock)
    open_all(store, "ab")
    clock.now_s = 60
    store.get("b")

    assert store.ids() == ["b"]


def test_always_opens_a_session_afresh_but_leaves_it_alone_within_its_turns() -> None:
    store = SessionStore(AlwaysEvictStrategy())
    [first] = open_all(store, "a")
    assert store.get("a") is first

    [second] = open_all(store, "a")

    assert second is not first
    assert store.get("a") is second


def test_evicting_by_name_ends_a_session() -> None:
    store = SessionStore()
    [first] = open_all(store, "a")

    assert (store.evict("a"), store.evict("a")) == (True, False)
    assert store.ids() == []
    assert open_all(store, "a") != [first]


def test_a_session_survives_a_restart(tmp_path: Path, clock: Clock) -> None:
    clock.now_s = 5
    reach = Reach.parse(["git__*", "tag:read"], ["server:prod"])
    with SqliteSessionPersistence(tmp_path / "sessions.db") as kept:
        store = SessionStore(persistence=kept, clock=clock)
        state = store.get_or_create("a", lambda: SessionState.new("a", clock=clock, reach=reach, pins=["pinned"]))
        state.discovered.add({"pinned": 1, "b": 20, "a": 30})
        state.discovered.drop(["b"])
        state.counters.searches = 3
        state.exposure = "fixed"
        clock.now_s = 6
        state.discovered.touch("a")
        store.save(store.get("a"))

    with SqliteSessionPersistence(tmp_path / "sessions.db") as kept:
        again = SessionStore(persistence=kept, clock=clock).get("a")

    assert again is not state
    assert (again.id, again.reach, again.pins) == ("a", reach, {"pinned"})
    assert list(again.discovered.tools.items()) == list(state.discovered.tools.items())
    assert again.counters == SessionCounters(searches=3)
    assert again.exposure == "fixed"
    assert (again.created_s, again.used_s) == (5, 6)


@pytest.mark.parametrize("strategy", [LruEvictionStrategy(1), AlwaysEvictStrategy()])
def test_with_persistence_an_evicted_session_comes_back_when_it_is_used(strategy: EvictionStrategy) -> None:
    store = SessionStore(strategy, MemoryPersistence())
    [state] = open_all(store, "a")
    state.discovered.add({"tool": 10})
    open_all(store, "ba")

    assert list(store.get("a").discovered.tools) == ["tool"]
    assert store.ids() == ["a", "b"]


def test_an_eviction_leaves_memory_even_if_the_session_is_kept() -> None:
    store = SessionStore(LruEvictionStrategy(2), MemoryPersistence())
    open_all(store, "abcde")

    assert len(store) == 2
    assert store.ids() == ["a", "b", "c", "d", "e"]


def test_evicting_by_name_deletes_what_was_kept() -> None:
    store = SessionStore(LruEvictionStrategy(1), MemoryPersistence())
    open_all(store, "ab")

    assert store.evict("a")
    with pytest.raises(UnknownSessionError):
        store.get("a")


def test_a_session_that_has_ended_cannot_be_saved_back_to_life() -> None:
    kept = MemoryPersistence()
    store = SessionStore(persistence=kept)
    [state] = open_all(store, "a")
    store.evict("a")

    store.save(state)

    assert kept.ids() == []


def test_all_sessions_in_memory_are_saved_at_the_end() -> None:
    kept = MemoryPersistence()
    store = SessionStore(persistence=kept)
    open_all(store, "ba")
    store.save_all()

    assert kept.saved == ["b", "a"]


def test_a_damaged_session_starts_anew_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    kept = MemoryPersistence()
    kept.save("a", '{"version":1,"id":"a","tools":[["x"]]}', version=0)
    store = SessionStore(persistence=kept)

    with pytest.raises(UnknownSessionError):
        store.get("a")
    [state] = open_all(store, "a")
    assert state.discovered.tools == {}
    assert "the session 'a' starts anew" in caplog.text
    store.save(state)
    assert SessionStore(persistence=kept).get("a").created_s == state.created_s


def test_a_session_of_another_version_is_not_read() -> None:
    with pytest.raises(StorageError, match="stored in version 5, this is 1"):
        SessionState.from_json('{"version":5}', budget=Budget(), clock=Clock())


def test_an_evicted_session_that_cannot_be_saved_does_not_fail_the_one_in_use(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = SessionStore(LruEvictionStrategy(1), FullDisk())
    open_all(store, "ab")

    assert store.get("b").id == "b"
    assert "session 'a'" in caplog.text
    assert "disk full" in caplog.text


def test_no_lock_on_the_sessions_is_held_while_one_is_written() -> None:
    """A writer that is stuck holds up whoever has to read or write, not who finds a session in memory."""
    stuck, go_on = threading.Event(), threading.Event()

    class Slow(MemoryPersistence):
        def save(self, session_id: str, text: str, *, version: int) -> int:
            stuck.set()
            assert go_on.wait(10)
            return super().save(session_id, text, version=version)

    store = SessionStore(persistence=Slow())
    a, b = open_all(store, "ab")
    with ThreadPoolExecutor() as threads:
        saving = threads.submit(store.save, a)
        assert stuck.wait(10)
        found = store.get("b")
        still_saving = not saving.done()
        go_on.set()

    assert (found is b, still_saving) == (True, True)


def test_threads_that_open_one_session_at_once_get_the_same_one() -> None:
    store = SessionStore(persistence=MemoryPersistence())
    together = threading.Barrier(8)

    def make() -> SessionState:
        return SessionState.new("a", clock=Clock())

    def open_it(_: int) -> SessionState:
        together.wait(10)
        return store.get_or_create("a", make)

    with ThreadPoolExecutor(8) as threads:
        states = list(threads.map(open_it, range(8)))

    assert len(set(map(id, states))) == 1


def test_threads_leave_neither_more_sessions_than_allowed_nor_lost_ones() -> None:
    store = SessionStore(LruEvictionStrategy(4), MemoryPersistence())

    def use(i: int) -> None:
        state = store.get_or_create(f"s{i % 10}", new(f"s{i % 10}"))
        state.discovered.add({f"tool{i}": 1})

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(use, range(400)))

    assert len(store) == 4
    assert len(store.ids()) == 10


def test_a_session_over_a_shared_catalog_takes_at_most_10_kb() -> None:
    names = [f"server__some_tool_number_{i}" for i in range(20)]
    reach = Reach()
    store = SessionStore(NeverEvictStrategy())
    gc.collect()
    tracemalloc.start()
    try:
        for i in range(50):
            session_id = f"user-{i}"
            state = store.get_or_create(
                session_id, lambda sid=session_id: SessionState.new(sid, clock=Clock(), reach=reach)
            )
            for name in names:
                state.discovered.add({name: 1_000 + i})
                state.discovered.touch(name)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert size / 50 <= 10_000


def test_of_two_stores_over_one_persistence_the_slower_one_is_told_or_adds_to_what_the_faster_one_wrote() -> None:
    kept = InMemorySessionPersistence()
    slow, fast = SessionStore(persistence=kept), SessionStore(persistence=kept)
    [before] = open_all(slow, "a")
    slow.save(before)
    state = fast.get("a")
    state.counters.searches = 1
    fast.save(state)

    before.counters.searches = 7
    with pytest.raises(ConflictError, match="session 'a' has changed meanwhile"):
        slow.save(before)
    assert SessionStore(persistence=kept).get("a").counters.searches == 1

    slow.save(before, lambda _: None)
    assert before.counters.searches == SessionStore(persistence=kept).get("a").counters.searches == 8


def test_a_file_of_another_version_or_kind_is_refused(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "newer.db")
    database.execute("PRAGMA user_version = 9")
    database.close()
    (tmp_path / "no.db").write_text("this is no database at all" * 100)

    with pytest.raises(StorageError, match=r"another version \(9, not 1\); move the file away"):
        SqliteSessionPersistence(tmp_path / "newer.db")
    with pytest.raises(StorageError, match="file is not a database"):
        SqliteSessionPersistence(tmp_path / "no.db")
    with pytest.raises(StorageError, match="cannot use the sessions in"):
        SqliteSessionPersistence(tmp_path / "missing" / "s.db")


def test_a_store_is_true_while_it_is_empty() -> None:
    assert SessionStore()
    assert len(SessionStore()) == 0


def test_a_session_that_is_only_looked_at_is_not_used_nor_loaded() -> None:
    kept, clock = InMemorySessionPersistence(), Clock()
    earlier = SessionStore(persistence=kept, clock=clock)
    earlier.save(earlier.get_or_create("a", new("a")))
    store = SessionStore(persistence=kept, clock=clock)
    clock.now_s = 5.0

    assert store.peek("a", owner="local").used_s == 0.0
    assert len(store) == 0
    with pytest.raises(UnknownSessionError):
        store.peek("a", owner="acme")
    with pytest.raises(UnknownSessionError):
        store.peek("b", owner="local")


def test_a_session_is_looked_at_as_another_process_has_saved_it() -> None:
    kept = InMemorySessionPersistence()
    ours, theirs = (SessionStore(persistence=kept) for _ in range(2))
    known = ours.save(ours.get_or_create("a", new("a")))
    found = theirs.refresh("a")
    found.counters.searches = 3
    theirs.save(found)

    assert (known.counters.searches, ours.peek("a", owner="local").counters.searches) == (0, 3)

    theirs.evict("a")
    with pytest.raises(UnknownSessionError):
        ours.peek("a", owner="local")


def test_a_session_that_was_deleted_where_it_is_kept_can_be_taken_out_of_memory() -> None:
    kept = InMemorySessionPersistence()
    store = SessionStore(persistence=kept)
    store.save(store.get_or_create("a", new("a")))
    kept.delete("a")
    store.forget("a")

    assert (len(store), store.ids()) == (0, [])
