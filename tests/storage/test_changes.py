"""What replicas hear of each other's writes by way of PostgreSQL, also when the connection is lost."""

import queue
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.kit import storage_contracts as contracts
from tests.kit.postgres import PostgresServer
from tests.kit.storage_contracts.contents import tool
from tests.kit.storage_contracts.figures import cell
from tests.kit.storage_contracts.keys import key
from tests.kit.storage_contracts.pins import seen
from tests.kit.storage_contracts.receipts import receipt
from tests.kit.waiting import until
from toolsearch.storage.postgres import listening
from toolsearch.storage.postgres.place import PostgresStorage
from toolsearch.storage.replicas import CONTENTS, DROPPED, KEY, PINS, RECORD_KINDS, Change
from toolsearch.storage.sqlite.place import SqliteStorage
from toolsearch.storage.storage import Storage

_END = Change("the end", "trial")
_LISTENERS = f"FROM pg_stat_activity WHERE application_name = '{listening.APPLICATION}'"


class TestSqlite(contracts.ChangeFeedContract):
    def make(self, folder: Path) -> Storage:
        return SqliteStorage(folder / "toolsearch.db")


class TestPostgres(contracts.ChangeFeedContract):
    @pytest.fixture
    def storage(self, any_postgres: PostgresServer) -> Iterator[Storage]:
        storage = PostgresStorage(any_postgres.new_database())
        yield storage
        storage.close()


class Replicas:
    """One that writes to a new database, and others that hear of it."""

    def __init__(self, server: PostgresServer, closing: ExitStack) -> None:
        self.server = server
        self.url = server.new_database()
        self.writer = PostgresStorage(self.url)
        closing.callback(self.writer.close)
        self._closing = closing

    def follower(self) -> "tuple[queue.SimpleQueue[Change | None], listening.PostgresListener]":
        """One that listens by now."""
        heard: queue.SimpleQueue[Change | None] = queue.SimpleQueue()
        listener = listening.PostgresListener(self.url, heard.put)
        self._closing.callback(listener.close)
        assert heard.get(timeout=20) is None
        return heard, listener

    def heard(self, told: "queue.SimpleQueue[Change | None]") -> list[Change | None]:
        """What has been told by now."""
        with self.writer.database.transaction() as database:
            database.announce(_END.tenant, _END.kind)
        found: list[Change | None] = []
        while (each := told.get(timeout=20)) != _END:
            found.append(each)
        return found

    def end_listeners(self) -> None:
        self.server.execute(f"SELECT pg_terminate_backend(pid, 5000) {_LISTENERS}")


@pytest.fixture
def replicas(postgres: PostgresServer) -> Iterator[Replicas]:
    with ExitStack() as closing:
        yield Replicas(postgres, closing)


def test_what_other_replicas_hold_in_memory_is_announced(replicas: Replicas) -> None:
    told, _ = replicas.follower()
    writer = replicas.writer
    versions = [writer.records.put("a", kind, "x", {}, over=0, at_s=1.0).version for kind in sorted(RECORD_KINDS)]
    revision = writer.contents.change("a", "main", put=[tool("x")])
    writer.records.delete("a", "toolset", "x")
    writer.keys.add(key("k1", "a"))
    writer.keys.revoke("a", "k1", at_s=1.0)
    writer.pins("a").keep(hold=[seen("t", "p1")])
    writer.pins("a").approve("sums@1", "t", "p1", by="ann", at_s=1.0)
    pins = writer.pins("a").version()
    writer.contents.drop("a", "main")
    writer.drop_tenant("a")

    assert replicas.heard(told) == [
        *(Change("a", kind, "x", version) for kind, version in zip(sorted(RECORD_KINDS), versions, strict=True)),
        Change("a", CONTENTS, "main", revision),
        Change("a", "toolset", "x"),
        Change("a", KEY, "k1"),
        Change("a", PINS, "", pins),
        Change("a", CONTENTS, "main", revision + 1),
        Change("a", DROPPED),
    ]


def test_what_is_written_with_every_request_is_not_announced(replicas: Replicas) -> None:
    told, _ = replicas.follower()
    writer = replicas.writer
    writer.receipts.append("a", [receipt("r1")])
    writer.sessions("a").save("s", "text", version=0)
    writer.records.put("a", "session", "s", {}, over=0, at_s=1.0)
    writer.records.put("a", "job", "j", {}, over=0, at_s=1.0)
    writer.records.delete("a", "session", "s")
    writer.records.delete("a", "catalog", "never was")
    writer.figures.add("a", {cell(1): 1.0})
    writer.keys.note_use("k1", at_s=1.0)
    writer.keys.revoke("a", "never was", at_s=1.0)

    assert replicas.heard(told) == []


def test_what_was_undone_is_not_announced(replicas: Replicas) -> None:
    told, _ = replicas.follower()
    with pytest.raises(RuntimeError, match="changed my mind"):
        _change_and_fail(replicas.writer)

    assert replicas.heard(told) == []


def _change_and_fail(storage: PostgresStorage) -> None:
    with storage.transaction():
        storage.contents.change("a", "main", put=[tool("x")])
        raise RuntimeError("changed my mind")


def test_each_replica_hears_everything_also_what_it_wrote_itself(replicas: Replicas) -> None:
    told = [replicas.follower()[0] for _ in range(2)]
    revision = replicas.writer.contents.change("a", "main")

    for each in told:
        assert each.get(timeout=20) == Change("a", CONTENTS, "main", revision)


def test_an_id_that_is_too_long_for_a_notification_is_left_out(replicas: Replicas) -> None:
    told, _ = replicas.follower()
    replicas.writer.records.put("a", "source", "ü" * 5_000, {}, over=0, at_s=1.0)
    replicas.writer.records.put("a", "source", "'\"ü\n", {}, over=0, at_s=1.0)

    assert replicas.heard(told) == [Change("a", "source"), Change("a", "source", "'\"ü\n", 2)]


def test_after_its_connection_was_ended_a_listener_says_that_it_may_have_missed_something(replicas: Replicas) -> None:
    told, listener = replicas.follower()
    replicas.end_listeners()

    assert told.get(timeout=20) is None
    assert listener.hears_all
    revision = replicas.writer.contents.change("a", "main")
    assert replicas.heard(told) == [Change("a", CONTENTS, "main", revision)]


def test_while_the_server_is_away_a_listener_knows_that_it_does_not_hear_everything(
    own_postgres: PostgresServer,
) -> None:
    with ExitStack() as closing:
        replicas = Replicas(own_postgres, closing)
        told, listener = replicas.follower()
        own_postgres.stop()
        until(lambda: not listener.hears_all)
        own_postgres.start()

        assert told.get(timeout=20) is None
        assert listener.hears_all


def test_a_listener_takes_no_connection_from_the_pool(postgres: PostgresServer) -> None:
    with ExitStack() as closing:
        storage = PostgresStorage(postgres.new_database(), max_connections=1)
        closing.callback(storage.close)
        told: queue.SimpleQueue[Change | None] = queue.SimpleQueue()
        with storage.transaction():
            closing.callback(storage.changes.follow(told.put).close)
            assert told.get(timeout=20) is None
            storage.contents.change("a", "main")
        assert told.get(timeout=20) == Change("a", CONTENTS, "main", 1)


def test_nothing_is_told_once_a_listener_is_closed_which_ends_at_once(replicas: Replicas) -> None:
    told, listener = replicas.follower()
    listener.close()
    listener.close()
    replicas.writer.contents.change("a", "main")

    other, _ = replicas.follower()
    assert replicas.heard(other) == []
    assert told.empty()
    until(lambda: _listeners(replicas) == 1)


def test_a_listener_can_be_closed_while_no_server_answers(own_postgres: PostgresServer) -> None:
    url = own_postgres.new_database()
    own_postgres.stop()
    told: queue.SimpleQueue[Change | None] = queue.SimpleQueue()
    listener = listening.PostgresListener(url, told.put)
    listener.close()

    assert told.empty()


def test_who_follows_may_fail_and_hears_the_next_change(replicas: Replicas, caplog: pytest.LogCaptureFixture) -> None:
    heard: queue.SimpleQueue[Change | None] = queue.SimpleQueue()

    def fail_first(change: Change | None) -> None:
        heard.put(change)
        if change is None:
            raise ValueError("what a pity")

    listener = listening.PostgresListener(replicas.url, fail_first)
    try:
        assert heard.get(timeout=20) is None
        revision = replicas.writer.contents.change("a", "main")
        assert heard.get(timeout=20) == Change("a", CONTENTS, "main", revision)
    finally:
        listener.close()
    assert "could not be followed" in caplog.text


@pytest.mark.parametrize("payload", ["{", "7", "[1, 2]", '["a", "b", "c", "d"]', "null"])
def test_a_notification_that_cannot_be_read_may_have_been_any_change(replicas: Replicas, payload: str) -> None:
    told, _ = replicas.follower()
    replicas.server.execute(
        f"SELECT pg_notify('{listening.CHANNEL}', '{payload}')", database=replicas.url.rpartition("/")[2]
    )

    assert replicas.heard(told) == [None]


def test_a_listener_over_a_connection_that_brings_no_notifications_says_so(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As one behind a pooler of transactions: it looks as if it listened, and hears nothing."""
    monkeypatch.setattr(listening, "_LISTEN", b"SELECT 1")
    monkeypatch.setattr(listening, "_TRIAL_S", 0.05)
    heard: queue.SimpleQueue[Change | None] = queue.SimpleQueue()
    listener = listening.PostgresListener(replicas.url, heard.put)
    try:
        until(lambda: "sends no notifications" in caplog.text)
        assert not listener.hears_all
        assert heard.empty()
    finally:
        listener.close()


def test_no_password_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    listener = listening.PostgresListener("postgresql://ann:hunter2@127.0.0.1:1/x", _ignore)
    until(lambda: "is lost" in caplog.text)
    listener.close()

    assert not re.search("hunter2|ann", caplog.text)


def _ignore(_: Change | None) -> None:
    """Nobody follows."""


def _listeners(replicas: Replicas) -> int:
    """How many connections of listeners there are."""
    return int(replicas.server.execute(f"SELECT count(*) {_LISTENERS}")[0][0])
