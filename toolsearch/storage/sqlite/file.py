"""What keeps data of one kind in a SQLite file: opened, checked and migrated, with our own errors."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from toolsearch.errors import StorageError
from toolsearch.storage.sqlite.database import BUSY_S, Durability, SqliteDatabase, committed
from toolsearch.storage.sqlite.schema import VERSION, UnusableFileError, migrate, version_of

_RETRY_S = 0.01


class SqliteFile:
    """Keeps one kind of data in the file at *path*, created if it does not exist, and closed at the latest when this
    object is collected. Over *_shared*, an open database, it leaves closing to who has opened that.

    A subclass says in *contents* what it keeps there, in the plural, for messages, in *error_class* which error it
    raises, and in *durability* what a power cut may cost. Objects of several subclasses may use one file.
    """

    contents: ClassVar[str]
    error_class: ClassVar[type[StorageError]]
    durability: ClassVar[Durability] = "NORMAL"  # a power cut may cost the last writes, not the file

    def __init__(self, path: str | Path, *, _shared: SqliteDatabase | None = None) -> None:
        self._path = path
        self._owns_database = _shared is None
        with self._translated():
            self.database = _shared or SqliteDatabase(path, prepare=self._prepare)

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """A connection of this thread alone, which cannot write. It waits for no writer."""
        with self._translated(), self.database.reading() as database:
            yield database

    @contextmanager
    def snapshot(self) -> Generator[sqlite3.Connection]:
        """The same; all that this thread reads within the block, through whichever object, is of one moment."""
        with self._translated(), self.database.snapshot() as database:
            yield database

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """A connection for writing, within one transaction that nobody else can write between."""
        with self._translated(), self.database.transaction(self.durability) as database:
            yield database

    def close(self) -> None:
        """May be called twice."""
        if self._owns_database:
            self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _prepare(self, database: sqlite3.Connection) -> None:
        version = version_of(database)  # before anything is changed in a file that is not ours
        _use_write_ahead_log(database)
        if version != VERSION:
            with committed(database):
                migrate(database)

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except UnusableFileError as error:
            raise self.error_class(f"the {self.contents} in {self._path} {error}") from error
        except (sqlite3.Error, OSError, UnicodeError) as error:
            raise self.error_class(f"cannot use the {self.contents} in {self._path}: {error}") from error


def _use_write_ahead_log(database: sqlite3.Connection) -> None:
    """Switch to the write-ahead log. SQLite does not wait by itself while another process does the same."""
    give_up_s = time.monotonic() + BUSY_S
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up_s:
                raise
            time.sleep(_RETRY_S)
        else:
            return
