"""A PostgreSQL database as the place where services keep everything: opened, looked at, backed up and restored.

Replicas share it, so it also holds their leases and vectors.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from toolsearch.errors import Kept, StorageError
from toolsearch.storage.place import BATCH, NOT_COPIED, OnProgress, StoreState, copy_tables
from toolsearch.storage.postgres.connecting import connected, shown
from toolsearch.storage.postgres.database import MAX_CONNECTIONS, PostgresDatabase, translated
from toolsearch.storage.postgres.schema import OLDEST_SERVER, SCHEMA, VERSION, is_current, migrate, state_of
from toolsearch.storage.sql import SqlStore
from toolsearch.storage.sqlite.place import reading_file, writing_new_file
from toolsearch.storage.storage import Storage

_NOW: Final = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"

_TAKE: Final = f"""
INSERT INTO leases (name, holder, until_s) VALUES (?1, ?2, {_NOW} + CAST(?3 AS DOUBLE PRECISION))
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_s = excluded.until_s
WHERE leases.holder = excluded.holder OR leases.until_s <= {_NOW}
"""  # noqa: S608

_RENEW: Final = f"""
UPDATE leases SET until_s = {_NOW} + CAST(?3 AS DOUBLE PRECISION)
WHERE name = ?1 AND holder = ?2 AND until_s > {_NOW}
"""  # noqa: S608

_RELEASE: Final = "DELETE FROM leases WHERE name = ? AND holder = ?"
_HELD: Final = f"SELECT name FROM leases WHERE name = ANY(?) AND until_s > {_NOW}"  # noqa: S608
_FORGET: Final = f"DELETE FROM leases WHERE until_s < {_NOW} - 3600"  # noqa: S608


class PostgresLeases(SqlStore):
    """`Leases` that replicas share."""

    kept = Kept.DATA

    def take(self, name: str, holder: str, *, for_s: float) -> bool:
        with self._transaction() as database:
            database.execute(_FORGET)  # those of replicas that are gone
            return database.execute(_TAKE, (name, holder, for_s)).rowcount == 1

    def renew(self, name: str, holder: str, *, for_s: float) -> bool:
        with self._transaction() as database:
            return database.execute(_RENEW, (name, holder, for_s)).rowcount == 1

    def release(self, name: str, holder: str) -> None:
        with self._transaction() as database:
            database.execute(_RELEASE, (name, holder))

    def held(self, names: Collection[str]) -> frozenset[str]:
        with self._reading() as database:
            return frozenset(name for (name,) in database.execute(_HELD, (list(names),)))


_AT_ONCE: Final = 1_000  # some MB, as a vector has some kB
_GET: Final = "SELECT key, value FROM vectors WHERE key = ANY(?)"
_PUT: Final = "INSERT INTO vectors (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"


class PostgresVectors(SqlStore):
    """A `VectorStore` that replicas share. Raises StorageError."""

    kept = Kept.VECTORS

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found = dict[bytes, bytes]()
        for place in range(0, len(keys), _AT_ONCE):
            with self._reading() as database:
                found.update(database.execute(_GET, (list(keys[place : place + _AT_ONCE]),)).fetchall())
        return found

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """In the order of the keys, so that two replicas that embed the same texts never wait for each other."""
        with self._transaction() as database:
            database.executemany(_PUT, sorted(values.items()))

    def close(self) -> None:
        """Whoever opened the database closes it."""


_COLUMNS: Final = """
SELECT c.relname, a.attname, a.attidentity <> ''
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
WHERE n.nspname = %s AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY c.relname, a.attnum
"""

_NUMBER_ON: Final = """
SELECT setval(pg_get_serial_sequence({name}, {column_name}), coalesce(max({column}), 0) + 1, false) FROM {table}
"""


# A copy may take longer than a site lets its requests take.
_UNLIMITED: Final = "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"
_WAIT_MS: Final = 10_000  # for those who use an empty database


class PostgresTables:
    """The `Tables` of our schema, within the transaction that is open."""

    def __init__(self, raw: psycopg.Connection[TupleRow]) -> None:
        self._raw = raw
        found = raw.execute(_COLUMNS, (SCHEMA,)).fetchall()
        self._found: list[tuple[str, str, bool]] = [
            (table, column, is_numbered) for table, column, is_numbered in found
        ]

    def columns(self) -> dict[str, list[str]]:
        return {table: [row[1] for row in rows] for table, rows in groupby(self._found, itemgetter(0))}

    def count(self, table: str) -> int:
        row = self._raw.execute(sql.SQL("SELECT count(*) FROM {}").format(_table(table))).fetchone()
        return int(row[0]) if row else 0

    def rows(self, table: str, columns: Collection[str]) -> Iterator[tuple[Any, ...]]:
        query = sql.SQL("SELECT {} FROM {}").format(_listed(columns), _table(table))
        with self._raw.cursor(name="copied") as cursor:
            cursor.itersize = BATCH
            yield from cursor.execute(query)

    def is_empty(self, table: str) -> bool:
        return self._raw.execute(sql.SQL("SELECT 1 FROM {} LIMIT 1").format(_table(table))).fetchone() is None

    def write(self, table: str, columns: Collection[str], rows: Iterable[tuple[Any, ...]]) -> None:
        command = sql.SQL("COPY {} ({}) FROM STDIN").format(_table(table), _listed(columns))
        with self._raw.cursor() as cursor, cursor.copy(command) as copy:
            for row in rows:
                copy.write_row([_storable(value) for value in row])
        for column in (column for name, column, is_numbered in self._found if is_numbered and name == table):
            self._number_on(table, column)

    def lock(self) -> None:
        """Let nobody else read or write until the transaction ends."""
        tables = [_table(table) for table in self.columns() if table not in NOT_COPIED]
        try:
            self._raw.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(sql.SQL(", ").join(tables)))
        except psycopg.errors.LockNotAvailable as error:
            raise StorageError("others are using the database; end the services over it first") from error

    def analyze(self) -> None:
        """Let PostgreSQL plan by what was written, rather than once it comes to look."""
        tables = [_table(table) for table in self.columns()]
        self._raw.execute(sql.SQL("ANALYZE {}").format(sql.SQL(", ").join(tables)))

    def _number_on(self, table: str, column: str) -> None:
        """Give the next row the number after the highest that was copied."""
        self._raw.execute(
            sql.SQL(_NUMBER_ON).format(
                name=sql.Literal(f"{SCHEMA}.{table}"),
                column_name=sql.Literal(column),
                column=sql.Identifier(column),
                table=_table(table),
            )
        )


@contextmanager
def reading_database(url: str) -> Generator[PostgresTables]:
    """What the database at *url* has at one moment, while others write. Nothing is changed. Raises StorageError."""
    with connected(url, "backup", is_for_writing=False) as raw:
        _require_current(raw, url)
        raw.isolation_level, raw.read_only = psycopg.IsolationLevel.REPEATABLE_READ, True
        with raw.transaction():
            raw.execute(_UNLIMITED)
            yield PostgresTables(raw)


@contextmanager
def filling_database(url: str) -> Generator[PostgresTables]:
    """The tables of the database at *url*, made if they are missing, to be filled all or nothing.

    Nobody else can use them meanwhile. Raises StorageError.
    """
    with connected(url, "restore") as raw:
        migrate(raw)
        with raw.transaction():
            raw.execute(_UNLIMITED)
            raw.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(sql.Literal(_WAIT_MS)))
            tables = PostgresTables(raw)
            tables.lock()
            yield tables
            tables.analyze()


def _require_current(raw: psycopg.Connection[TupleRow], url: str) -> None:
    version = state_of(raw).version
    if not version:
        raise StorageError(f"no service keeps anything in {shown(url)}; name another database by --store")
    if version != VERSION:
        raise StorageError(
            f"the tables in {shown(url)} have version {version}, and this toolsearch copies version {VERSION}; use the "
            "one that serves them"
        )


def _storable(value: Any) -> Any:
    """Texts of PostgreSQL cannot have the character U+0000, which somebody may have searched for."""
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value


def _table(name: str) -> sql.Identifier:
    return sql.Identifier(SCHEMA, name)


def _listed(columns: Collection[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


class PostgresStorage(Storage):
    """The database at *url*, as ``postgresql://user@host/name``, in a schema named ``toolsearch``.

    Raises StorageError if it cannot be reached, or has tables of a newer version that this one cannot use.
    """

    is_shared = True

    def __init__(self, url: str, *, max_connections: int = MAX_CONNECTIONS) -> None:
        with translated(Kept.DATA):
            database = PostgresDatabase(url, max_connections=max_connections)
        super().__init__(database, PostgresLeases(database), PostgresVectors(database))
        self._url = url

    def backup(self, path: Path) -> None:
        """Over a connection of its own, since it may take longer than a request. The copy is a SQLite file."""
        with reading_database(self._url) as source, writing_new_file(path) as target:
            copy_tables(source, target)


_VECTOR: Final = """
SELECT (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
       (SELECT default_version FROM pg_available_extensions WHERE name = 'vector')
"""

_IN_USE: Final = "SELECT to_regnamespace(%s) IS NULL AND NOT has_database_privilege(current_database(), 'CREATE')"


@dataclass(frozen=True, slots=True)
class Inspection:
    """What can be told of a database that can be used, or of what a start makes of it.

    vector            the version of pgvector that is installed in the database, None if none is
    available_vector  and that which can be, None if the server does not have it
    """

    server: str  # the product and its version
    place: str
    version: int  # of the tables, 0 where there are none
    vector: str | None
    available_vector: str | None
    is_encrypted: bool
    is_remote: bool

    @property
    def is_current(self) -> bool:
        """Whether a start leaves the tables as they are."""
        return self.version >= VERSION

    @property
    def state(self) -> str:
        if not self.version:
            tables = "no tables yet; the first start makes them"
        elif self.is_current:
            tables = f"version {self.version}"
        else:
            tables = f"version {self.version}; the next start makes it {VERSION}"
        return f"{self.server}, {self.place}: {tables}"


def inspected(url: str) -> Inspection:
    """Raises BadSettingError, or StorageError with what a start would end with."""
    with connected(url, "check", is_for_writing=False) as raw:
        raw.read_only = True
        with raw.transaction():
            is_current(raw)  # raises if the tables are too new
            _require_usable(raw, url)
            vector, available = _one(raw, _VECTOR)
            info = raw.info
            return Inspection(
                server=f"PostgreSQL {info.parameter_status('server_version')}",
                place=shown(url),
                version=state_of(raw).version,
                vector=vector,
                available_vector=available,
                is_encrypted=bool(raw.pgconn.ssl_in_use),
                is_remote=not info.host.startswith("/") and info.hostaddr not in ("127.0.0.1", "::1"),
            )


def _require_usable(raw: psycopg.Connection[Any], url: str) -> None:
    if raw.info.server_version < OLDEST_SERVER:
        raise StorageError(f"the server of {shown(url)} is too old; use PostgreSQL {OLDEST_SERVER // 10_000} or newer")
    if _one(raw, "SELECT pg_is_in_recovery()")[0]:
        raise StorageError(f"{shown(url)} is a copy that can only be read; name the primary server")
    if (encoding := raw.info.parameter_status("server_encoding")) != "UTF8":
        raise StorageError(f"{shown(url)} has the encoding {encoding}; make the database anew with ENCODING 'UTF8'")
    if _one(raw, _IN_USE, SCHEMA)[0]:
        raise StorageError(
            f"the role may not make the schema {SCHEMA} in {shown(url)}; make it the owner, or GRANT it CREATE"
        )


def _one(raw: psycopg.Connection[Any], query: str, *values: str) -> Any:
    return raw.execute(query.encode(), values).fetchone()


class PostgresPlace:
    """A `StorePlace`. Raises BadSettingError if *url* cannot be read."""

    is_shared = True

    def __init__(self, url: str, *, max_connections: int | None = None) -> None:
        self._url = url
        self._max_connections = max_connections or MAX_CONNECTIONS
        self.name = shown(url)

    def is_new(self) -> bool:
        return not inspected(self._url).version

    def require(self) -> None:
        if self.is_new():
            raise StorageError(f"no service keeps anything in {self.name}; name another database by --store")

    def open(self) -> PostgresStorage:
        with connected(self._url, "start"):
            pass  # a wrong password is told at once, while the pool of connections tries until its time is over
        return PostgresStorage(self._url, max_connections=self._max_connections)

    def look(self) -> StoreState:
        found = inspected(self._url)
        return StoreState(found.state, found.is_current, [("pgvector", _vector(found))], list(warnings_of(found)))

    def back_up(self, to: Path, on_progress: OnProgress) -> None:
        with reading_database(self._url) as source, writing_new_file(to) as target:
            copy_tables(source, target, on_progress)

    def restore(self, backup: Path, on_progress: OnProgress) -> None:
        with reading_file(backup) as source, filling_database(self._url) as target:
            copy_tables(source, target, on_progress)


def _vector(found: Inspection) -> str:
    if found.vector:
        return f"version {found.vector}"
    if found.available_vector:
        return f"version {found.available_vector} can be had, by CREATE EXTENSION vector"
    return "not there, and only needed for catalogs that do not fit into memory"


def warnings_of(found: Inspection) -> Iterator[tuple[str, str]]:
    if found.is_remote and not found.is_encrypted:
        told = "the connection to PostgreSQL is not encrypted; add sslmode=verify-full to the URL"
        yield "store's encryption", told
