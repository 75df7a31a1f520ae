"""Where sessions outlive the process: one text each, under the session's id."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from toolsearch.errors import SessionStoreError

_VERSION = 1  # of the tables
_BUSY_S = 5.0  # how long to wait for another process that writes


class SessionPersistence(Protocol):
    """Keeps texts by session id; safe to share between threads. Each method may raise SessionStoreError."""

    def load(self, session_id: str) -> str | None:
        """Return what was saved last; None if there is nothing."""
        ...

    def save(self, session_id: str, text: str) -> None: ...

    def delete(self, session_id: str) -> bool:
        """Return whether there was something to delete."""
        ...

    def ids(self) -> list[str]:
        """Sorted."""
        ...


class SqliteSessionPersistence:
    """One SQLite file. Several processes may share it; of two that write one session, the later one wins."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        with self._translated():
            self._database = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            self._prepare()
        except BaseException:
            self._database.close()
            raise

    def _prepare(self) -> None:
        with self._translated():
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")  # a power cut may cost the last writes, not the file
            version = self._database.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, _VERSION):
                raise SessionStoreError(
                    f"the sessions in {self._path} were written by another version ({version}, not {_VERSION}); "
                    "move the file away to start without them"
                )
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID"
            )
            self._database.execute(f"PRAGMA user_version = {_VERSION}")

    def load(self, session_id: str) -> str | None:
        rows = self._execute("SELECT text FROM sessions WHERE id = ?", session_id)
        return rows[0][0] if rows else None

    def save(self, session_id: str, text: str) -> None:
        self._execute("INSERT OR REPLACE INTO sessions VALUES (?, ?)", session_id, text)

    def delete(self, session_id: str) -> bool:
        return bool(self._execute("DELETE FROM sessions WHERE id = ? RETURNING id", session_id))

    def ids(self) -> list[str]:
        return [row[0] for row in self._execute("SELECT id FROM sessions ORDER BY id")]

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def __del__(self) -> None:
        if hasattr(self, "_database"):  # not if the file could not be opened
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _execute(self, statement: str, *values: str) -> list[Any]:
        with self._lock, self._translated():
            return self._database.execute(statement, values).fetchall()

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeError) as error:
            raise SessionStoreError(f"cannot use the sessions in {self._path}: {error}") from error
