"""Conversations in a SQLite file, which outlive the process and may be shared by several."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from typing import Any

from toolsearch.chat.message_json import message_from_text, message_to_text
from toolsearch.chat.messages import Message
from toolsearch.errors import MessageStoreError
from toolsearch.storage.sqlite.file import SqliteFile

_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError)


class SqliteMessageStore(SqliteFile):
    """A `MessageStore` in one file. What cannot be read or written is a MessageStoreError."""

    holds = "conversations"
    fault = MessageStoreError

    def load(self, conversation_id: str) -> list[Message]:
        with self.opened() as database:
            return self._read(database, conversation_id)

    def update(self, conversation_id: str, change: Callable[[list[Message]], list[Message]]) -> None:
        with self.transaction() as database:
            messages = change(self._read(database, conversation_id))
            text = json.dumps([message_to_text(message) for message in messages])
            database.execute("INSERT OR REPLACE INTO conversations VALUES (?, ?)", (conversation_id, text))

    def delete(self, conversation_id: str) -> None:
        with self.opened() as database:
            database.execute("DELETE FROM conversations WHERE id = ?", (conversation_id,))

    def _read(self, database: sqlite3.Connection, conversation_id: str) -> list[Message]:
        query = "SELECT messages FROM conversations WHERE id = ?"
        row: tuple[Any] | None = database.execute(query, (conversation_id,)).fetchone()
        try:
            return [message_from_text(text) for text in json.loads(row[0])] if row else []
        except _UNREADABLE as error:
            raise MessageStoreError(
                f"the conversation {conversation_id!r} in {self._path} cannot be read ({error}); clear it to go on"
            ) from error
