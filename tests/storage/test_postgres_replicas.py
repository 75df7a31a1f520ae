"""Two replicas over one PostgreSQL: they lose nothing that either writes, never wait for each other for ever, and what
one of them reads waits for nobody.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.kit.postgres import PostgresServer
from tests.kit.storage_contracts.contents import tool
from tests.kit.storage_contracts.figures import DAY_S, cell
from tests.kit.storage_contracts.misses import miss
from tests.kit.storage_contracts.pins import seen
from tests.kit.storage_contracts.storage import contents, fill
from toolsearch.errors import ConflictError, StorageError
from toolsearch.storage.opening import open_storage
from toolsearch.storage.postgres.place import PostgresStorage
from toolsearch.storage.sessions import SqlMessages
from toolsearch.storage.usage import UsageCell

TIMES = 40
Replicas = tuple[PostgresStorage, PostgresStorage]


@pytest.fixture
def replicas(any_postgres: PostgresServer) -> Iterator[Replicas]:
    """Each has fewer connections than threads that use it."""
    url = any_postgres.new_database()
    one, other = (PostgresStorage(url, max_connections=3) for _ in range(2))
    with closing(one), closing(other):
        yield one, other


def at_once(replicas: Replicas, work: Callable[[PostgresStorage, int], object]) -> list[object]:
    """Do *work* 40 times in 8 threads, every other time by the other replica."""
    with ThreadPoolExecutor(8) as threads:
        return list(threads.map(lambda number: work(replicas[number % 2], number), range(TIMES)))


def test_every_writing_over_a_version_is_over_the_last_one(replicas: Replicas) -> None:
    def count_up(storage: PostgresStorage, _: int) -> None:
        while True:
            there = storage.records.get("a", "toolset", "x", at_s=1.0)
            count, over = (there.document["n"], there.version) if there else (0, 0)
            try:
                storage.records.put("a", "toolset", "x", {"n": count + 1}, over=over, at_s=1.0)
            except ConflictError:
                continue
            return

    at_once(replicas, count_up)

    last = replicas[0].records.get("a", "toolset", "x", at_s=1.0)
    assert last is not None
    assert last.document == {"n": TIMES}


def test_sessions_that_both_save_lose_nothing_of_either(replicas: Replicas) -> None:
    def add(storage: PostgresStorage, number: int) -> None:
        sessions = storage.sessions("a")
        while True:
            there = sessions.load("s")
            text, version = (f"{there.text} {number}", there.version) if there else (str(number), 0)
            try:
                sessions.save("s", text, version=version)
            except ConflictError:
                continue
            return

    at_once(replicas, add)

    last = replicas[1].sessions("a").load("s")
    assert last is not None
    assert sorted(map(int, last.text.split())) == list(range(TIMES))


def test_catalogs_that_both_change_have_the_tools_of_both_and_a_revision_for_each_change(replicas: Replicas) -> None:
    def change(storage: PostgresStorage, number: int) -> int:
        while True:
            over = storage.contents.revision("a", "main")
            try:
                return storage.contents.change("a", "main", put=[tool(f"t{number:02}")], over=over)
            except ConflictError:
                continue

    revisions = at_once(replicas, change)

    assert list(replicas[0].contents.fingerprints("a", "main")) == [f"t{number:02}" for number in range(TIMES)]
    assert len(set(revisions)) == TIMES


def test_counts_of_both_add_up(replicas: Replicas) -> None:
    """Cells come in one order and in the opposite one."""
    names = [f"n{number:03}" for number in range(100)]

    def count(storage: PostgresStorage, number: int) -> None:
        turned = names[:: 1 if number // 2 % 2 else -1]
        storage.usage.add("ann", {UsageCell(name, "t"): 1.0 for name in turned}, at_s=1.0, half_life_s=1.0)
        storage.figures.add("a", {cell(1, session=name): 1.0 for name in turned})
        miss(storage.misses, "x", 1.0)

    at_once(replicas, count)

    assert [each.weight for each in replicas[0].usage.load("ann")] == [TIMES] * 100
    sums = replicas[1].figures.sums("a", by="session", since_s=0, until_s=DAY_S)
    assert [each.amount for each in sums] == [TIMES] * 100
    assert [each.count for each in replicas[0].misses.page("a", None, limit=9)] == [TIMES]


def test_approvals_and_conversations_of_both_are_kept(replicas: Replicas) -> None:
    def decide(storage: PostgresStorage, number: int) -> None:
        name = f"t{number:02}"
        storage.pins("a").keep(hold=[seen(name, "p1"), seen("shared", "p1")][:: 1 if number % 2 else -1])
        assert storage.pins("a").approve("sums@1", name, "p1", by="ann", at_s=1.0)
        talk = SqlMessages(storage.database, write=str, read=str)
        talk.update("c", lambda messages: [*messages, name])

    at_once(replicas, decide)

    names = [f"t{number:02}" for number in range(TIMES)]
    assert list(replicas[0].pins("a").approved("sums@1")) == names
    assert replicas[1].pins("a").version() == TIMES
    assert sorted(SqlMessages[str](replicas[0].database, write=str, read=str).load("c")) == names


def test_what_several_ports_write_in_one_transaction_never_ends_in_a_deadlock(replicas: Replicas) -> None:
    """As the service does it, in one order: see `toolsearch.storage.sql`. Upkeep prunes meanwhile."""

    def work(storage: PostgresStorage, number: int) -> None:
        with storage.transaction():
            storage.records.put("a", "catalog", f"c{number % 3}", {}, over=None, at_s=1.0)
            storage.contents.change("a", "main", put=[tool(f"t{place}") for place in range(number, number + 5)])
        storage.figures.add("a", {cell(hour): 1.0 for hour in range(number, number + 5)})
        for _ in range(2):
            storage.records.prune(at_s=0.0, limit=9)
            storage.figures.prune(before_s=3_600 * 10, limit=9)
            storage.misses.prune(before_s=2.0, limit=9)
        miss(storage.misses, f"m{number % 5}", 1.0)
        if number % 10 == 9:
            storage.drop_tenant("b")
        fill(storage, "b", f"n{number}")

    at_once(replicas, work)

    assert contents(replicas[0], "a") == contents(replicas[1], "a")


def test_two_that_lock_in_opposite_orders_are_told_to_try_again(replicas: Replicas) -> None:
    """No port does that; whoever does writes nothing, and nobody waits for ever."""
    both_have_one = threading.Barrier(2)

    def lock_both(storage: PostgresStorage, first: str, second: str) -> None:
        with storage.transaction() as database:
            database.lock(first)
            both_have_one.wait(20)
            database.lock(second)
            storage.records.put("a", "toolset", first, {}, over=0, at_s=1.0)

    with ThreadPoolExecutor(2) as threads:
        ends = [threads.submit(lock_both, *each) for each in ((replicas[0], "x", "y"), (replicas[1], "y", "x"))]
        [error] = [error for end in ends if (error := end.exception())]

    assert isinstance(error, StorageError)
    assert (error.status, error.retry_after_s) == (503, 1.0)
    assert replicas[0].records.count("a", "toolset", at_s=1.0) == 1


def test_nobody_who_reads_waits_for_who_writes_in_another_replica(replicas: Replicas) -> None:
    fill(replicas[0], "a")
    before = contents(replicas[1], "a")
    with replicas[0].transaction():
        replicas[0].drop_tenant("a")
        fill(replicas[0], "b")
        assert contents(replicas[1], "a") == before
        assert contents(replicas[1], "b") == contents(replicas[1], "nobody")

    assert contents(replicas[1], "a") == contents(replicas[1], "nobody")


@contextmanager
def writing(storage: PostgresStorage, tenant: str) -> Iterator[None]:
    with storage.transaction():
        fill(storage, tenant)
        yield


def test_nobody_who_writes_waits_for_who_writes_for_another_tenant(replicas: Replicas) -> None:
    with ThreadPoolExecutor(1) as elsewhere, writing(replicas[0], "a"):
        elsewhere.submit(fill, replicas[1], "b").result(timeout=20)

    assert replicas[0].records.count("b", "toolset", at_s=1.0) == 1


def test_a_thread_waits_for_a_connection_only_while_it_has_none(replicas: Replicas) -> None:
    """Three connections, all in transactions whose threads use other ports and read within what they read."""
    all_have_one = threading.Barrier(3)

    def work(number: int) -> None:
        with replicas[0].transaction():
            all_have_one.wait(20)
            with replicas[0].reading(), replicas[0].reading():
                replicas[0].records.put(f"tenant {number}", "toolset", "x", {}, over=0, at_s=1.0)
        with replicas[0].reading():
            all_have_one.wait(20)
            replicas[0].records.put(f"tenant {number}", "toolset", "y", {}, over=0, at_s=1.0)

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(work, range(3)))

    assert [replicas[0].records.count(f"tenant {number}", "toolset", at_s=1.0) for number in range(3)] == [2, 2, 2]


def test_a_revision_that_is_seen_has_every_earlier_one_below_it(replicas: Replicas) -> None:
    """So that whoever asks for what is newer than that misses nothing. Each change adds one tool."""

    def change(storage: PostgresStorage, number: int) -> None:
        storage.contents.change("a", "main", put=[tool(f"t{number}")])
        with storage.snapshot():
            assert storage.contents.count("a", "main") == storage.contents.revision("a", "main")

    at_once(replicas, change)

    assert replicas[0].contents.revision("a", "main") == TIMES


def test_a_replica_holds_no_more_connections_than_it_may(postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.new_database()
    with closing(open_storage(url, tmp_path / "none", max_connections=2)) as storage, ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda _: storage.contents.change("a", "main"), range(60)))
        with psycopg.connect(url) as connection:
            held = connection.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            ).fetchone()

    assert held is not None
    assert 1 <= held[0] <= 2
