"""Where sessions outlive the process: one text each, under the session's id."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from toolsearch.storage.sqlite_file import SqliteFile

_VERSION = 1  # of the table
_TABLE = "CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID"


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


class SqliteSessionPersistence(SqliteFile):
    """One SQLite file. Several processes may share it; of two that write one session, the later one wins."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path, holds="sessions", table=_TABLE, version=_VERSION)

    def load(self, session_id: str) -> str | None:
        rows = self._execute("SELECT text FROM sessions WHERE id = ?", session_id)
        return rows[0][0] if rows else None

    def save(self, session_id: str, text: str) -> None:
        self._execute("INSERT OR REPLACE INTO sessions VALUES (?, ?)", session_id, text)

    def delete(self, session_id: str) -> bool:
        return bool(self._execute("DELETE FROM sessions WHERE id = ? RETURNING id", session_id))

    def ids(self) -> list[str]:
        return [row[0] for row in self._execute("SELECT id FROM sessions ORDER BY id")]

    def _execute(self, statement: str, *values: str) -> list[Any]:
        with self.opened() as database:
            return database.execute(statement, values).fetchall()
