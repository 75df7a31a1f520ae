"""Connections to one PostgreSQL database, which threads borrow from a pool, and its errors as our own."""

from __future__ import annotations

import os
import selectors
import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, cast

import psycopg
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from toolsearch.errors import Kept, StorageError
from toolsearch.storage.postgres import listening, schema
from toolsearch.storage.postgres.connecting import Availability, AwayError, WatchedConnection, connection_parameters
from toolsearch.storage.replicas import Change, OnChange, Subscription
from toolsearch.storage.sql import BadValueError, Cursor, Durability, StoreLoad, checked


class OutcomeUnknownError(psycopg.OperationalError):
    """The connection was lost before the answer to a COMMIT: it may have been done or not."""


class _Told(NamedTuple):
    text: str
    retry_after_s: float


_LOST: Final = _Told("PostgreSQL cannot be reached now; try again soon", 2.0)

_UNKNOWN: Final = _Told(
    "PostgreSQL was lost during a change, so it may have been done or not; repeat the request "
    "with the same Idempotency-Key or If-Match, or look",
    2.0,
)

_BUSY: Final = _Told("all connections to PostgreSQL are in use; try again soon", 2.0)
_SLOW: Final = _Told("PostgreSQL took too long; try again later", 5.0)
_OTHERS: Final = _Told("others were writing the same; try again", 1.0)
_READ_ONLY: Final = _Told("PostgreSQL takes no writes now; try again soon", 2.0)
_FULL: Final = _Told("PostgreSQL has no room or memory left; try again later, and tell the operator", 30.0)


# By SQLSTATE, or the first characters of several; the longest that fits is what counts.
_BY_STATE: Final = {
    "08": _LOST,  # the connection
    "28": _LOST,  # the password
    "57P": _LOST,  # it stops, starts or has crashed
    "57014": _SLOW,  # cancelled, by statement_timeout
    "25P": _SLOW,  # idle within a transaction
    "40": _OTHERS,  # deadlock, serialization
    "55P03": _OTHERS,  # lock_timeout
    "25006": _READ_ONLY,
    "53": _FULL,
    "53300": _BUSY,
    "58": _LOST,  # its disk fails
}


@contextmanager
def translated(kept: Kept) -> Generator[None]:
    """Raise errors of PostgreSQL as StorageError, which names *kept*, and no value that was sent."""
    try:
        yield
    except schema.UnusableTablesError as error:
        raise StorageError(f"the {kept.contents} in PostgreSQL {error}", kept) from error
    except PoolClosed as error:
        raise StorageError(f"cannot use the {kept.contents} in PostgreSQL: it was closed", kept) from error
    except BadValueError as error:
        raise StorageError(f"cannot be kept among the {kept.contents}: {error}", kept, is_callers_fault=True) from error
    except (psycopg.Error, UnicodeError) as error:
        told = _told(error)
        if told is None:
            raise StorageError(f"cannot use the {kept.contents} in PostgreSQL: {_first_line(error)}", kept) from error
        raise StorageError(
            f"cannot use the {kept.contents}: {told.text}",
            kept,
            retry_after_s=told.retry_after_s,
            outcome_is_unknown=isinstance(error, OutcomeUnknownError),
        ) from error


def _told(error: Exception) -> _Told | None:
    """None for what would fail again."""
    if isinstance(error, OutcomeUnknownError):
        return _UNKNOWN
    if isinstance(error, PoolTimeout):
        return _BUSY
    state = (error.sqlstate if isinstance(error, psycopg.Error) else None) or ""
    known = max((each for each in _BY_STATE if state.startswith(each)), key=len, default=None)
    if known is not None:
        return _BY_STATE[known]
    return _LOST if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not state else None


def _first_line(error: Exception) -> str:
    """What was wrong, without the values that PostgreSQL quotes in the lines below."""
    return (str(error).splitlines() or [type(error).__name__])[0]


MAX_CONNECTIONS: Final = 10
_WAIT_S: Final = 5.0  # for a connection; after that the request is told to try again

_BEGIN: Final[Mapping[Durability, str]] = {
    "NORMAL": "BEGIN; SET LOCAL synchronous_commit = off",
    "ACKNOWLEDGED": "BEGIN",  # a commit waits for as much as the server's operator says, such as for its replicas
    "FULL": "BEGIN",
}

_BEGIN_SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
_Raw = psycopg.Connection[TupleRow]


class PostgresConnection:
    """A `DatabaseConnection`. *depth* is how many transactions are open within each other; *is_snapshot* that of one
    for reading.
    """

    def __init__(self, raw: _Raw) -> None:
        self.raw = raw
        self.depth = 0
        self.is_snapshot = False

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Cursor:
        return cast("Cursor", self._cursor().execute(numbered(statement), checked(values)))

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object:
        values = [checked(row) for row in rows]
        cursor = self._cursor()
        if values:
            cursor.executemany(numbered(statement), values)
        return cursor

    def lock(self, *names: str) -> None:
        self._cursor().execute(_LOCK.encode(), ("\n".join(names),))

    def announce(self, tenant: str, kind: str, subject: str = "", version: int = 0) -> None:
        listening.announce(self._cursor(), Change(tenant, kind, subject, version))

    def _cursor(self) -> psycopg.RawCursor[TupleRow]:
        return psycopg.RawCursor(self.raw)


class PostgresDatabase:
    """A `Database`: that at *url*, whose tables are made, or brought up to date, when it is opened.

    Everything that a thread writes is read by all from the commit on. A thread has one connection at a time, however
    its blocks are within each other, so that none waits for another thread's while it has one itself. Raises
    StorageError if it cannot be reached, and in a process that was forked after it was opened.
    """

    def __init__(self, url: str, *, max_connections: int = MAX_CONNECTIONS) -> None:
        self._url = url
        self._process = os.getpid()
        self._of_thread = threading.local()
        parameters = connection_parameters(url)
        self.availability = Availability(partial(psycopg.connect, **parameters), on_back=self._renew)
        self._pool = ConnectionPool(
            connection_class=WatchedConnection,
            min_size=1,
            max_size=max_connections,
            timeout=_WAIT_S,
            reconnect_timeout=0,  # it tries again with the next request, rather than ever less often
            kwargs={"autocommit": True, **parameters},
            configure=self.availability.watch,
            open=False,
        )
        try:
            self._require_server()
            with psycopg.connect(autocommit=True, **parameters) as connection:
                schema.migrate(connection)
            self._pool.open()
        except BaseException:
            self._pool.close()
            raise

    def reading(self) -> AbstractContextManager[PostgresConnection]:
        return self._connection()

    @contextmanager
    def snapshot(self) -> Generator[PostgresConnection]:
        with self._connection() as connection:
            if connection.depth:
                yield connection
                return
            connection.is_snapshot = True
            try:
                with _transaction(connection, _BEGIN_SNAPSHOT):
                    yield connection
            finally:
                connection.is_snapshot = False

    @contextmanager
    def transaction(self, durability: Durability = "NORMAL", /) -> Generator[PostgresConnection]:
        with self._connection() as connection:
            if connection.is_snapshot:
                raise RuntimeError("nothing can be written within a snapshot; write before it or after it")
            part = _savepoint(connection) if connection.depth else _transaction(connection, _BEGIN[durability])
            with part:
                yield connection

    @contextmanager
    def statement(self, durability: Durability = "NORMAL", /) -> Generator[PostgresConnection]:
        with self._connection() as connection:
            if connection.depth or durability == "NORMAL":
                with self.transaction(durability):
                    yield connection
            else:
                yield connection

    def translated(self, kept: Kept) -> AbstractContextManager[None]:
        return translated(kept)

    def follow(self, on_change: OnChange) -> Subscription:
        return listening.PostgresListener(self._url, on_change)

    def load(self) -> StoreLoad:
        told = self._pool.get_stats()
        connections = told.get("pool_size", 0)
        return StoreLoad(
            is_there=self.availability.is_there,
            times_away=self.availability.times_away,
            connections=connections,
            busy=connections - told.get("pool_available", 0),
            waiting=told.get("requests_waiting", 0),
        )

    def close(self) -> None:
        if self._process == os.getpid():  # else it would end the connections of the parent
            self._pool.close()

    @contextmanager
    def _borrowed(self) -> Generator[PostgresConnection]:
        raw = self._usable()
        try:
            yield PostgresConnection(raw)
        except psycopg.errors.ReadOnlySqlTransaction:
            raw.close()  # after a failover it leads to what is not the primary any more
            raise
        finally:
            self._pool.putconn(raw)

    def _renew(self) -> None:
        """Those that are idle may wait for a server that has gone, and not know."""
        self._pool.drain()

    def _usable(self) -> WatchedConnection:
        """A connection that works. Those that do not are replaced, unless the server is away: that is told at once."""
        if self._process != os.getpid():
            raise psycopg.ProgrammingError("it was opened before this process was forked; open it in the child")
        self.availability.require()
        try:
            while not _works(raw := self._pool.getconn()):
                raw.close()
                self._pool.putconn(raw)
                self._require_server()
        except PoolTimeout:
            self._require_server()
            raise
        return raw

    def _require_server(self) -> None:
        if not (self.availability.is_there and self.availability.look()):
            raise AwayError("the server is away")

    @contextmanager
    def _connection(self) -> Generator[PostgresConnection]:
        """That of this thread, or one that is this thread's within the block."""
        held: PostgresConnection | None = getattr(self._of_thread, "connection", None)
        if held is not None:
            yield held
            return
        with self._borrowed() as connection:
            self._of_thread.connection = connection
            try:
                yield connection
            finally:
                self._of_thread.connection = None


def _works(connection: WatchedConnection) -> bool:
    """Whether the connection leads to a server that takes writes. One that says nothing is taken for good."""
    try:
        if _has_heard_something(connection):  # as when the server ends
            connection.execute("")
    except psycopg.Error:
        return False
    told = connection.info.parameter_status
    return "on" not in (told("in_hot_standby"), told("default_transaction_read_only"))


def _has_heard_something(connection: WatchedConnection) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        return bool(selector.select(timeout=0))


@contextmanager
def _transaction(connection: PostgresConnection, begin: str) -> Generator[None]:
    connection.raw.execute(begin.encode())
    connection.depth = 1
    try:
        yield
        _commit(connection.raw)
    except BaseException:
        with suppress(psycopg.Error):  # the first error is what matters; a lost connection has undone everything
            connection.raw.execute("ROLLBACK")
        raise
    finally:
        connection.depth = 0


def _commit(connection: _Raw) -> None:
    was_closed = connection.closed
    try:
        done = connection.execute("COMMIT")
    except psycopg.Error as error:
        if connection.closed and not was_closed:
            raise OutcomeUnknownError(*error.args) from error
        raise
    if done.statusmessage != "COMMIT":
        raise psycopg.OperationalError("a part of the transaction had failed, and nothing was written")


@contextmanager
def _savepoint(connection: PostgresConnection) -> Generator[None]:
    connection.raw.execute("SAVEPOINT part")
    connection.depth += 1
    try:
        yield
    except BaseException:
        with suppress(psycopg.Error):
            connection.raw.execute("ROLLBACK TO part; RELEASE part")
        raise
    else:
        connection.raw.execute("RELEASE part")
    finally:
        connection.depth -= 1


@lru_cache(maxsize=256)
def numbered(statement: str) -> bytes:
    """Write ``?`` and ``?1``, as `toolsearch.storage.sql` has them, as ``$1``. No statement has them in a text."""
    first, *rest = statement.split("?")
    if rest and rest[0][:1].isdigit():
        return "$".join((first, *rest)).encode()
    return "".join((first, *(f"${place}{text}" for place, text in enumerate(rest, 1)))).encode()
