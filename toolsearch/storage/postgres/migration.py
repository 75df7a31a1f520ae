"""Makes the tables in PostgreSQL, and brings those of an earlier version up to date, while other replicas use them."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import psycopg

from toolsearch.storage.postgres.schema import SCHEMA, STEPS, VERSION, Step

OLDEST_SERVER: Final = 14_00_00
_LOCK: Final = 0x7001_5EA4  # of those who migrate
_PAUSE_S: Final = 0.1
_TRIES: Final = 60  # of a step whose tables are in use
_UNUSABLE_INDEXES: Final = f"""
SELECT indexrelid::regclass::text FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE NOT indisvalid AND relnamespace = '{SCHEMA}'::regnamespace
"""  # noqa: S608


class UnusableTablesError(Exception):
    """The tables are of a newer version that this one cannot use; the message says what to do."""


class State(NamedTuple):
    """Which version the tables have, 0 where there are none, and the oldest version that can use them."""

    version: int
    oldest_version: int


def state_of(connection: psycopg.Connection[Any]) -> State:
    found = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.versions",)).fetchone()
    if found is None or found[0] is None:
        return State(0, 0)
    row = connection.execute(
        f"SELECT coalesce(max(version), 0), coalesce(max(oldest_version), 0) FROM {SCHEMA}.versions"  # noqa: S608
    ).fetchone()
    return State(*row) if row else State(0, 0)


def migrate(connection: psycopg.Connection[Any], steps: Sequence[Step] = STEPS) -> None:
    """Bring the tables up to date over *connection*, which commits each statement and is used for nothing else.

    Each step is done all or nothing. Of several replicas that do that at once, the others wait and find it done.
    Raises UnusableTablesError.
    """
    if connection.info.server_version < OLDEST_SERVER:
        raise UnusableTablesError(f"need PostgreSQL {OLDEST_SERVER // 10_000} or newer")
    _require_schema(connection)
    if is_current(connection, len(steps)):
        return
    with _alone(connection):
        if is_current(connection, len(steps)):
            return
        _make_versions(connection)
        for number in range(state_of(connection).version + 1, len(steps) + 1):
            _take(connection, number, steps[number - 1])


def _require_schema(connection: psycopg.Connection[Any]) -> None:
    """A pooler may drop the options of the connection; then tables would be made, and looked for, elsewhere."""
    path = str(connection.execute("SHOW search_path").fetchone())
    if SCHEMA not in path:
        raise UnusableTablesError(
            f"cannot be found: a pooler drops the options of connections; ALTER ROLE ... SET search_path = {SCHEMA}"
        )


def is_current(connection: psycopg.Connection[Any], version: int = VERSION) -> bool:
    """Whether the tables can be used by *version* as they are. Raises UnusableTablesError if they are too new."""
    state = state_of(connection)
    if state.oldest_version > version:
        raise UnusableTablesError(
            f"were written by another version ({state.version}, which {version} cannot use any more); use the newer "
            "toolsearch"
        )
    return state.version >= version


@contextmanager
def _alone(connection: psycopg.Connection[Any]) -> Generator[None]:
    """Nobody else migrates meanwhile. Who waits asks again and again: an index that is made beside what replicas do
    (CONCURRENTLY) waits itself for every statement that runs, so also for one that would wait for this lock.
    """
    while not _one(connection, "SELECT pg_try_advisory_lock(%s)", _LOCK):
        time.sleep(_PAUSE_S)
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))


def _make_versions(connection: psycopg.Connection[Any]) -> None:
    with connection.transaction():
        if _one(connection, "SELECT to_regnamespace(%s)", SCHEMA) is None:  # whoever may make one may be another role
            connection.execute(f"CREATE SCHEMA {SCHEMA}")
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {SCHEMA}.versions (version INT PRIMARY KEY, oldest_version INT NOT NULL, "
            "migrated_at TIMESTAMPTZ NOT NULL DEFAULT now())"
        )


def _take(connection: psycopg.Connection[Any], number: int, step: Step) -> None:
    if step.is_concurrent:
        connection.execute("SET statement_timeout = 0")
        connection.execute("SET lock_timeout = 0")
        for (index,) in connection.execute(_UNUSABLE_INDEXES).fetchall():  # of a step that was cut off
            connection.execute(f"DROP INDEX CONCURRENTLY {index}".encode())
        for statement in step.statements:
            connection.execute(statement)
        _note(connection, number, step)
        return
    for tries_left in reversed(range(_TRIES)):
        try:
            with connection.transaction():
                connection.execute("SET LOCAL lock_timeout = '1s'")
                for statement in step.statements:
                    connection.execute(statement)
                _note(connection, number, step)
        except psycopg.errors.LockNotAvailable:
            if not tries_left:
                raise
            time.sleep(_PAUSE_S)  # those who queued behind this step go first
        else:
            return


def _note(connection: psycopg.Connection[Any], number: int, step: Step) -> None:
    connection.execute("INSERT INTO versions (version, oldest_version) VALUES (%s, %s)", (number, step.oldest_version))


def _one(connection: psycopg.Connection[Any], query: str, *values: object) -> Any:
    row = connection.execute(query.encode(), values).fetchone()
    return row[0] if row else None
