"""Conversations in a SQLite file, which outlive the process and may be shared by several."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from toolsearch.storage.messages import Message
from toolsearch.storage.sql.messages import SqlMessages
from toolsearch.storage.sqlite.file import SqliteFile


class SqliteMessages(SqliteFile, SqlMessages[Message]):
    """A `MessageStore` in one file, of messages that *write* makes a text of, and *read* brings back."""

    def __init__(self, path: str | Path, *, write: Callable[[Message], str], read: Callable[[str], Message]) -> None:
        super().__init__(path)
        self._write = write
        self._read = read
