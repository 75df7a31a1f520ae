"""Conversations in a SQLite file."""

from __future__ import annotations

from pathlib import Path

from toolsearch.chat.message_json import message_from_text, message_to_text
from toolsearch.storage.sqlite.messages import SqliteMessages
from toolsearch.wire.messages import Message


class SqliteMessageStore(SqliteMessages[Message]):
    """A `MessageStore` in one file. What cannot be read or written is a MessageStoreError."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path, write=message_to_text, read=message_from_text)
