"""Copies of what is in PostgreSQL: read as of one moment, and put into an empty database all at once."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from toolsearch.errors import StorageError
from toolsearch.storage.copying import BATCH, NOT_COPIED
from toolsearch.storage.postgres.connecting import connected
from toolsearch.storage.postgres.migration import migrate, state_of
from toolsearch.storage.postgres.schema import SCHEMA, VERSION
from toolsearch.storage.postgres.urls import shown

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
    """A `Source` and a `Target`: the tables of our schema, within the transaction that is open."""

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
