"""SQLite files: what each port owes, files of later versions, several processes, damage."""

import sqlite3
import stat
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.kit import storage_contracts as contracts
from toolsearch.chat import SqliteMessageStore, UserMessage
from toolsearch.errors import Kept, StorageError
from toolsearch.storage.activity import FigureLog, MissLog, ReceiptLog
from toolsearch.storage.audit import AuditLog
from toolsearch.storage.contents import CatalogContents, StoredTool
from toolsearch.storage.keys import KeyStore
from toolsearch.storage.pins import PinPersistence
from toolsearch.storage.records import RecordStore
from toolsearch.storage.sessions import MessageStore, SessionPersistence
from toolsearch.storage.sqlite import schema
from toolsearch.storage.sqlite.database import SqliteFile
from toolsearch.storage.sqlite.place import SqliteStorage
from toolsearch.storage.sqlite.stores import (
    SqliteAuditLog,
    SqliteMessages,
    SqlitePins,
    SqliteSessionPersistence,
    SqliteUsageStore,
)
from toolsearch.storage.storage import Storage
from toolsearch.storage.usage import UsageCell, UsageStore
from toolsearch_indexes.vector_store import VectorFile, VectorStore


class TestSessions(contracts.SessionPersistenceContract):
    def make(self, folder: Path) -> SessionPersistence:
        return SqliteSessionPersistence(folder / "kept.db")


class TestUsage(contracts.UsageStoreContract):
    def make(self, folder: Path) -> UsageStore:
        return SqliteUsageStore(folder / "kept.db")


class TestMessages(contracts.MessageStoreContract):
    def make(self, folder: Path) -> MessageStore[str]:
        return SqliteMessages(folder / "kept.db", write=str, read=str)


class TestAudit(contracts.AuditLogContract):
    def make(self, folder: Path) -> AuditLog:
        return SqliteAuditLog(folder / "kept.db")


class TestPins(contracts.PinPersistenceContract):
    def make(self, folder: Path) -> tuple[PinPersistence, AuditLog]:
        return SqlitePins(folder / "kept.db"), SqliteAuditLog(folder / "kept.db")


class TestRecords(contracts.RecordStoreContract):
    def make(self, folder: Path) -> RecordStore:
        return SqliteStorage(folder / "kept.db").records


class TestKeys(contracts.KeyStoreContract):
    def make(self, folder: Path) -> KeyStore:
        return SqliteStorage(folder / "kept.db").keys


class TestContents(contracts.CatalogContentsContract):
    def make(self, folder: Path) -> CatalogContents:
        return SqliteStorage(folder / "kept.db").contents


class TestReceipts(contracts.ReceiptLogContract):
    def make(self, folder: Path) -> ReceiptLog:
        return SqliteStorage(folder / "kept.db").receipts


class TestFigures(contracts.FigureLogContract):
    def make(self, folder: Path) -> FigureLog:
        return SqliteStorage(folder / "kept.db").figures


class TestMisses(contracts.MissLogContract):
    def make(self, folder: Path) -> MissLog:
        return SqliteStorage(folder / "kept.db").misses


class TestAllOfThem(contracts.StorageContract):
    def make(self, folder: Path) -> Storage:
        return SqliteStorage(folder / "data" / "kept.db")


class TestBackups(contracts.BackupContract):
    def make(self, folder: Path) -> Storage:
        return SqliteStorage(folder / "data" / "kept.db")

    def open_backup(self, path: Path) -> Storage:
        return SqliteStorage(path)


class TestVectors(contracts.VectorStoreContract):
    def make(self, folder: Path) -> VectorStore:
        return VectorFile(folder / "vectors.db")


# Files of other versions


def test_one_file_may_keep_everything(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with SqliteUsageStore(path) as usage, SqliteMessageStore(path) as messages, SqliteSessionPersistence(path) as kept:
        usage.add("", {UsageCell("a", "b"): 1.0}, at_s=0.0, half_life_s=1.0)
        messages.update("a", lambda _: [UserMessage("hi")])
        kept.save("a", "text", version=0)
        assert kept.ids() == ["a"]


MAKE = """
import sys
from toolsearch.storage.sqlite.stores import SqliteSessionPersistence
print("ready", flush=True)
sys.stdin.readline()
with SqliteSessionPersistence(sys.argv[1]) as kept:
    print(*kept.ids())
"""


def test_processes_that_make_one_file_at_once_all_end_well(
    tmp_path: Path, start_python: Callable[..., subprocess.Popen[str]]
) -> None:
    running = [start_python("-c", MAKE, str(tmp_path / "sessions.db")) for _ in range(4)]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    ends = [process.communicate("go\n", timeout=60)[0] for process in running]

    assert (ends, [process.returncode for process in running]) == (["\n"] * 4, [0] * 4)
    assert rows(tmp_path / "sessions.db", "PRAGMA user_version") == [(schema.VERSION,)]


def test_a_migration_that_is_cut_off_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sessions.db"
    with SqliteSessionPersistence(path) as kept:
        kept.save("a", "text", version=0)
    with monkeypatch.context() as patched:
        patched.setattr(schema, "_STEPS", (*schema._STEPS, ("CREATE TABLE later (n)", "no statement")))
        patched.setattr("toolsearch.storage.sqlite.database.VERSION", schema.VERSION + 1)
        with pytest.raises(StorageError, match="syntax error"):
            SqliteSessionPersistence(path)
    assert rows(path, "PRAGMA user_version") == [(1,)]
    assert rows(path, "SELECT name FROM sqlite_master WHERE name = 'later'") == []

    with SqliteSessionPersistence(path) as kept:
        assert kept.ids() == ["a"]


EVERY_FILE: dict[str, tuple[Callable[[Path], SqliteFile], Kept]] = {
    "sessions": (SqliteSessionPersistence, Kept.SESSIONS),
    "usage": (SqliteUsageStore, Kept.USAGE),
    "conversations": (SqliteMessageStore, Kept.CONVERSATIONS),
    "pins": (SqlitePins, Kept.PINS),
    "audit": (SqliteAuditLog, Kept.AUDIT),
    "everything": (SqliteStorage, Kept.DATA),
}
every_file = pytest.mark.parametrize(("make", "kept"), EVERY_FILE.values(), ids=EVERY_FILE)


def refused(kept: Kept, match: str) -> pytest.RaisesExc[StorageError]:
    return pytest.raises(StorageError, match=match, check=lambda error: error.kept is kept)


@every_file
def test_a_file_of_a_newer_version_is_refused_with_what_to_do(
    tmp_path: Path, make: Callable[[Path], SqliteFile], kept: Kept
) -> None:
    make(tmp_path / "kept.db").close()
    alter(tmp_path / "kept.db", "PRAGMA user_version = 99")
    before = (tmp_path / "kept.db").read_bytes()

    with refused(kept, rf"another version \(99, not {schema.VERSION}\); move the file away to start"):
        make(tmp_path / "kept.db")
    assert (tmp_path / "kept.db").read_bytes() == before


@every_file
def test_a_database_of_something_else_is_left_alone(
    tmp_path: Path, make: Callable[[Path], SqliteFile], kept: Kept
) -> None:
    alter(tmp_path / "accounts.db", "CREATE TABLE accounts (name)")
    before = (tmp_path / "accounts.db").read_bytes()

    with refused(kept, r"database of something else|no table of them"):
        make(tmp_path / "accounts.db")
    assert (tmp_path / "accounts.db").read_bytes() == before


@every_file
def test_a_file_without_one_of_its_tables_is_refused_as_damaged(
    tmp_path: Path, make: Callable[[Path], SqliteFile], kept: Kept
) -> None:
    for table in sorted(schema._TABLES):
        make(tmp_path / f"{table}.db").close()
        alter(tmp_path / f"{table}.db", f"DROP TABLE {table}")

        with refused(kept, f"there is no table (of them|{table}); restore"):
            make(tmp_path / f"{table}.db")


@every_file
def test_a_fault_of_the_disk_is_told_as_what_it_is(
    tmp_path: Path, make: Callable[[Path], SqliteFile], kept: Kept
) -> None:
    (tmp_path / "no.db").write_bytes(b"this is no database at all" * 100)
    with refused(kept, r"no\.db: file is not a database"):
        make(tmp_path / "no.db")


# Connections


def test_a_full_disk_costs_what_was_being_written_and_nothing_else(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "kept.db")
    storage.contents.change("a", "main", put=[StoredTool("x", "f", {})])
    with storage.contents._reading() as database:
        pages = database.execute("PRAGMA page_count").fetchone()[0]
    with storage.contents._transaction() as database:
        database.execute(f"PRAGMA max_page_count = {pages + 5}")

    with refused(Kept.CONTENTS, "full"):
        storage.contents.change("a", "main", put=[StoredTool("y", "f", {"long": "x" * 100_000})])
    storage.contents.change("a", "main", put=[StoredTool("z", "f", {})])
    assert list(storage.contents.fingerprints("a", "main")) == ["x", "z"]


@every_file
def test_what_was_closed_cannot_be_used_and_can_be_closed_again(
    tmp_path: Path, make: Callable[[Path], SqliteFile], kept: Kept
) -> None:
    file = make(tmp_path / "kept.db")
    store = getattr(file, "_whole", file)
    with store._reading():
        pass
    file.close()
    file.close()

    for use in (store._reading, store._transaction):
        with refused(kept, "closed"), use():
            pass


def test_what_was_acknowledged_for_good_is_on_the_disk_and_what_piles_up_may_follow(tmp_path: Path) -> None:
    """Each in its turn over one connection. 2 is FULL: SQLite waits for the disk with each commit; 1 is NORMAL."""
    storage = SqliteStorage(tmp_path / "kept.db")
    modes = {}
    for _ in range(2):
        for name in ("records", "keys", "contents", "receipts", "figures", "misses", "audit"):
            with getattr(storage, name)._transaction() as database:
                modes[name] = database.execute("PRAGMA synchronous").fetchone()[0]
    with storage.pins("a")._transaction() as database:
        modes["pins"] = database.execute("PRAGMA synchronous").fetchone()[0]
    with storage.sessions("a")._transaction() as database:
        modes["sessions"] = database.execute("PRAGMA synchronous").fetchone()[0]

    lasting = dict.fromkeys(("records", "keys", "contents", "pins"), 2)
    assert modes == lasting | dict.fromkeys(("receipts", "figures", "misses", "audit", "sessions"), 1)


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    kept = SqliteStorage(tmp_path / "kept.db").records

    with pytest.raises(StorageError, match="readonly"), kept._reading() as database:
        database.execute("DELETE FROM records")


def test_only_the_owner_can_read_the_data_of_a_service(tmp_path: Path) -> None:
    """Also a file that was put there by hand, and what SQLite puts beside it."""
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "kept.db").touch(mode=0o644)
    storage = SqliteStorage(tmp_path / "data" / "kept.db")
    storage.contents.change("a", "main")

    modes = {path.name: stat.filemode(path.stat().st_mode) for path in (tmp_path / "data").iterdir()}
    assert modes == dict.fromkeys(("kept.db", "kept.db-wal", "kept.db-shm"), "-rw-------")


def test_closing_a_port_leaves_the_others_open(tmp_path: Path) -> None:
    storage = SqliteStorage(tmp_path / "kept.db")
    storage.pins("a").close()

    assert storage.records.count("a", "toolset", at_s=1.0) == 0


WRITE_MUCH = """
import sys
from pathlib import Path
from concurrent.futures import ThreadPoolExecutor
from toolsearch.storage.contents import StoredTool
from toolsearch.storage.sqlite.place import SqliteStorage
path, process = sys.argv[1:]
storage = SqliteStorage(Path(path))
def write(number):
    storage.contents.change("a", "main", put=[StoredTool(f"p{process}t{number}u{n}", "f", {}) for n in range(20)])
    storage.records.put("a", "toolset", f"p{process}t{number}", {}, over=0, at_s=1.0)
    return len(storage.contents.page("a", "main", limit=5))
print("ready", flush=True)
sys.stdin.readline()
with ThreadPoolExecutor(8) as threads:
    list(threads.map(write, range(40)))
print("done")
"""


def test_many_threads_of_several_processes_never_find_the_file_locked(
    tmp_path: Path, start_python: Callable[..., subprocess.Popen[str]]
) -> None:
    """3 processes of 8 threads make 40 changes of 20 tools each."""
    path = tmp_path / "kept.db"
    running = [start_python("-c", WRITE_MUCH, str(path), str(number)) for number in range(3)]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    ends = [process.communicate("go\n", timeout=100)[0] for process in running]

    assert ends == ["done\n"] * 3
    storage = SqliteStorage(path)
    assert (storage.contents.count("a"), storage.records.count("a", "toolset", at_s=1.0)) == (2_400, 120)
    assert storage.contents.revision("a", "main") == 120


def alter(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute(statement)
        database.commit()


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(query).fetchall()


def test_a_full_disk_passes_and_its_message_names_no_path(tmp_path: Path) -> None:
    """SQLite itself says that it is full."""
    with closing(SqliteStorage(tmp_path / "kept.db")) as storage:
        with storage.transaction() as database:
            pages = database.execute("PRAGMA page_count").fetchone()[0]
            database.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StorageError, match="the disk is full") as full:
            storage.records.put("a", "kind", "id", {"text": "x" * 100_000}, over=None, at_s=1.0)

    assert (full.value.status, full.value.code, full.value.retry_after_s) == (503, "store_unavailable", 30.0)
    assert str(tmp_path) not in str(full.value)


def test_what_is_wrong_with_a_store_for_good_names_its_path(tmp_path: Path) -> None:
    with closing(SqliteStorage(tmp_path / "kept.db")) as storage:
        with storage.transaction() as database:
            database.execute("DROP TABLE records")
        with pytest.raises(StorageError, match=r"kept\.db") as broken:
            storage.records.count("a", "kind", at_s=1.0)

    assert broken.value.retry_after_s is None
