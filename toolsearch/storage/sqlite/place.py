"""A SQLite file as the place where a service keeps everything: opened, looked at, backed up and restored."""

from __future__ import annotations

import os
import sqlite3
import sys
import tempfile
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from toolsearch.errors import Kept, StorageError
from toolsearch.storage.files import make_private
from toolsearch.storage.place import OnProgress, StoreState
from toolsearch.storage.replicas import ProcessLeases
from toolsearch.storage.sqlite.database import SqliteFile, translated
from toolsearch.storage.sqlite.schema import VERSION, inspected, migrate, version_at
from toolsearch.storage.storage import Storage


def copy_to_new_file(database: sqlite3.Connection, path: Path) -> None:
    """Write what *database* has at this moment to *path*, as `new_file` does."""
    with new_file(path) as copy:
        database.backup(copy)


@contextmanager
def new_file(path: Path) -> Generator[sqlite3.Connection]:
    """A database that becomes the file *path* after the block, complete or not at all, and its owner's alone.

    It has no log beside it, and is read through before it gets its name. Raises sqlite3.Error, and OSError, which is
    FileExistsError if there is something at *path*.
    """
    if path.exists():
        raise FileExistsError(f"{path} exists; name another file")
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        new = Path(scratch) / path.name
        make_private(new)
        with closing(sqlite3.connect(new, isolation_level=None)) as copy:
            yield copy
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, and no write-ahead log beside it
            damage = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if damage != "ok":
            raise sqlite3.DatabaseError(f"the data to copy is damaged: {damage}")
        _to_disk(new)
        new.rename(path)
    _to_disk(path.parent)


class SqliteTables:
    """The `Tables` of *database*, within the transaction that is open."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def columns(self) -> dict[str, list[str]]:
        names = self._database.execute(
            r"SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'"
        ).fetchall()
        return {
            name: [row[0] for row in self._database.execute("SELECT name FROM pragma_table_info(?)", (name,))]
            for (name,) in names
        }

    def count(self, table: str) -> int:
        return int(self._database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608

    def rows(self, table: str, columns: Collection[str]) -> Iterator[tuple[Any, ...]]:
        return self._database.execute(f"SELECT {', '.join(columns)} FROM {table}")  # noqa: S608

    def is_empty(self, table: str) -> bool:
        return self._database.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is None  # noqa: S608

    def write(self, table: str, columns: Collection[str], rows: Iterable[tuple[Any, ...]]) -> None:
        places = ", ".join("?" * len(columns))
        self._database.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", rows)  # noqa: S608


@contextmanager
def reading_file(path: Path) -> Generator[SqliteTables]:
    """The tables of the file *path* at one moment; those of a file of an earlier version as this version has them.

    Nothing is written to it or beside it. Raises StorageError.
    """
    with tempfile.TemporaryDirectory() as scratch, _translated(path):
        if version_at(path) == VERSION:
            current = path
        else:
            current = Path(scratch) / path.name
            _copy_migrated(path, current)
        with closing(_read_only(current)) as database:
            database.execute("BEGIN")
            yield SqliteTables(database)


@contextmanager
def writing_new_file(path: Path) -> Generator[SqliteTables]:
    """Empty tables of what becomes the file *path* after the block, complete or not at all. Raises StorageError."""
    with _translated(path), new_file(path) as database:
        database.execute("PRAGMA synchronous = OFF")  # it is written to the disk before it gets its name
        database.execute("BEGIN")
        migrate(database)
        yield SqliteTables(database)
        database.execute("COMMIT")


def _copy_migrated(path: Path, to: Path) -> None:
    with closing(_read_only(path)) as database:
        copy_to_new_file(database, to)
    with closing(sqlite3.connect(to, isolation_level=None)) as copy:
        copy.execute("BEGIN")
        migrate(copy)
        copy.execute("COMMIT")


@contextmanager
def _translated(path: Path) -> Generator[None]:
    with translated(path, Kept.DATA):
        yield


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)


def _to_disk(path: Path) -> None:
    """Wait until the file, or the names in the folder, are safe from a power cut."""
    access = os.O_RDONLY
    if sys.platform == "win32":
        if path.is_dir():
            return  # Windows opens no folders; its file system keeps a journal of their names
        access = os.O_RDWR  # and lets only those who may write wait for the disk
    handle = os.open(path, access)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class SqliteStorage(Storage):
    """The file at *path*, which is made with its folder where it is missing, for its owner alone.

    All ports share the connections to it: threads that write take turns, and threads that read wait for nobody.
    """

    is_shared = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _ServiceFile(path)
        super().__init__(self._file.file, ProcessLeases())

    def backup(self, path: Path) -> None:
        with self._file.copying() as database:
            copy_to_new_file(database, path)


class _ServiceFile(SqliteFile):
    kept = Kept.DATA

    def __init__(self, path: Path) -> None:
        with self._opening(path):
            make_private(path)
        super().__init__(path)

    @contextmanager
    def copying(self) -> Generator[sqlite3.Connection]:
        with self._translated(), self.file.reading() as database:
            yield database


class SqlitePlace:
    """A `StorePlace`: the file at *path*. A file is copied whole, so there is no progress to tell of."""

    is_shared = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = str(path)

    def is_new(self) -> bool:
        return not self._path.is_file() or not self._path.stat().st_size

    def require(self) -> None:
        if self.is_new():
            raise StorageError(f"no service keeps anything in {self._path.parent}; name its folder by --data")

    def open(self) -> SqliteStorage:
        return SqliteStorage(self._path)

    def look(self) -> StoreState:
        return StoreState(inspected(self._path), version_at(self._path) == VERSION)

    def back_up(self, to: Path, on_progress: OnProgress) -> None:  # noqa: ARG002  it is one step
        self.require()
        _copy(self._path, to)

    def restore(self, backup: Path, on_progress: OnProgress) -> None:  # noqa: ARG002  it is one step
        for file in (self._path, *self._left_behind()):
            if file.exists():
                raise StorageError(f"{file} exists; move it away, or name another folder by --data")
        _copy(backup, self._path)

    def _left_behind(self) -> list[Path]:
        """What SQLite keeps beside a file, and would take for its own if another file came in its place."""
        return [self._path.with_name(self._path.name + end) for end in ("-wal", "-shm", "-journal")]


def _copy(source: Path, to: Path) -> None:
    try:
        with closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as database:
            copy_to_new_file(database, to)
    except (sqlite3.Error, OSError) as error:
        raise StorageError(f"{source} cannot be copied to {to}: {error}") from error
