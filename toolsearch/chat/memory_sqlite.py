"""Conversations in a SQLite file, which outlive the process and may be shared by several."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from toolsearch.chat.message_json import message_from_text, message_to_text
from toolsearch.chat.messages import Message
from toolsearch.errors import SessionStoreError

_VERSION = 1  # of the table
_BUSY_S = 5.0  # how long to wait for another process that writes
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError)


class SqliteMessageStore:
    """A `MessageStore` in one file. What cannot be read or written is a SessionStoreError."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        with self._translated():
            self._database = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            self._prepare()
        except BaseException:
            self._database.close()
            raise

    def load(self, conversation_id: str) -> list[Message]:
        with self._lock, self._translated():
            return self._read(conversation_id)

    def update(self, conversation_id: str, change: Callable[[list[Message]], list[Message]]) -> None:
        with self._lock, self._translated(), self._transaction():
            text = json.dumps([message_to_text(message) for message in change(self._read(conversation_id))])
            self._database.execute("INSERT OR REPLACE INTO conversations VALUES (?, ?)", (conversation_id, text))

    def delete(self, conversation_id: str) -> None:
        with self._lock, self._translated():
            self._database.execute("DELETE FROM conversations WHERE id = ?", (conversation_id,))

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _prepare(self) -> None:
        with self._translated():
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")  # a power cut may cost the last writes, not the file
            version = self._database.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, _VERSION):
                raise SessionStoreError(
                    f"the conversations in {self._path} were written by another version ({version}, not {_VERSION}); "
                    "move the file away to start without them"
                )
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS conversations (id TEXT PRIMARY KEY, messages TEXT NOT NULL) WITHOUT ROWID"
            )
            self._database.execute(f"PRAGMA user_version = {_VERSION}")

    def _read(self, conversation_id: str) -> list[Message]:
        query = "SELECT messages FROM conversations WHERE id = ?"
        row: tuple[Any] | None = self._database.execute(query, (conversation_id,)).fetchone()
        try:
            return [message_from_text(text) for text in json.loads(row[0])] if row else []
        except _UNREADABLE as error:
            raise SessionStoreError(
                f"the conversation {conversation_id!r} in {self._path} cannot be read ({error}); clear it to go on"
            ) from error

    @contextmanager
    def _transaction(self) -> Generator[None]:
        self._database.execute("BEGIN IMMEDIATE")  # before the reading, so that no other process writes in between
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeError) as error:
            raise SessionStoreError(f"cannot use the conversations in {self._path}: {error}") from error
