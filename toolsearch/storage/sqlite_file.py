"""A SQLite file of ours with one table, for many threads and processes: opened, checked, its errors told as ours."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from toolsearch.errors import SessionStoreError

_BUSY_S = 5.0  # how long to wait for another process that writes
_RETRY_S = 0.01


class SqliteFile:
    """The file at *path*, made if it is not there, and closed at the latest when this object goes.

    holds    what is in it, in the plural, for messages
    table    the definition of its table, ``CREATE TABLE IF NOT EXISTS ...``
    version  of that table; a file of another version is refused

    Whatever goes wrong is a SessionStoreError.
    """

    def __init__(self, path: str | Path, *, holds: str, table: str, version: int) -> None:
        self._path = path
        self._holds = holds
        self._lock = threading.Lock()
        with self._translated():
            self._database = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            with self.opened() as database:
                self._prepare(database, table, version)
        except BaseException:
            self._database.close()
            raise

    @contextmanager
    def opened(self) -> Generator[sqlite3.Connection]:
        """The connection, for this thread alone; each statement is a transaction of its own."""
        with self._lock, self._translated():
            yield self._database

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """The same for one transaction, from before its first reading, so that no other process writes in between."""
        with self.opened() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")

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
        if hasattr(self, "_database"):  # not if the file could not be opened
            self._database.close()

    def _prepare(self, database: sqlite3.Connection, table: str, version: int) -> None:
        _log_ahead(database)
        database.execute("PRAGMA synchronous = NORMAL")  # a power cut may cost the last writes, not the file
        found = database.execute("PRAGMA user_version").fetchone()[0]
        if found not in (0, version):
            raise SessionStoreError(
                f"the {self._holds} in {self._path} were written by another version ({found}, not {version}); "
                "move the file away to start without them"
            )
        database.execute(table)
        database.execute(f"PRAGMA user_version = {version}")

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeError) as error:
            raise SessionStoreError(f"cannot use the {self._holds} in {self._path}: {error}") from error


def _log_ahead(database: sqlite3.Connection) -> None:
    """Have changes go to a log first. SQLite does not wait by itself while another process does the same."""
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
