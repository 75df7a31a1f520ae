"""Conversations in a SQL database, which outlive the process and may be shared by several."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Generic

from toolsearch.errors import MessageStoreError
from toolsearch.storage.messages import Message
from toolsearch.storage.sql.database import Connection, Database
from toolsearch.storage.sql.store import SqlStore

_SAVE = "INSERT INTO conversations VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET messages = excluded.messages"
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError)


class SqlMessages(SqlStore, Generic[Message]):
    """A `MessageStore` in SQL, of messages that *write* makes a text of, and *read* brings back."""

    contents = "conversations"
    error_class = MessageStoreError
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

    def _load(self, database: Connection, conversation_id: str) -> list[Message]:
        row = database.execute("SELECT messages FROM conversations WHERE id = ?", (conversation_id,)).fetchone()
        try:
            return [self._read(text) for text in json.loads(row[0])] if row else []
        except _UNREADABLE as error:
            raise MessageStoreError(
                f"the conversation {conversation_id!r} cannot be read ({error}); clear it to go on"
            ) from error
