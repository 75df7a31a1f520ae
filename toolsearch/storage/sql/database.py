"""What a SQL database owes to what is kept in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypeAlias

from toolsearch.errors import StorageError
from toolsearch.storage.changes import OnChange, Subscription
from toolsearch.storage.load import StoreLoad

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


class Connection(Protocol):
    """What is sent over it has been looked at by `toolsearch.storage.sql.values.checked`."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Cursor: ...
    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object: ...

    def lock(self, *names: str) -> None:
        """Wait until no other transaction holds the lock of *names*, and hold it until this transaction ends."""
        ...

    def announce(self, tenant: str, kind: str, subject: str = "", version: int = 0) -> None:
        """Tell whoever follows the database of this change, as `Change`, once this transaction is committed.

        Not for what is written with every request; see `toolsearch.storage.changes`.
        """
        ...


class Database(Protocol):
    """`snapshot` and `transaction` hold for the thread that runs their block: what it reads and writes in there,
    through whichever object over this database, belongs to them.
    """

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection of this thread alone. Each statement sees what is committed by then."""
        ...

    def snapshot(self) -> AbstractContextManager[Connection]:
        """The same, but everything that this thread reads within the block is of one moment."""
        ...

    def transaction(self, durability: Durability = ..., /) -> AbstractContextManager[Connection]:
        """A connection for writing. What is written within the block is written all or nothing.

        Within another transaction of this thread it is a part of that: undone by itself if it fails, and kept once the
        outer one is.
        """
        ...

    def statement(self, durability: Durability = ..., /) -> AbstractContextManager[Connection]:
        """A connection for one statement that writes. It is a transaction by itself, for the price of one statement."""
        ...

    def translated(self, contents: str, error_class: type[StorageError]) -> AbstractContextManager[None]:
        """Raise errors of the database as *error_class*, which names *contents*."""
        ...

    def follow(self, on_change: OnChange) -> Subscription:
        """As `ChangeFeed.follow`."""
        ...

    def load(self) -> StoreLoad:
        """How it is doing, without asking it."""
        ...

    def close(self) -> None:
        """May be called twice."""
        ...
