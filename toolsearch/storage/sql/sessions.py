"""Sessions in a SQL database, which several processes may share."""

from __future__ import annotations

from collections.abc import Collection

from toolsearch.errors import SessionConflictError, SessionStoreError
from toolsearch.storage.sessions import StoredSession
from toolsearch.storage.sql import counters
from toolsearch.storage.sql.database import Database
from toolsearch.storage.sql.store import SqlStore

_ADD = "INSERT INTO sessions (tenant, id, text, version) VALUES (?, ?, ?, ?) ON CONFLICT (tenant, id) DO NOTHING"
_REPLACE = "UPDATE sessions SET text = ?, version = version + 1 WHERE tenant = ? AND id = ? AND version = ?"
_AT_ONCE = 500  # ids in one statement
_SAVINGS = 1 << 24  # of one session, before its versions could be those of one that comes anew under its id


class SqlSessionPersistence(SqlStore):
    """A `SessionPersistence` in SQL. Several processes may share it. *tenant* is whose sessions these are."""

    contents = "sessions"
    error_class = SessionStoreError
    durability = "ACKNOWLEDGED"

    def __init__(self, database: Database, *, tenant: str = "") -> None:
        super().__init__(database)
        self._tenant = tenant

    def load(self, session_id: str) -> StoredSession | None:
        query = "SELECT text, version FROM sessions WHERE tenant = ? AND id = ?"
        with self._reading() as database:
            row = database.execute(query, (self._tenant, session_id)).fetchone()
        return StoredSession(*row) if row else None

    def save(self, session_id: str, text: str, *, version: int) -> int:
        """Sessions do not wait for each other, but while they are new."""
        if not version:
            return self._add(session_id, text)
        with self._statement() as database:
            done = database.execute(_REPLACE, (text, self._tenant, session_id, version))
            if not done.rowcount:
                raise SessionConflictError(session_id)
        return version + 1

    def _add(self, session_id: str, text: str) -> int:
        with self._transaction() as database:
            new = counters.following(database, self._tenant, counters.SESSIONS) * _SAVINGS
            if not database.execute(_ADD, (self._tenant, session_id, text, new)).rowcount:
                raise SessionConflictError(session_id)
        return new

    def delete(self, session_id: str) -> bool:
        with self._statement() as database:
            done = database.execute("DELETE FROM sessions WHERE tenant = ? AND id = ?", (self._tenant, session_id))
            return done.rowcount == 1

    def ids(self) -> list[str]:
        with self._reading() as database:
            rows = database.execute("SELECT id FROM sessions WHERE tenant = ? ORDER BY id", (self._tenant,))
            return [row[0] for row in rows]

    def versions(self, session_ids: Collection[str]) -> dict[str, int]:
        wanted, found = sorted(set(session_ids)), dict[str, int]()
        with self._reading() as database:
            for place in range(0, len(wanted), _AT_ONCE):
                part = wanted[place : place + _AT_ONCE]
                query = f"SELECT id, version FROM sessions WHERE tenant = ? AND id IN ({', '.join('?' * len(part))})"  # noqa: S608
                found |= dict(database.execute(query, (self._tenant, *part)).fetchall())
        return found
