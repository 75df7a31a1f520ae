"""Conversations in a SQLite file, which outlive the process and may be shared by several."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Generic

from toolsearch.errors import MessageStoreError
from toolsearch.storage.messages import Message
from toolsearch.storage.sqlite.file import SqliteFile

_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError)


class SqliteMessages(SqliteFile, Generic[Message]):
    """A `MessageStore` in one file, of messages that *write* makes a text of, and *read* brings back."""

    contents = "conversations"
    error_class = MessageStoreError

    def __init__(self, path: str | Path, *, write: Callable[[Message], str], read: Callable[[str], Message]) -> None:
        super().__init__(path)
        self._write = write
        self._read = read

    def load(self, conversation_id: str) -> list[Message]:
        with self.reading() as database:
            return self._load(database, conversation_id)

    def update(self, conversation_id: str, change: Callable[[list[Message]], list[Message]]) -> None:
        with self.transaction() as database:
            messages = change(self._load(database, conversation_id))
            text = json.dumps([self._write(message) for message in messages])
            database.execute("INSERT OR REPLACE INTO conversations VALUES (?, ?)", (conversation_id, text))

    def delete(self, conversation_id: str) -> None:
        with self.transaction() as database:
            database.execute("DELETE FROM conversations WHERE id = ?", (conversation_id,))

    def _load(self, database: sqlite3.Connection, conversation_id: str) -> list[Message]:
        row = database.execute("SELECT messages FROM conversations WHERE id = ?", (conversation_id,)).fetchone()
        try:
            return [self._read(text) for text in json.loads(row[0])] if row else []
        except _UNREADABLE as error:
            raise MessageStoreError(
                f"the conversation {conversation_id!r} in {self._path} cannot be read ({error}); clear it to go on"
            ) from error
