"""Connections to one SQLite file: a single one that writes, and one for each thread that reads meanwhile.

`SqliteFile` is the base of what keeps data of one kind in a file of its own.
"""

from __future__ import annotations

import errno
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from toolsearch.errors import Kept, StorageError
from toolsearch.storage.replicas import NothingToHear, OnChange, Subscription
from toolsearch.storage.sql import BadValueError, Durability, SqlStore, StoreLoad, checked
from toolsearch.storage.sqlite.schema import VERSION, UnusableFileError, migrate, version_of
from toolsearch_indexes.forking import follow_forks

BUSY_S = 5.0  # how long to wait for another process that writes
_FULL_S: Final = 30.0  # how long another try is in vain, while the disk is full
_OF_THE_DISK: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})
logger = logging.getLogger(__name__)


class SqliteConnection(sqlite3.Connection):
    """A `DatabaseConnection`."""

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

    A connection must not be in two processes, so before a fork all are closed, and later opened again where they are
    needed. A child that was forked while a thread was using one is refused.
    """

    def __init__(self, path: str | Path, prepare: Callable[[SqliteConnection], None]) -> None:
        self.path = path
        self._full_path = Path(path).absolute()  # it is opened later, too
        self._turn_to_write = threading.Lock()
        self._lock = threading.Lock()  # for the three that follow
        self._idle_readers: list[SqliteConnection] = []
        self._borrowed_readers = 0
        self._is_closed = False
        self._is_still = False  # nobody writes, because of a fork that is under way
        self._is_left_by_parent = False  # this process has connections of its parent
        self._is_refusing = False  # since the disk is full or fails
        self._level = ""  # of durability, as the writer has been told
        self._of_thread = threading.local()
        writer = self._connect()
        try:
            prepare(writer)
        except BaseException:
            writer.close()
            raise
        self._writer: SqliteConnection | None = writer  # None: closed before a fork
        follow_forks(self)

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
            writer = self._opened_writer()
            self._be_durable(writer, durability)
            with committed(writer), self._binding(writer):
                yield writer
            if self._is_refusing:
                self._is_refusing = False
                logger.warning("%s can be written again", self.path)

    def statement(self, durability: Durability = "NORMAL", /) -> AbstractContextManager[SqliteConnection]:
        return self.transaction(durability)

    @contextmanager
    def translated(self, kept: Kept) -> Generator[None]:
        """Raise errors of SQLite as StorageError. That the disk is full is logged once, until something is written."""
        try:
            with translated(self.path, kept):
                yield
        except StorageError as error:
            if error.retry_after_s is not None and not self._is_refusing:
                self._is_refusing = True
                logger.error("%s cannot be written: %s", self.path, error.__cause__)  # noqa: TRY400
            raise

    def follow(self, on_change: OnChange) -> Subscription:  # noqa: ARG002
        return NothingToHear()

    def load(self) -> StoreLoad:
        """One connection writes, and readers come and go."""
        return StoreLoad(busy=int(self._turn_to_write.locked()))

    def close(self) -> None:
        """May be called twice. Waits for the one who writes; who reads can finish."""
        with self._turn_to_write, self._lock:
            self._is_closed = True
            if not self._is_left_by_parent:
                self._close_connections()

    def before_fork(self) -> None:
        """Close the connections, once nobody writes; not if that takes long."""
        self._is_still = self._turn_to_write.acquire(timeout=BUSY_S)
        self._lock.acquire()
        if self._is_still and not self._borrowed_readers:
            self._close_connections()

    def after_fork(self, *, in_child: bool) -> None:
        is_in_use = not self._is_still or bool(self._borrowed_readers)
        if in_child:
            self._is_left_by_parent = self._is_left_by_parent or is_in_use
            self._turn_to_write, self._lock = threading.Lock(), threading.Lock()
            return
        self._lock.release()
        if self._is_still:
            self._turn_to_write.release()

    def _close_connections(self) -> None:
        for connection in (self._writer, *self._idle_readers):
            if connection is not None:
                connection.close()
        self._writer = None
        self._idle_readers.clear()

    def __del__(self) -> None:
        if hasattr(self, "_writer"):  # it is missing if the file could not be opened
            self.close()

    def _connect(self) -> SqliteConnection:
        return sqlite3.connect(
            self._full_path, timeout=BUSY_S, isolation_level=None, check_same_thread=False, factory=SqliteConnection
        )

    def _opened_writer(self) -> SqliteConnection:
        self._require_usable()
        if self._writer is None:
            self._writer, self._level = self._connect(), ""
        return self._writer

    def _require_usable(self) -> None:
        if self._is_left_by_parent:
            raise sqlite3.ProgrammingError("it was in use while this process was forked; open it in the child")
        if self._is_closed:
            raise sqlite3.ProgrammingError("it was closed")

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
            self._require_usable()
            self._borrowed_readers += 1
            if self._idle_readers:
                return self._idle_readers.pop()
        try:
            return self._new_reader()
        except BaseException:
            with self._lock:
                self._borrowed_readers -= 1
            raise

    def _new_reader(self) -> SqliteConnection:
        reader = self._connect()
        try:
            reader.execute("PRAGMA query_only = ON")
        except BaseException:
            reader.close()
            raise
        return reader

    def _return_reader(self, reader: SqliteConnection) -> None:
        with self._lock:
            self._borrowed_readers -= 1
            if not self._is_closed:
                self._idle_readers.append(reader)
                return
        reader.close()

    def _be_durable(self, writer: SqliteConnection, durability: Durability) -> None:
        level = "FULL" if durability == "FULL" else "NORMAL"  # which survives the end of the process
        if level != self._level:
            writer.execute(f"PRAGMA synchronous = {level}")
            self._level = level


@contextmanager
def translated(path: str | Path, kept: Kept) -> Generator[None]:
    """Raise errors of SQLite as StorageError, which names *kept*, and *path* unless the disk is full."""
    try:
        yield
    except UnusableFileError as error:
        raise StorageError(f"the {kept.contents} in {path} {error}", kept) from error
    except BadValueError as error:
        raise StorageError(f"cannot be kept among the {kept.contents}: {error}", kept, is_callers_fault=True) from error
    except (sqlite3.Error, OSError, UnicodeError) as error:
        if _is_of_the_disk(error):
            raise StorageError(
                f"cannot use the {kept.contents}: the disk is full, or fails; try again later, and tell the operator",
                kept,
                retry_after_s=_FULL_S,
            ) from error
        raise StorageError(f"cannot use the {kept.contents} in {path}: {error}", kept) from error


def _is_of_the_disk(error: Exception) -> bool:
    if isinstance(error, sqlite3.Error):
        code: int = getattr(error, "sqlite_errorcode", 0)  # Python's own errors have none
        return code & 0xFF in _OF_THE_DISK
    return isinstance(error, OSError) and error.errno in _NO_ROOM


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


_RETRY_S = 0.01


class SqliteFile(SqlStore):
    """Keeps one kind of data in the file at *path*, created if it does not exist, and closed at the latest when this
    object is collected. Objects of several subclasses may use one file.
    """

    def __init__(self, path: str | Path) -> None:
        with self._opening(path):
            self.file = SqliteDatabase(path, prepare=self._prepare)
        SqlStore.__init__(self, self.file)

    def close(self) -> None:
        """May be called twice."""
        self.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _prepare(self, database: SqliteConnection) -> None:
        version = version_of(database)  # before anything is changed in a file that is not ours
        _use_write_ahead_log(database)
        if version != VERSION:
            with committed(database):
                migrate(database)

    def _opening(self, path: str | Path) -> AbstractContextManager[None]:
        return translated(path, self.kept)


def _use_write_ahead_log(database: sqlite3.Connection) -> None:
    """Switch to the write-ahead log. SQLite does not wait by itself while another process does the same."""
    give_up_s = time.monotonic() + BUSY_S
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up_s:
                raise
            time.sleep(_RETRY_S)
        else:
            return
