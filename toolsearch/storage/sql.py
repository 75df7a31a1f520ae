"""Every store in SQL that SQLite and PostgreSQL both understand: what a database owes, and the base of each store.

The stores themselves are in the modules that are named by what they keep.

A statement has ``?`` for each value, in order, or ``?1``, ``?2`` where one is used twice. What a transaction reads in
order to write is read after a lock, which `DatabaseConnection.lock` takes, or `next_version`. A transaction that takes
several takes them in this order, so that no two wait for each other:

1. the counters of a tenant: sessions, records, contents
2. the locks of what was learnt from use, then of what was approved, then of a conversation
3. rows: those of one table by their keys
4. the chains of the audit with their counters, by tenant, and then the counter of what was approved

The service writes records before it changes contents. PostgreSQL ends transactions that still wait in a circle after a
second; that is a StorageError that says to try again.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar, Final, Literal, NamedTuple, Protocol, TypeAlias

from toolsearch.errors import Kept
from toolsearch.storage.decisions import PINS_COUNTER
from toolsearch.storage.replicas import OnChange, Subscription


class StoreLoad(NamedTuple):
    """What one process knows of it, without asking it.

    is_there     whether it could be used the last time
    times_away   how often it could not, since the start
    connections  that are open, and how many of them are *busy*
    waiting      threads that wait for a connection
    """

    is_there: bool = True
    times_away: int = 0
    connections: int = 1
    busy: int = 0
    waiting: int = 0


Durability: TypeAlias = Literal["NORMAL", "ACKNOWLEDGED", "FULL"]


"""What of the last second survives: in every case the end of this process, in "ACKNOWLEDGED" that of the database's
server as well, in "FULL" also a power cut.
"""


class Cursor(Protocol):
    """The rows of one statement, each a tuple."""

    @property
    def rowcount(self) -> int:
        """How many rows were written or deleted."""
        ...

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class DatabaseConnection(Protocol):
    """What is sent over it has been looked at by `toolsearch.storage.sql.checked`."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Cursor: ...
    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object: ...

    def lock(self, *names: str) -> None:
        """Wait until no other transaction holds the lock of *names*, and hold it until this transaction ends."""
        ...

    def announce(self, tenant: str, kind: str, subject: str = "", version: int = 0) -> None:
        """Tell whoever follows the database of this change, as `Change`, once this transaction is committed.

        Not for what is written with every request; see `toolsearch.storage.replicas`.
        """
        ...


class Database(Protocol):
    """`snapshot` and `transaction` hold for the thread that runs their block: what it reads and writes in there,
    through whichever object over this database, belongs to them.
    """

    def reading(self) -> AbstractContextManager[DatabaseConnection]:
        """A connection of this thread alone. Each statement sees what is committed by then."""
        ...

    def snapshot(self) -> AbstractContextManager[DatabaseConnection]:
        """The same, but everything that this thread reads within the block is of one moment."""
        ...

    def transaction(self, durability: Durability = ..., /) -> AbstractContextManager[DatabaseConnection]:
        """A connection for writing. What is written within the block is written all or nothing.

        Within another transaction of this thread it is a part of that: undone by itself if it fails, and kept once the
        outer one is.
        """
        ...

    def statement(self, durability: Durability = ..., /) -> AbstractContextManager[DatabaseConnection]:
        """A connection for one statement that writes. It is a transaction by itself, for the price of one statement."""
        ...

    def translated(self, kept: Kept) -> AbstractContextManager[None]:
        """Raise errors of the database as StorageError, which names *kept*."""
        ...

    def follow(self, on_change: OnChange) -> Subscription:
        """Tell *on_change* what others write, as `toolsearch.storage.storage.ReplicaFeed.follow` says."""
        ...

    def load(self) -> StoreLoad:
        """How it is doing, without asking it."""
        ...

    def close(self) -> None:
        """May be called twice."""
        ...


class SqlStore:
    """A subclass says in *kept* what it keeps, and in *durability* what may be lost of the last second.

    Every method may raise StorageError, and may be called from several threads at once. Objects of several subclasses
    may use one database.
    """

    kept: ClassVar[Kept]
    durability: ClassVar[Durability] = "NORMAL"

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def _reading(self) -> Generator[DatabaseConnection]:
        """A connection of this thread alone, to read from."""
        with self._translated(), self._database.reading() as database:
            yield database

    @contextmanager
    def _snapshot(self) -> Generator[DatabaseConnection]:
        """The same; all that this thread reads within the block, through whichever object, is of one moment."""
        with self._translated(), self._database.snapshot() as database:
            yield database

    @contextmanager
    def _transaction(self) -> Generator[DatabaseConnection]:
        """A connection for writing, within one transaction."""
        with self._translated(), self._database.transaction(self.durability) as database:
            yield database

    @contextmanager
    def _statement(self) -> Generator[DatabaseConnection]:
        """A connection for one statement that writes."""
        with self._translated(), self._database.statement(self.durability) as database:
            yield database

    @contextmanager
    def _translated(self) -> Generator[None]:
        with self._database.translated(self.kept):
            yield


_INTEGERS: Final = range(-(1 << 63), 1 << 63)
_REPLACEMENT: Final = "\ufffd"


class BadValueError(ValueError):
    """No database can keep the value; the message says why, without the value itself."""


def checked(values: Sequence[Any]) -> Sequence[Any]:
    """Return *values*, which are to be sent to a database. Raises BadValueError."""
    for value in values:
        if isinstance(value, str):
            if not value.isascii() or "\0" in value:
                _check_text(value)
        elif isinstance(value, int):
            if value not in _INTEGERS:
                raise BadValueError("a number has more than 64 bits")
        elif isinstance(value, float) and math.isnan(value):
            raise BadValueError("a number is not a number (NaN)")
    return values


def storable(text: str) -> str:
    """Return *text* with U+FFFD for each character that no database takes, for what is only to be read by people."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", _REPLACEMENT)


def _check_text(text: str) -> None:
    if "\0" in text:
        raise BadValueError("a text has a NUL character in it; leave it out")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadValueError("a text has half of a surrogate pair in it; leave it out") from None


SESSIONS: Final = "sessions"  # that were made
RECORDS: Final = "records"  # writings
CONTENTS: Final = "contents"  # changes of catalogs
PINS: Final = PINS_COUNTER  # decisions about what servers list
CHAINS: Final = "audit chains"  # beginnings of the chain of the audit: one, unless all its records were taken out

_NEXT = """
INSERT INTO counters (tenant, name, last) VALUES (?, ?, 1)
ON CONFLICT (tenant, name) DO UPDATE SET last = counters.last + 1 RETURNING last
"""


def next_version(database: DatabaseConnection, tenant: str, name: str) -> int:
    """Return the next number, within the transaction that uses it, and let nobody else get one until that ends."""
    number: int = database.execute(_NEXT, (tenant, name)).fetchone()[0]
    return number
