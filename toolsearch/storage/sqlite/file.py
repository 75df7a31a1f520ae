"""What keeps data of one kind in a SQLite file: opened, checked and migrated."""

from __future__ import annotations

import sqlite3
import time
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

from toolsearch.storage.sql.store import SqlStore
from toolsearch.storage.sqlite.database import BUSY_S, SqliteConnection, SqliteDatabase, committed, translated
from toolsearch.storage.sqlite.schema import VERSION, migrate, version_of

_RETRY_S = 0.01


class SqliteFile(SqlStore):
    """Keeps one kind of data in the file at *path*, created if it does not exist, and closed at the latest when this
    object is collected. Objects of several subclasses may use one file.
    """

    def __init__(self, path: str | Path) -> None:
        with self._opening(path):
            self.file = SqliteDatabase(path, prepare=self._prepare)
        SqlStore.__init__(self, self.file)

    def close(self) -> None:
        """May be called twice."""
        self.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _prepare(self, database: SqliteConnection) -> None:
        version = version_of(database)  # before anything is changed in a file that is not ours
        _use_write_ahead_log(database)
        if version != VERSION:
            with committed(database):
                migrate(database)

    def _opening(self, path: str | Path) -> AbstractContextManager[None]:
        return translated(path, self.contents, self.error_class)


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
