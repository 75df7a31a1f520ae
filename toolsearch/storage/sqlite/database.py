"""Connections to one SQLite file: a single one that writes, and one for each thread that reads meanwhile."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from toolsearch.errors import StorageError
from toolsearch.storage.changes import NothingToHear, OnChange, Subscription
from toolsearch.storage.load import StoreLoad
from toolsearch.storage.sql.database import Durability
from toolsearch.storage.sql.values import BadValueError, checked
from toolsearch.storage.sqlite.schema import UnusableFileError

BUSY_S = 5.0  # how long to wait for another process that writes


class SqliteConnection(sqlite3.Connection):
    """A `Connection`."""

    def execute(self, statement: str, values: Any = (), /) -> sqlite3.Cursor:
        return super().execute(statement, checked(values))

    def executemany(self, statement: str, rows: Iterable[Any], /) -> sqlite3.Cursor:
        return super().executemany(statement, map(checked, rows))

    def lock(self, *names: str) -> None:
        """There is one writer at a time."""

    def announce(self, tenant: str, kind: str, subject: str = "", version: int = 0) -> None:
        """Nobody follows: one process serves a folder."""


class SqliteDatabase:
    """A `Database`: the file at *path*, which *prepare* checks and brings up to date over a connection that may write.

    Threads that write take turns by a lock, so that only other processes can make SQLite wait. Threads that read wait
    for nobody, and see what was committed when a statement began. `snapshot` and `transaction` hold for the thread that
    runs their block: what it reads and writes in there, through whichever object over this file, belongs to them.
    """

    def __init__(self, path: str | Path, prepare: Callable[[SqliteConnection], None]) -> None:
        self.path = path
        self._turn_to_write = threading.Lock()
        self._lock = threading.Lock()  # for the two that follow
        self._idle_readers: list[SqliteConnection] = []
        self._is_closed = False
        self._level = ""  # of durability, as the writer has been told
        self._of_thread = threading.local()
        self._writer = self._connect()
        try:
            prepare(self._writer)
        except BaseException:
            self._writer.close()
            raise

    @contextmanager
    def reading(self) -> Generator[SqliteConnection]:
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
    def snapshot(self) -> Generator[SqliteConnection]:
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
    def transaction(self, durability: Durability = "NORMAL") -> Generator[SqliteConnection]:
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

    def statement(self, durability: Durability = "NORMAL", /) -> AbstractContextManager[SqliteConnection]:
        return self.transaction(durability)

    def translated(self, contents: str, error_class: type[StorageError]) -> AbstractContextManager[None]:
        """Raise errors of SQLite as *error_class*."""
        return translated(self.path, contents, error_class)

    def follow(self, on_change: OnChange) -> Subscription:  # noqa: ARG002
        return NothingToHear()

    def load(self) -> StoreLoad:
        """One connection writes, and readers come and go."""
        return StoreLoad(busy=int(self._turn_to_write.locked()))

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

    def _connect(self) -> SqliteConnection:
        return sqlite3.connect(
            self.path, timeout=BUSY_S, isolation_level=None, check_same_thread=False, factory=SqliteConnection
        )

    def _bound(self) -> SqliteConnection | None:
        return getattr(self._of_thread, "connection", None)

    @contextmanager
    def _binding(self, connection: SqliteConnection) -> Generator[None]:
        self._of_thread.connection = connection
        try:
            yield
        finally:
            self._of_thread.connection = None

    def _borrow_reader(self) -> SqliteConnection:
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

    def _return_reader(self, reader: SqliteConnection) -> None:
        with self._lock:
            if not self._is_closed:
                self._idle_readers.append(reader)
                return
        reader.close()

    def _be_durable(self, durability: Durability) -> None:
        level = "FULL" if durability == "FULL" else "NORMAL"  # which survives the end of the process
        if level != self._level:
            self._writer.execute(f"PRAGMA synchronous = {level}")
            self._level = level


@contextmanager
def translated(path: str | Path, contents: str, error_class: type[StorageError]) -> Generator[None]:
    """Raise errors of SQLite as *error_class*, which names *contents* and *path*."""
    try:
        yield
    except UnusableFileError as error:
        raise error_class(f"the {contents} in {path} {error}") from error
    except BadValueError as error:
        raise error_class(f"cannot be kept among the {contents}: {error}", is_callers_fault=True) from error
    except (sqlite3.Error, OSError, UnicodeError) as error:
        raise error_class(f"cannot use the {contents} in {path}: {error}") from error


@contextmanager
def committed(connection: SqliteConnection) -> Generator[None]:
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
def _savepoint(connection: SqliteConnection) -> Generator[None]:
    connection.execute("SAVEPOINT part")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK TO part")
            connection.execute("RELEASE part")
        raise
    connection.execute("RELEASE part")
