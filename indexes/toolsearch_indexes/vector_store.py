"""Stores of vectors: the interface, one in memory, and one in an SQLite file for many threads and processes.

A damaged file is set aside, never trusted.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, TypeVar

from toolsearch_indexes.errors import IndexStoreError
from toolsearch_indexes.forking import follow_forks


class VectorStore(Protocol):
    """A mapping from keys to the bytes of vectors. It may forget entries. Safe to share between threads.

    Each method may raise ToolSearchError; a file raises IndexStoreError.
    """

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the stored and undamaged values of *keys*."""
        ...

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Store all of *values*, or none of them if the process is cut off."""
        ...

    def close(self) -> None:
        """May be called twice."""
        ...


class MemoryVectorStore:
    """The *size* most recently used vectors."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = Lock()
        self._values: OrderedDict[bytes, bytes] = OrderedDict()  # least recently used first

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        with self._lock:
            known = [key for key in keys if key in self._values]
            for key in known:
                self._values.move_to_end(key)
            return {key: self._values[key] for key in known}

    def put(self, values: Mapping[bytes, bytes]) -> None:
        with self._lock:
            self._values.update(values)
            while len(self._values) > self._size:
                self._values.popitem(last=False)

    def close(self) -> None:
        """There is nothing to close."""


_log = logging.getLogger(__name__)
_APPLICATION_ID = 0x54535643  # "TSVC", in the header of our files; other databases are left alone
_FORMAT = 2
_BUSY_TIMEOUT_S = 30.0  # the wait for another process that writes
_KEYS_PER_QUERY = 500  # few enough for SQLite's smallest limit of 999 parameters
_CHECKSUM_BYTES = 4
_T = TypeVar("_T")


class VectorFile:
    """A `VectorStore` on disk. Every process that opens the file sees each stored value, or none if it was lost.

    Two processes must not share a connection, so it is closed before a fork, and opened again when it is needed.
    """

    def __init__(self, path: Path) -> None:
        """Open or make the file.

        Raises IndexStoreError if that is impossible, or if the file is the database of another program.
        """
        self._path = path.absolute()  # absolute, since the file is opened later, perhaps from another working directory
        self._lock = Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._is_closed = False
        self._open_connection: sqlite3.Connection | None = None
        try:
            self._open_connection = self._open()
        except sqlite3.DatabaseError as error:
            self._require_damage(error)
            self._open_connection = self._replace(error)
        follow_forks(self)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the stored and intact values of *keys*."""
        return self._run(lambda: self._get(keys))

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Store all of *values*, or none of them if the process is cut off."""
        self._run(lambda: self._put(values))

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._close_connection()

    def __del__(self) -> None:
        if hasattr(self, "_open_connection"):  # missing if the folder could not be made
            self._close_connection()

    def before_fork(self) -> None:
        self._lock.acquire()
        self._close_connection()

    def after_fork(self, *, in_child: bool) -> None:  # noqa: ARG002  both processes go on in the same way
        self._lock.release()

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._is_closed:
            raise sqlite3.ProgrammingError("it was closed")
        if self._open_connection is None:
            self._open_connection = self._open()
        return self._open_connection

    def _close_connection(self) -> None:
        if self._open_connection is not None:
            self._open_connection.close()
            self._open_connection = None

    def _get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, Any] = {}  # the values are bytes unless the file is damaged
        for start in range(0, len(keys), _KEYS_PER_QUERY):
            some = keys[start : start + _KEYS_PER_QUERY]
            marks = ",".join("?" * len(some))
            query = f"SELECT key, value FROM vectors WHERE key IN ({marks})"  # noqa: S608  (only question marks)
            found.update(self._connection.execute(query, some))
        intact = {key: _unsealed(key, value) for key, value in found.items()}
        return {key: value for key, value in intact.items() if value is not None}

    def _put(self, values: Mapping[bytes, bytes]) -> None:
        rows = [(key, _sealed(key, value)) for key, value in values.items()]
        with self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO vectors (key, value) VALUES (?, ?)", rows)

    def _run(self, operation: Callable[[], _T]) -> _T:
        """Run *operation*, once more on a fresh file if the file turns out to be damaged."""
        with self._lock:
            try:
                return operation()
            except sqlite3.DatabaseError as error:
                self._require_damage(error)
                self._close_connection()
                self._open_connection = self._replace(error)
                return operation()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_BUSY_TIMEOUT_S, check_same_thread=False)
        connection.text_factory = bytes  # every value is bytes unless the file is damaged
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")  # if several processes start at once, one makes the table
        with connection:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if tables and application != _APPLICATION_ID:
                raise IndexStoreError(f"{str(self._path)!r} is a database of something else; name another cache file")
            if tables and version != _FORMAT:
                _log.warning("vector cache %s has format %s, not %s: emptied", self._path, version, _FORMAT)
                connection.execute("DROP TABLE IF EXISTS vectors")
            # WITHOUT ROWID would give each vector an overflow page, and double the size of the file.
            connection.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, value BLOB NOT NULL)")
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {_FORMAT}")
        with contextlib.suppress(sqlite3.OperationalError):  # the file is locked if another process is doing the same
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")

    def _replace(self, error: sqlite3.DatabaseError) -> sqlite3.Connection:
        aside = self._path.with_name(f"{self._path.name}.damaged")
        _log.warning("vector cache %s is damaged (%s): set aside as %s and begun anew", self._path, error, aside.name)
        try:
            self._path.replace(aside)
            for suffix in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    self._path.with_name(self._path.name + suffix).unlink()
            return self._open()
        except (OSError, sqlite3.Error) as failure:
            raise self._unusable(failure) from failure

    def _require_damage(self, error: sqlite3.DatabaseError) -> None:
        """Raises IndexStoreError if *error* has another cause: the file is locked, closed, cannot be written ..."""
        # An SQL error here means a damaged table or column name.
        names_are_damaged = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR
        if isinstance(error, sqlite3.OperationalError | sqlite3.ProgrammingError) and not names_are_damaged:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> IndexStoreError:
        return IndexStoreError(f"the vector cache {str(self._path)!r} cannot be used: {error}")


def _sealed(key: bytes, value: bytes) -> bytes:
    """Return *value* with a checksum, since SQLite notices damage only to its own structure.

    It is of the key, too: a damaged index of keys leads to the value of another one.
    """
    return value + zlib.crc32(value, zlib.crc32(key)).to_bytes(_CHECKSUM_BYTES, "big")


def _unsealed(key: bytes, stored: Any) -> bytes | None:
    if not isinstance(stored, bytes):
        return None
    value = stored[:-_CHECKSUM_BYTES]
    return value if _sealed(key, value) == stored else None
