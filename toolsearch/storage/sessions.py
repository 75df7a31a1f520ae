"""Where sessions and conversations outlive the process: the state of each session, the messages of each chat."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from toolsearch.errors import ConflictError, Kept, StorageError
from toolsearch.storage import sql
from toolsearch.storage.sql import Database, DatabaseConnection, SqlStore


@dataclass(frozen=True, slots=True)
class StoredSession:
    """What was saved last. *version* is 1 or more, and no two savings under one id have the same."""

    text: str
    version: int


class SessionPersistence(Protocol):
    """Keeps texts by session id; safe to share between threads. Each method may raise StorageError."""

    def load(self, session_id: str) -> StoredSession | None: ...

    def save(self, session_id: str, text: str, *, version: int) -> int:
        """Save over what was read as *version*, 0 where there was nothing; return the new version.

        Raises ConflictError, and leaves what is there, if that has another version by now, or is gone.
        """
        ...

    def delete(self, session_id: str) -> bool:
        """Return whether there was something to delete."""
        ...

    def ids(self) -> list[str]:
        """Sorted."""
        ...


_ADD = "INSERT INTO sessions (tenant, id, text, version) VALUES (?, ?, ?, ?) ON CONFLICT (tenant, id) DO NOTHING"
_REPLACE = "UPDATE sessions SET text = ?, version = version + 1 WHERE tenant = ? AND id = ? AND version = ?"
_AT_ONCE = 500  # ids in one statement
_SAVINGS = 1 << 24  # of one session, before its versions could be those of one that comes anew under its id


class SqlSessionPersistence(SqlStore):
    """A `SessionPersistence` in SQL. Several processes may share it. *tenant* is whose sessions these are."""

    kept = Kept.SESSIONS
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
                raise ConflictError("session", session_id, Kept.SESSIONS)
        return version + 1

    def _add(self, session_id: str, text: str) -> int:
        with self._transaction() as database:
            new = sql.next_version(database, self._tenant, sql.SESSIONS) * _SAVINGS
            if not database.execute(_ADD, (self._tenant, session_id, text, new)).rowcount:
                raise ConflictError("session", session_id, Kept.SESSIONS)
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
        """The versions of those that are there, by id: replicas look now and then whether others have written."""
        wanted, found = sorted(set(session_ids)), dict[str, int]()
        with self._reading() as database:
            for place in range(0, len(wanted), _AT_ONCE):
                part = wanted[place : place + _AT_ONCE]
                query = f"SELECT id, version FROM sessions WHERE tenant = ? AND id IN ({', '.join('?' * len(part))})"  # noqa: S608
                found |= dict(database.execute(query, (self._tenant, *part)).fetchall())
        return found


Message = TypeVar("Message")


class MessageStore(Protocol[Message]):
    """Where a memory keeps its messages. Safe to share between threads. Each method may raise StorageError."""

    def load(self, conversation_id: str) -> list[Message]:
        """``[]`` for a conversation that never was."""
        ...

    def update(self, conversation_id: str, change: Callable[[list[Message]], list[Message]]) -> None:
        """Replace the messages by what *change* makes of them; nobody else writes meanwhile."""
        ...

    def delete(self, conversation_id: str) -> None:
        """Does nothing for a conversation that is not there."""
        ...


_SAVE = """
INSERT INTO conversations (id, messages) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET messages = excluded.messages
"""

_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError)


class SqlMessages(SqlStore, Generic[Message]):
    """A `MessageStore` in SQL, of messages that *write* makes a text of, and *read* brings back."""

    kept = Kept.CONVERSATIONS
    durability = "ACKNOWLEDGED"

    def __init__(self, database: Database, *, write: Callable[[Message], str], read: Callable[[str], Message]) -> None:
        super().__init__(database)
        self._write = write
        self._read = read

    def load(self, conversation_id: str) -> list[Message]:
        with self._reading() as database:
            return self._load(database, conversation_id)

    def update(self, conversation_id: str, change: Callable[[list[Message]], list[Message]]) -> None:
        with self._transaction() as database:
            database.lock("conversations", conversation_id)
            messages = change(self._load(database, conversation_id))
            text = json.dumps([self._write(message) for message in messages])
            database.execute(_SAVE, (conversation_id, text))

    def delete(self, conversation_id: str) -> None:
        with self._statement() as database:
            database.execute("DELETE FROM conversations WHERE id = ?", (conversation_id,))

    def _load(self, database: DatabaseConnection, conversation_id: str) -> list[Message]:
        row = database.execute("SELECT messages FROM conversations WHERE id = ?", (conversation_id,)).fetchone()
        try:
            return [self._read(text) for text in json.loads(row[0])] if row else []
        except _UNREADABLE as error:
            raise StorageError(
                f"the conversation {conversation_id!r} cannot be read ({error}); clear it to go on", Kept.CONVERSATIONS
            ) from error
