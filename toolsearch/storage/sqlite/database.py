"""Connections to one SQLite file: a single one that writes, and one for each thread that reads meanwhile."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, TypeAlias

Durability: TypeAlias = Literal["NORMAL", "FULL"]  # FULL: what was committed survives a power cut, too

BUSY_S = 5.0  # how long to wait for another process that writes


class SqliteDatabase:
    """The file at *path*, which *prepare* checks and brings up to date over a connection that may write.

    Threads that write take turns by a lock, so that only other processes can make SQLite wait. Threads that read wait
    for nobody, and see what was committed when a statement began. `snapshot` and `transaction` hold for the thread that
    runs their block: what it reads and writes in there, through whichever object over this file, belongs to them.
    """

    def __init__(self, path: str | Path, prepare: Callable[[sqlite3.Connection], None]) -> None:
        self.path = path
        self._turn_to_write = threading.Lock()
        self._lock = threading.Lock()  # for the two that follow
        self._idle_readers: list[sqlite3.Connection] = []
        self._is_closed = False
        self._durability: Durability | None = None  # as the writer has been told
        self._of_thread = threading.local()
        self._writer = self._connect()
        try:
            prepare(self._writer)
        except BaseException:
            self._writer.close()
            raise

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """A connection for reading, of this thread alone. Each statement sees what is committed by then."""
        if (bound := self._bound()) is not None:
            yield bound
            return
        reader = self._borrow_reader()
        try:
            yield reader
        finally:
            self._return_reader(reader)

    @contextmanager
    def snapshot(self) -> Generator[sqlite3.Connection]:
        """The same, but everything that this thread reads within the block is of one moment."""
        if (bound := self._bound()) is not None:
            yield bound
            return
        with self.reading() as reader:
            reader.execute("BEGIN")
            try:
                with self._binding(reader):
                    yield reader
            finally:
                reader.execute("ROLLBACK")

    @contextmanager
    def transaction(self, durability: Durability = "NORMAL") -> Generator[sqlite3.Connection]:
        """The connection that writes. What is written within the block is written all or nothing.

        Within another transaction of this thread it is a part of that: undone by itself if it fails, and kept once the
        outer one is.
        """
        bound = self._bound()
        if bound is not None and bound is not self._writer:
            raise RuntimeError("nothing can be written within a snapshot; write before it or after it")
        if bound is not None:
            with _savepoint(bound):
                yield bound
            return
        with self._turn_to_write:
            self._be_durable(durability)
            with committed(self._writer), self._binding(self._writer):
                yield self._writer

    def close(self) -> None:
        """May be called twice. Waits for the one who writes; who reads can finish."""
        with self._turn_to_write, self._lock:
            self._is_closed = True
            for connection in (self._writer, *self._idle_readers):
                connection.close()
            self._idle_readers.clear()

    def __del__(self) -> None:
        if hasattr(self, "_writer"):  # it is missing if the file could not be opened
            self.close()

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)

    def _bound(self) -> sqlite3.Connection | None:
        return getattr(self._of_thread, "connection", None)

    @contextmanager
    def _binding(self, connection: sqlite3.Connection) -> Generator[None]:
        self._of_thread.connection = connection
        try:
            yield
        finally:
            self._of_thread.connection = None

    def _borrow_reader(self) -> sqlite3.Connection:
        with self._lock:
            if self._is_closed:
                raise sqlite3.ProgrammingError("it was closed")
            if self._idle_readers:
                return self._idle_readers.pop()
        reader = self._connect()
        try:
            reader.execute("PRAGMA query_only = ON")
        except BaseException:
            reader.close()
            raise
        return reader

    def _return_reader(self, reader: sqlite3.Connection) -> None:
        with self._lock:
            if not self._is_closed:
                self._idle_readers.append(reader)
                return
        reader.close()

    def _be_durable(self, durability: Durability) -> None:
        if durability != self._durability:
            self._writer.execute(f"PRAGMA synchronous = {durability}")
            self._durability = durability


@contextmanager
def committed(connection: sqlite3.Connection) -> Generator[None]:
    """One transaction, which nobody else can write between."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # the first error is what matters; after a full disk SQLite has undone it itself
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _savepoint(connection: sqlite3.Connection) -> Generator[None]:
    connection.execute("SAVEPOINT part")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK TO part")
            connection.execute("RELEASE part")
        raise
    connection.execute("RELEASE part")
