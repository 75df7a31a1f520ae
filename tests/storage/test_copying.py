"""Copies between SQLite and PostgreSQL: nothing is lost, of one moment, and all or nothing."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from operator import itemgetter
from pathlib import Path
from subprocess import Popen
from typing import Any, TypeAlias

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.kit.postgres import PostgresServer
from tests.kit.storage_contracts.contents import tool
from tests.kit.storage_contracts.storage import contents, fill
from toolsearch.errors import StorageError
from toolsearch.storage.audit import AuditRecord
from toolsearch.storage.place import BATCH, NOT_COPIED, CopyProgress, silent
from toolsearch.storage.postgres import place as copies
from toolsearch.storage.postgres.place import PostgresPlace, PostgresTables
from toolsearch.storage.sqlite import schema
from toolsearch.storage.sqlite.place import SqliteStorage, SqliteTables, reading_file, writing_new_file
from toolsearch.storage.sqlite.schema import migrate
from toolsearch.storage.sqlite.stores import SqliteSessionPersistence

Rows: TypeAlias = dict[str, list[tuple[Any, ...]]]

_CONDITIONS = ("is_approved", "is_operator")  # SQLite keeps them as numbers
_VALUES = {
    "TEXT": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40),
    "INTEGER": st.integers(-(2**63), 2**63 - 1),
    "REAL": st.floats(allow_nan=False),
}


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A backup of a service with two tenants."""
    with closing(SqliteStorage(tmp_path / "filled.db")) as storage:
        fill(storage, "a")
        fill(storage, "b")
        storage.records.put("a", "toolset", "ü 😀 \x01", {"text": "\0"}, over=0, at_s=1.5)
        storage.backup(tmp_path / "backup.db")
    return tmp_path / "backup.db"


def rows_of(file: Path) -> Rows:
    with closing(sqlite3.connect(file)) as database:
        tables = SqliteTables(database)
        return {table: sorted(tables.rows(table, columns), key=repr) for table, columns in tables.columns().items()}


def kept(storage: Any) -> list[object]:
    return [*contents(storage, "a"), *contents(storage, "b"), storage.audit.records(limit=99)]


def test_every_table_is_copied_or_is_known_to_be_of_one_database_only(postgres: PostgresServer, filled: Path) -> None:
    with psycopg.connect(postgres.new_database()) as raw, reading_file(filled) as file:
        there, here = PostgresTables(raw).columns(), file.columns()

    assert {table: sorted(columns) for table, columns in there.items() if table in here} == {
        table: sorted(columns) for table, columns in here.items() if table in there
    }
    assert there.keys() ^ here.keys() == NOT_COPIED


def test_everything_comes_back_from_either_kind_of_postgresql(
    any_postgres: PostgresServer, filled: Path, tmp_path: Path
) -> None:
    place = PostgresPlace(any_postgres.new_database(is_empty=True))
    place.restore(filled, silent)
    place.back_up(tmp_path / "back.db", silent)

    assert rows_of(tmp_path / "back.db") == rows_of(filled)
    with closing(place.open()) as there, closing(SqliteStorage(tmp_path / "back.db")) as here:
        assert kept(there) == kept(here)
        assert all(kept(there))


def _value(name: str, kind: str, *, may_be_null: bool) -> st.SearchStrategy[Any]:
    if name in _CONDITIONS:
        return st.booleans()
    if name == "position":
        return st.integers(1, 2**62)
    return st.none() | _VALUES[kind] if may_be_null else _VALUES[kind]


def _table(database: sqlite3.Connection, table: str) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Some rows that differ in their primary key; and in the hash of a key, which is unique as well."""
    query = "SELECT name, type, [notnull], pk > 0 FROM pragma_table_info(?)"
    columns = database.execute(query, (table,)).fetchall()
    values = [_value(name, kind, may_be_null=not (needed or in_key)) for name, kind, needed, in_key in columns]
    keys = [place for place, (*_, in_key) in enumerate(columns) if in_key]
    hashes = [place for place, (name, *_) in enumerate(columns) if name == "sha256"]
    unique = [itemgetter(*places) for places in (keys, hashes) if places]
    return st.lists(st.tuples(*values), max_size=4, unique_by=tuple(unique))


def _rows() -> st.SearchStrategy[Rows]:
    with closing(sqlite3.connect(":memory:")) as database:
        migrate(database)
        tables = [table for table in SqliteTables(database).columns() if table not in NOT_COPIED]
        return st.fixed_dictionaries({table: _table(database, table) for table in tables})


def test_whatever_rows_there_are_come_back_as_they_were(postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.new_database()
    name = url.rpartition("/")[2]
    names = ", ".join(
        f"toolsearch.{table}"
        for (table,) in postgres.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'toolsearch'", database=name
        )
        if table not in NOT_COPIED
    )
    files = iter(tmp_path / f"{number}.db" for number in range(10_000))

    @settings(max_examples=25, phases=[Phase.generate], suppress_health_check=list(HealthCheck), derandomize=True)
    @given(_rows())
    def check(rows: Rows) -> None:
        source, back = next(files), next(files)
        with writing_new_file(source) as tables:
            for table, columns in tables.columns().items():
                tables.write(table, columns, rows.get(table, ()))
        postgres.execute(f"TRUNCATE {names}", database=name)
        PostgresPlace(url).restore(source, silent)
        PostgresPlace(url).back_up(back, silent)
        assert rows_of(back) == rows_of(source)

    check()


def test_what_is_written_after_a_restore_follows_what_was_there(
    postgres: PostgresServer, filled: Path, tmp_path: Path
) -> None:
    """Positions of the audit, versions of records and revisions of catalogs go on in both, with the same numbers."""
    place = PostgresPlace(postgres.new_database(is_empty=True))
    place.restore(filled, silent)

    def following(storage: Any) -> list[object]:
        for who in ("first", "second"):
            storage.audit.append(AuditRecord(2.0, who, "create", "x", "done", "a"))
        return [
            storage.records.put("a", "toolset", "new", {}, over=0, at_s=2.0).version,
            storage.contents.change("a", "main", put=[tool("y")]),
            storage.sessions("a").save("new", "text", version=0),
            [each.who for each in storage.audit.records(limit=3)],
        ]

    with closing(place.open()) as there, closing(SqliteStorage(filled)) as here:
        assert following(there) == following(here)


def test_a_character_that_postgresql_has_no_text_for_is_replaced(postgres: PostgresServer, tmp_path: Path) -> None:
    place = PostgresPlace(postgres.new_database(is_empty=True))
    with writing_new_file(tmp_path / "odd.db") as tables:
        tables.write("sessions", ("tenant", "id", "text", "version"), [("a", "s", "one\0two", 1)])
    place.restore(tmp_path / "odd.db", silent)

    with closing(place.open()) as storage:
        loaded = storage.sessions("a").load("s")
    assert loaded is not None
    assert loaded.text == "one\ufffdtwo"


def test_nothing_is_put_into_a_database_that_holds_anything(postgres: PostgresServer, filled: Path) -> None:
    place = PostgresPlace(postgres.new_database())
    with closing(place.open()) as storage:
        storage.usage.load("a")
        storage.sessions("c").save("s", "text", version=0)
        with pytest.raises(StorageError, match="holds data already"):
            place.restore(filled, silent)
        assert contents(storage, "a") == contents(storage, "nobody")
        assert storage.sessions("c").ids() == ["s"]


def test_a_copy_that_fails_in_the_middle_leaves_an_empty_database_and_no_file(
    postgres: PostgresServer, filled: Path, tmp_path: Path
) -> None:
    place = PostgresPlace(postgres.new_database(is_empty=True))

    def fail(progress: CopyProgress) -> None:
        if progress.table == "sessions":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        place.restore(filled, fail)
    with closing(place.open()) as storage:
        assert contents(storage, "a") == contents(storage, "nobody")

    place.restore(filled, silent)
    (tmp_path / "new").mkdir()
    with pytest.raises(KeyboardInterrupt):
        place.back_up(tmp_path / "new" / "copy.db", fail)
    assert list((tmp_path / "new").iterdir()) == []


def test_a_copy_that_is_killed_in_the_middle_leaves_an_empty_database(
    postgres: PostgresServer, filled: Path, start_python: Callable[..., Popen[str]]
) -> None:
    url = postgres.new_database(is_empty=True)
    program = """
import sys
from pathlib import Path
from toolsearch.storage.postgres.place import PostgresPlace
def wait(progress):
    if progress.table == "sessions":
        print("there", flush=True)
        sys.stdin.read()
PostgresPlace(sys.argv[1]).restore(Path(sys.argv[2]), wait)
"""
    copying = start_python("-c", program, url, str(filled))
    assert copying.stdout is not None
    assert copying.stdout.readline() == "there\n"
    copying.kill()
    copying.wait()

    place = PostgresPlace(url)
    with closing(place.open()) as storage:
        assert contents(storage, "a") == contents(storage, "nobody")
    place.restore(filled, silent)
    with closing(place.open()) as storage:
        assert contents(storage, "a") != contents(storage, "nobody")


def test_a_backup_is_of_one_moment_while_others_write(postgres: PostgresServer, tmp_path: Path) -> None:
    """After each table something is written into all of them."""
    place = PostgresPlace(postgres.new_database())
    with closing(place.open()) as storage:
        fill(storage, "a")
        before = contents(storage, "a")
        place.back_up(tmp_path / "copy.db", lambda progress: fill(storage, f"after {progress.table}"))
        assert contents(storage, "after usage") != contents(storage, "nobody")

    with closing(SqliteStorage(tmp_path / "copy.db")) as copy:
        assert contents(copy, "a") == before
    assert {row[0] for row in rows_of(tmp_path / "copy.db")["counters"]} == {"a"}


def test_nobody_uses_a_database_while_it_is_filled_and_it_is_known_to_the_planner(
    postgres: PostgresServer, filled: Path
) -> None:
    url = postgres.new_database(is_empty=True)
    refused: list[str] = []

    def look(progress: CopyProgress) -> None:
        if progress.table == "api_keys":
            other = psycopg.connect(url, autocommit=True, options="-c lock_timeout=1ms")
            with other, pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute("SELECT 1 FROM toolsearch.usage")
            refused.append(progress.table)

    PostgresPlace(url).restore(filled, look)

    assert refused == ["api_keys"]
    query = "SELECT reltuples FROM pg_class WHERE oid = 'toolsearch.contents'::regclass"
    assert postgres.execute(query, database=url.rpartition("/")[2]) == [(2.0,)]


def test_a_database_that_others_use_is_not_filled(
    postgres: PostgresServer, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "_WAIT_MS", 1)
    url = postgres.new_database()
    with psycopg.connect(url) as other:
        other.execute("SELECT 1 FROM toolsearch.usage")
        with pytest.raises(StorageError, match="end the services over it first"):
            PostgresPlace(url).restore(filled, silent)


def test_every_batch_is_told(postgres: PostgresServer, tmp_path: Path) -> None:
    told: list[CopyProgress] = []
    count = 2 * BATCH + 1
    with closing(SqliteStorage(tmp_path / "many.db")) as storage:
        storage.contents.change("a", "main", put=[tool(f"t{number}") for number in range(count)])
    place = PostgresPlace(postgres.new_database(is_empty=True))
    place.restore(tmp_path / "many.db", told.append)

    assert [(each.rows, each.of) for each in told if each.table == "contents"] == [
        (BATCH, count),
        (2 * BATCH, count),
        (count, count),
    ]
    assert told[-1].table == "usage"
    taken: list[CopyProgress] = []
    place.back_up(tmp_path / "back.db", taken.append)
    assert taken == told


def test_a_backup_of_an_earlier_version_is_brought_up_to_date_and_stays_as_it_was(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old.db"
    with SqliteSessionPersistence(old) as kept:
        kept.save("s", "kept", version=0)
    with closing(sqlite3.connect(old)) as database:
        database.execute("PRAGMA journal_mode = DELETE")  # so that all of it is in the one file
    before = old.read_bytes()
    later = schema.VERSION + 1
    monkeypatch.setattr(schema, "_STEPS", (*schema._STEPS, ("CREATE INDEX later ON sessions (version)",)))
    for module in ("schema", "database", "place"):
        monkeypatch.setattr(f"toolsearch.storage.sqlite.{module}.VERSION", later)
    place = PostgresPlace(postgres.new_database(is_empty=True))
    place.restore(old, silent)

    with closing(place.open()) as storage:
        assert storage.sessions("").ids() == ["s"]
    assert old.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["old.db"]


def test_tables_of_another_version_are_not_copied(postgres: PostgresServer, tmp_path: Path) -> None:
    empty = postgres.new_database(is_empty=True)
    with pytest.raises(StorageError, match="no service keeps anything in test"):
        PostgresPlace(empty).back_up(tmp_path / "copy.db", silent)

    newer = postgres.new_database(is_empty=True)
    PostgresPlace(newer).open().close()
    postgres.execute("INSERT INTO toolsearch.versions VALUES (999, 1)", database=newer.rpartition("/")[2])
    with pytest.raises(StorageError, match=r"version 999.* use the one that serves them"):
        PostgresPlace(newer).back_up(tmp_path / "copy.db", silent)
    assert list(tmp_path.iterdir()) == []
