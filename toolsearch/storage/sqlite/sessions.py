"""Sessions in a SQLite file, which several processes may share."""

from __future__ import annotations

from toolsearch.errors import SessionConflictError, SessionStoreError
from toolsearch.storage.sessions import StoredSession
from toolsearch.storage.sqlite.file import SqliteFile

_SAVE = "INSERT OR REPLACE INTO sessions (id, text, version) VALUES (?, ?, ?)"
_NEXT_VERSION = "UPDATE session_versions SET last = last + 1 RETURNING last"


class SqliteSessionPersistence(SqliteFile):
    """A `SessionPersistence` in one SQLite file. Several processes may share it."""

    contents = "sessions"
    error_class = SessionStoreError

    def load(self, session_id: str) -> StoredSession | None:
        with self.opened() as database:
            row = database.execute("SELECT text, version FROM sessions WHERE id = ?", (session_id,)).fetchone()
        return StoredSession(*row) if row else None

    def save(self, session_id: str, text: str, *, version: int) -> int:
        with self.transaction() as database:
            row = database.execute("SELECT version FROM sessions WHERE id = ?", (session_id,)).fetchone()
            if (row[0] if row else 0) != version:
                raise SessionConflictError(session_id)
            new: int = database.execute(_NEXT_VERSION).fetchone()[0]
            database.execute(_SAVE, (session_id, text, new))
        return new

    def delete(self, session_id: str) -> bool:
        with self.opened() as database:
            return bool(database.execute("DELETE FROM sessions WHERE id = ? RETURNING id", (session_id,)).fetchall())

    def ids(self) -> list[str]:
        with self.opened() as database:
            return [row[0] for row in database.execute("SELECT id FROM sessions ORDER BY id")]
