"""A SQLite file for many threads and processes: opened, checked and migrated, with our own errors."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from toolsearch.errors import StorageError
from toolsearch.storage.sqlite.schema import VERSION, UnusableFileError, migrate, version_of

_BUSY_S = 5.0  # how long to wait for another process that writes
_RETRY_S = 0.01


class SqliteFile:
    """The file at *path*, created if it does not exist, and closed at the latest when this object is collected.

    A subclass says in *contents* what it keeps there, in the plural, for messages, and in *error_class* which error it
    raises. Objects of several subclasses may use one file.
    """

    contents: ClassVar[str]
    error_class: ClassVar[type[StorageError]]

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        with self._translated():
            self._database = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            with self.opened() as database:
                self._prepare(database)
        except BaseException:
            self._database.close()
            raise

    @contextmanager
    def opened(self) -> Generator[sqlite3.Connection]:
        """Give the connection to this thread alone. Each statement is a transaction of its own."""
        with self._lock, self._translated():
            yield self._database

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """The same, within one transaction that no other process can write between."""
        with self.opened() as database, _transaction(database):
            yield database

    def close(self) -> None:
        """May be called twice."""
        with self._lock:
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_database"):  # it is missing if the file could not be opened
            self._database.close()

    def _prepare(self, database: sqlite3.Connection) -> None:
        version = version_of(database)  # before anything is changed in a file that is not ours
        _use_write_ahead_log(database)
        database.execute("PRAGMA synchronous = NORMAL")  # a power cut may cost the last writes, not the file
        if version != VERSION:
            with _transaction(database):
                migrate(database)

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except UnusableFileError as error:
            raise self.error_class(f"the {self.contents} in {self._path} {error}") from error
        except (sqlite3.Error, OSError, UnicodeError) as error:
            raise self.error_class(f"cannot use the {self.contents} in {self._path}: {error}") from error


@contextmanager
def _transaction(database: sqlite3.Connection) -> Generator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _use_write_ahead_log(database: sqlite3.Connection) -> None:
    """Switch to the write-ahead log. SQLite does not wait by itself while another process does the same."""
    give_up_s = time.monotonic() + _BUSY_S
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up_s:
                raise
            time.sleep(_RETRY_S)
        else:
            return
