"""Sessions in a SQLite file, which several processes may share."""

from __future__ import annotations

from pathlib import Path

from toolsearch.errors import SessionConflictError, SessionStoreError
from toolsearch.storage.sessions import StoredSession
from toolsearch.storage.sqlite.database import SqliteDatabase
from toolsearch.storage.sqlite.file import SqliteFile

_FIND = "SELECT text, version FROM sessions WHERE tenant = ? AND id = ?"
_SAVE = "INSERT OR REPLACE INTO sessions (tenant, id, text, version) VALUES (?, ?, ?, ?)"
_NEXT_VERSION = "UPDATE session_versions SET last = last + 1 RETURNING last"


class SqliteSessionPersistence(SqliteFile):
    """A `SessionPersistence` in one SQLite file. Several processes may share it.

    *tenant* is whose sessions these are in a service for many. Each tenant has ids of its own.
    """

    contents = "sessions"
    error_class = SessionStoreError

    def __init__(self, path: str | Path, *, tenant: str = "", _shared: SqliteDatabase | None = None) -> None:
        super().__init__(path, _shared=_shared)
        self._tenant = tenant

    def load(self, session_id: str) -> StoredSession | None:
        with self.reading() as database:
            row = database.execute(_FIND, (self._tenant, session_id)).fetchone()
        return StoredSession(*row) if row else None

    def save(self, session_id: str, text: str, *, version: int) -> int:
        with self.transaction() as database:
            row = database.execute(_FIND, (self._tenant, session_id)).fetchone()
            if (row[1] if row else 0) != version:
                raise SessionConflictError(session_id)
            new: int = database.execute(_NEXT_VERSION).fetchone()[0]
            database.execute(_SAVE, (self._tenant, session_id, text, new))
        return new

    def delete(self, session_id: str) -> bool:
        with self.transaction() as database:
            done = database.execute("DELETE FROM sessions WHERE tenant = ? AND id = ?", (self._tenant, session_id))
            return done.rowcount == 1

    def ids(self) -> list[str]:
        with self.reading() as database:
            rows = database.execute("SELECT id FROM sessions WHERE tenant = ? ORDER BY id", (self._tenant,))
            return [row[0] for row in rows]
