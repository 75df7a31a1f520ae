"""Tables in PostgreSQL: made once by several replicas, changed by a newer version while those of this one work."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.kit.postgres import PostgresServer
from tests.kit.storage_contracts.storage import contents, fill
from toolsearch.errors import StorageError
from toolsearch.storage.place import NOT_COPIED
from toolsearch.storage.postgres import schema as migration
from toolsearch.storage.postgres.place import PostgresStorage
from toolsearch.storage.postgres.schema import SCHEMA, STEPS, VERSION, SchemaStep, SchemaVersion, migrate, state_of
from toolsearch.storage.sqlite.place import SqliteStorage

COLUMNS_IN_SQLITE = """
SELECT tables.name, columns.name FROM sqlite_master AS tables JOIN pragma_table_info(tables.name) AS columns
WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite%' ORDER BY tables.name, columns.cid
"""
ADDS = SchemaStep(
    ("ALTER TABLE records ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'", "CREATE TABLE extras (n INT)"), 1
)
INDEXES = SchemaStep(
    ("CREATE INDEX CONCURRENTLY IF NOT EXISTS usage_by_time ON usage (at_s)",), oldest_version=1, is_concurrent=True
)
TAKES_AWAY = SchemaStep(("ALTER TABLE records DROP COLUMN document",), oldest_version=VERSION + 1)


@contextmanager
def connected(url: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with psycopg.connect(url, autocommit=True, options=f"-c search_path={SCHEMA}") as connection:
        yield connection


def upgrade(url: str, *steps: SchemaStep) -> SchemaVersion:
    with connected(url) as connection:
        migrate(connection, (*STEPS, *steps))
        return state_of(connection)


@pytest.fixture
def url(any_postgres: PostgresServer) -> str:
    return any_postgres.new_database(is_empty=True)


START = """
import sys
from contextlib import closing
from toolsearch.storage.postgres.place import PostgresStorage
print("ready", flush=True)
sys.stdin.readline()
with closing(PostgresStorage(sys.argv[1])) as storage:
    print(storage.keys.is_empty())
"""


def test_of_replicas_that_start_at_once_on_an_empty_database_one_makes_the_tables(
    url: str, start_python: Callable[..., subprocess.Popen[str]]
) -> None:
    running = [start_python("-c", START, url) for _ in range(4)]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

    assert [process.communicate("go\n", timeout=100) for process in running] == [("True\n", "")] * 4
    with connected(url) as connection:
        assert connection.execute("SELECT version FROM versions ORDER BY 1").fetchall() == [
            (number,) for number in range(1, VERSION + 1)
        ]


def test_a_replica_goes_on_and_starts_after_a_newer_version_has_added_something(url: str) -> None:
    with closing(PostgresStorage(url)) as running:
        for number in range(7):  # as often as makes PostgreSQL keep plans of the statements
            fill(running, f"before{number}")
        assert upgrade(url, ADDS, INDEXES) == SchemaVersion(VERSION + 2, 1)

        for number in range(7):
            fill(running, f"after{number}")
        with closing(PostgresStorage(url)) as started:
            assert contents(started, "after0") == contents(running, "after0")
            fill(started, "last")
        running.drop_tenant("before0")
        assert contents(running, "before0") == contents(running, "nobody")


def test_a_replica_is_refused_once_its_version_cannot_use_the_tables_any_more(url: str) -> None:
    upgrade(url, TAKES_AWAY)

    with pytest.raises(
        StorageError, match=rf"another version \({VERSION + 1}, which {VERSION} cannot use any more\); use the newer"
    ):
        PostgresStorage(url)


def test_a_step_that_fails_leaves_everything_as_it_was_and_is_done_by_the_next_start(url: str) -> None:
    broken = SchemaStep((*ADDS.statements, "CREATE TABLE records (n INT)"), oldest_version=1)
    with closing(PostgresStorage(url)) as running:
        with pytest.raises(psycopg.errors.DuplicateTable):
            upgrade(url, broken)
        fill(running, "a")

    with connected(url) as connection:
        assert state_of(connection) == SchemaVersion(VERSION, 1)
        assert connection.execute("SELECT to_regclass('extras')").fetchone() == (None,)
    assert upgrade(url, ADDS) == SchemaVersion(VERSION + 1, 1)


def test_a_step_waits_for_who_uses_a_table_and_nobody_waits_for_it_long(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gives up when it gets no lock, and is tried again, so that those who queued behind it can go on."""
    gave_way: list[float] = []
    with closing(PostgresStorage(url)) as running, running.transaction() as using:
        using.execute("SELECT count(*) FROM records")
        monkeypatch.setattr(migration, "_TRIES", 2)
        monkeypatch.setattr(migration.time, "sleep", gave_way.append)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            upgrade(url, ADDS)
    assert len(gave_way) == 1

    assert upgrade(url, ADDS) == SchemaVersion(VERSION + 1, 1)


def test_an_index_that_was_cut_off_is_made_anew(url: str) -> None:
    unique = "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS one_weight ON usage (weight)"
    step = SchemaStep((unique,), oldest_version=1, is_concurrent=True)
    with closing(PostgresStorage(url)) as running:
        fill(running, "a")
        fill(running, "b")
        with pytest.raises(psycopg.errors.UniqueViolation):
            upgrade(url, step)
        running.usage.reset("b")

    assert upgrade(url, step) == SchemaVersion(VERSION + 1, 1)
    with connected(url) as connection:
        made = connection.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = 'one_weight'::regclass")
        assert made.fetchall() == [(True,)]


def test_both_databases_have_the_same_columns_in_the_same_order(url: str, tmp_path: Path) -> None:
    with closing(PostgresStorage(url)) as postgres, postgres.reading() as database:
        ours = columns(
            database.execute(
                "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = ? "
                "ORDER BY table_name, ordinal_position",
                (SCHEMA,),
            ).fetchall()
        )
    with closing(SqliteStorage(tmp_path / "kept.db")) as sqlite, sqlite.reading() as database:
        theirs = columns(database.execute(COLUMNS_IN_SQLITE).fetchall())

    assert theirs == {table: names for table, names in ours.items() if table not in NOT_COPIED}


def test_every_text_that_is_looked_up_is_compared_by_its_bytes(url: str) -> None:
    with closing(PostgresStorage(url)) as storage, storage.reading() as database:
        others = database.execute(
            """
            SELECT attrelid::regclass::text, attname FROM pg_index
            JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY(indkey)
            JOIN pg_class ON pg_class.oid = indrelid
            WHERE relnamespace = to_regnamespace(?) AND attcollation NOT IN (0, 'pg_catalog."C"'::regcollation)
            """,
            (SCHEMA,),
        ).fetchall()

    assert others == []


def columns(rows: list[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for table, column in rows:
        found.setdefault(table, []).append(column)
    return found
