"""PostgreSQL goes away, falls silent or takes no writes: it is told at once, and used again once it is back."""

import logging
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
import pytest

from tests.kit.clock import Clock
from tests.kit.postgres import PostgresServer
from tests.kit.storage_contracts.receipts import receipt
from tests.kit.tcp_proxy import TcpProxy, proxied
from toolsearch.cli.output import logs_on_stderr
from toolsearch.errors import BadSettingError, Kept, StorageError
from toolsearch.storage.postgres import connecting as availability
from toolsearch.storage.postgres import connecting as watched_connection
from toolsearch.storage.postgres.connecting import Availability, AwayError, connection_parameters
from toolsearch.storage.postgres.database import PostgresDatabase, translated
from toolsearch.storage.postgres.place import PostgresStorage
from toolsearch.storage.sessions import StoredSession


@contextmanager
def opened(url: str) -> Iterator[PostgresStorage]:
    with closing(PostgresStorage(url)) as storage:
        yield storage


@pytest.fixture
def looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the server is back is looked for with each request, so that no test waits for it."""
    monkeypatch.setattr(availability, "_LOOK_EVERY_S", 0.0)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_connection, "_SILENT_S", 0.1)
    monkeypatch.setitem(watched_connection._PARAMETERS, "connect_timeout", 1)


def require_away(storage: PostgresStorage) -> StorageError:
    with pytest.raises(StorageError) as raised:
        storage.keys.is_empty()
    assert (raised.value.code, raised.value.status) == ("store_unavailable", 503)
    assert raised.value.retry_after_s is not None
    return raised.value


def write(storage: PostgresStorage, document: dict[str, int] | None = None) -> int:
    return storage.records.put("t", "k", "r", document or {}, over=None, at_s=0).version


def write_in_silence(storage: PostgresStorage, network: TcpProxy, rows: list[tuple[str]]) -> None:
    with storage.transaction() as database:
        network.silence()
        if rows:
            database.executemany("INSERT INTO counters VALUES (?, 'x', 1)", rows)


def gave_up(storage: PostgresStorage, statement: str) -> bool:
    try:
        with storage.reading() as database:
            database.execute(statement)
    except StorageError as error:
        return error.code == "store_unavailable"
    return False


@pytest.mark.parametrize("end", ["stop", "crash"])
def test_a_server_that_has_ended_is_used_again_once_it_is_back(
    own_postgres: PostgresServer, looks_at_once: None, caplog: pytest.LogCaptureFixture, end: str
) -> None:
    with opened(own_postgres.new_database()) as storage:
        version = write(storage)
        getattr(own_postgres, end)()
        with caplog.at_level(logging.INFO, "toolsearch"):
            for _ in range(3):
                require_away(storage)
            own_postgres.start()
            assert write(storage) == version + 1

    gone, back = [each.getMessage() for each in caplog.records if each.name.startswith("toolsearch")]
    assert gone.startswith("PostgreSQL cannot be used")
    assert back.startswith("PostgreSQL can be used again")


@pytest.mark.parametrize("kind", ["sessions", "receipts"])
def test_what_was_acknowledged_is_there_after_the_server_was_killed(
    own_postgres: PostgresServer, looks_at_once: None, kind: str
) -> None:
    """Some hundreds of milliseconds would be lost if a commit did not wait."""
    with opened(own_postgres.new_database()) as storage:
        sessions = storage.sessions("t")
        version = sessions.save("s", "before", version=0)
        if kind == "sessions":
            sessions.save("s", "after", version=version)
        else:
            storage.receipts.append("t", [receipt("r1")])
        own_postgres.crash()
        own_postgres.start()
        while gave_up(storage, "SELECT 1"):
            """It looks with each request."""

        if kind == "sessions":
            assert sessions.load("s") == StoredSession("after", version + 1)
        else:
            assert [each.id for each in storage.receipts.page("t", limit=1)] == ["r1"]


@pytest.mark.parametrize("fault", ["cut", "silence"])
def test_a_network_that_is_cut_or_silent_is_told_and_used_again(
    postgres: PostgresServer, looks_at_once: None, impatient: None, fault: str
) -> None:
    url = postgres.new_database()
    with proxied(url) as network, opened(network.url(url)) as storage:
        write(storage)
        getattr(network, fault)()
        require_away(storage)

        network.mend()
        assert write(storage) == 2


@pytest.mark.parametrize("rows", [1_000, 0])
def test_a_statement_ends_when_the_server_falls_silent_meanwhile(
    postgres: PostgresServer, impatient: None, rows: int
) -> None:
    """Without rows, the first one in the silence is the COMMIT."""
    url = postgres.new_database()
    with proxied(url) as network, opened(network.url(url)) as storage:
        with pytest.raises(StorageError, match="PostgreSQL") as raised:
            write_in_silence(storage, network, [(str(number),) for number in range(rows)])
        network.mend()

    assert raised.value.code == "store_unavailable"
    assert raised.value.outcome_is_unknown == (not rows)


def test_a_statement_that_takes_long_is_waited_for(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched_connection, "_SILENT_S", 0.0)
    with opened(postgres.new_database()) as storage, storage.reading() as database:
        assert database.execute("SELECT 7 FROM pg_sleep(0.5)").fetchone() == (7,)


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_commit_whose_answer_is_lost_may_have_been_done(postgres: PostgresServer, is_answered: bool) -> None:
    """The text is what psycopg sends."""
    url = postgres.new_database()
    with proxied(url) as network, opened(network.url(url)) as storage:
        if is_answered:
            network.lose_answer_to(b"COMMIT")
        else:
            network.lose(b"COMMIT")
        with pytest.raises(StorageError, match="may have been done or not") as raised:
            write(storage)

        assert (raised.value.code, raised.value.outcome_is_unknown) == ("store_unavailable", True)
        assert (storage.records.get("t", "k", "r", at_s=0) is not None) == is_answered


def test_what_fails_before_its_commit_was_not_done(postgres: PostgresServer) -> None:
    url = postgres.new_database()
    with proxied(url) as network, opened(network.url(url)) as storage:
        network.lose_answer_to(b"INSERT INTO records")
        with pytest.raises(StorageError) as raised:
            write(storage)

        assert raised.value.code == "store_unavailable"
        assert not raised.value.outcome_is_unknown
        assert storage.records.get("t", "k", "r", at_s=0) is None


@pytest.fixture
def guest(postgres: PostgresServer) -> Iterator[str]:
    """The URL of a database of a user that is no administrator."""
    url = postgres.new_database(is_empty=True)
    name = url.rpartition("/")[2]
    postgres.execute("CREATE ROLE guest LOGIN")
    postgres.execute(f"ALTER DATABASE {name} OWNER TO guest")
    try:
        yield url.replace("postgres@", "guest@")
    finally:
        postgres.execute("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = 'guest'")
        postgres.execute(f"ALTER DATABASE {name} OWNER TO postgres")
        postgres.execute("DROP OWNED BY guest", database=name)
        postgres.execute("DROP ROLE guest")


def test_a_server_with_too_many_connections_serves_those_that_are_open(postgres: PostgresServer, guest: str) -> None:
    with opened(guest) as storage:
        assert storage.keys.is_empty()  # so that a connection is open
        postgres.execute("ALTER ROLE guest CONNECTION LIMIT 1")
        database = storage.database
        assert isinstance(database, PostgresDatabase)
        assert database.availability.look()
        assert storage.keys.is_empty()


def test_a_user_who_is_not_accepted_any_more_is_told_without_names(
    postgres: PostgresServer, guest: str, looks_at_once: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with logs_on_stderr(), opened(guest) as storage:
        assert storage.keys.is_empty()
        postgres.execute("ALTER ROLE guest NOLOGIN")
        assert storage.keys.is_empty()  # over the connection that is open
        postgres.execute("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = 'guest'")
        error = require_away(storage)

        postgres.execute("ALTER ROLE guest LOGIN")
        assert storage.keys.is_empty()
    logged = capsys.readouterr().err
    assert "not permitted to log in" in logged
    assert "guest" not in str(error) + logged
    assert len(logged.splitlines()) == 2  # it went, and it came back


def test_a_server_that_takes_no_writes_is_away_until_it_does(own_postgres: PostgresServer, looks_at_once: None) -> None:
    """As one that only follows another one since a failover."""

    def be_read_only(value: str) -> None:
        own_postgres.execute(f"ALTER SYSTEM SET default_transaction_read_only = {value}")
        own_postgres.execute("SELECT pg_reload_conf()")

    with opened(own_postgres.new_database()) as storage:
        be_read_only("on")
        while not gave_up(storage, "SELECT 1"):  # it is told of its settings a moment later
            pass
        require_away(storage)

        be_read_only("off")
        while gave_up(storage, "SELECT 1"):
            pass
        write(storage)


@pytest.mark.parametrize(
    ("error", "retry_after_s"),
    [
        (psycopg.errors.SerializationFailure(), 1.0),
        (psycopg.errors.DeadlockDetected(), 1.0),
        (psycopg.errors.LockNotAvailable(), 1.0),
        (psycopg.errors.AdminShutdown(), 2.0),
        (psycopg.errors.CannotConnectNow(), 2.0),
        (psycopg.errors.TooManyConnections(), 2.0),
        (psycopg.errors.ReadOnlySqlTransaction(), 2.0),
        (psycopg.errors.DiskFull(), 30.0),
        (psycopg.errors.QueryCanceled(), 5.0),
        (psycopg.OperationalError("connection lost"), 2.0),
        (psycopg.errors.UndefinedTable("no such table"), None),
        (psycopg.errors.NotNullViolation("a column is empty"), None),
    ],
)
def test_what_may_succeed_later_says_when(error: Exception, retry_after_s: float | None) -> None:
    with pytest.raises(StorageError) as raised, translated(Kept.RECORDS):
        raise error
    assert raised.value.retry_after_s == retry_after_s


@pytest.mark.parametrize("url", ["postgresql://u:%zz@h/db", "postgresql://u:p@h/db?sec=ret"])
def test_a_url_that_cannot_be_read_is_not_shown(url: str) -> None:
    with pytest.raises(BadSettingError) as raised:
        connection_parameters(url)
    assert not any(part in str(raised.value) for part in ("zz", "sec", "ret"))


def test_what_the_url_says_wins() -> None:
    told = connection_parameters("postgresql://u@a,b/db?connect_timeout=9&options=-c%20lock_timeout%3D1s")

    assert (told["host"], told["connect_timeout"], told["target_session_attrs"]) == ("a,b", "9", "read-write")
    assert told["options"].endswith("-c lock_timeout=1s")  # the last one is what counts


def test_while_the_server_is_away_nobody_waits_for_who_looks(clock: Clock) -> None:
    is_asked, may_answer = threading.Event(), threading.Event()
    looks = 0

    def connect() -> psycopg.Connection:
        nonlocal looks
        looks += 1
        if looks == 2:
            is_asked.set()
            may_answer.wait()
        raise psycopg.OperationalError("refused")

    def require() -> None:
        with pytest.raises(AwayError):
            available.require()

    available = Availability(connect, on_back=lambda: None, clock=clock)
    assert not available.look()
    clock.now_s += 1
    looking = threading.Thread(target=require)
    looking.start()
    is_asked.wait()
    require()  # while the other thread waits for the server
    may_answer.set()
    looking.join()
    require()  # so soon after the last look
    assert looks == 2
