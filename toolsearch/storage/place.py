"""What can be done with the database of a service as a whole, whichever it is: looking, copying, restoring."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from toolsearch.errors import StorageError
from toolsearch.storage.storage import Storage

Row: TypeAlias = tuple[Any, ...]
BATCH: Final = 1_000  # rows in memory at a time


# What only PostgreSQL has: the versions of the tables, what the replicas that run just now hold, and a cache.
NOT_COPIED: Final = frozenset({"versions", "leases", "vectors"})


@dataclass(frozen=True, slots=True)
class CopyProgress:
    table: str
    rows: int  # that are copied
    of: int


OnProgress: TypeAlias = Callable[[CopyProgress], None]


class Tables(Protocol):
    """The tables of a database, within one transaction: what is read is of one moment, and what is written is written
    all or nothing.
    """

    def columns(self) -> Mapping[str, Collection[str]]:
        """The columns of each table."""
        ...

    def count(self, table: str) -> int: ...

    def rows(self, table: str, columns: Collection[str]) -> Iterator[Row]:
        """Only so many of them are in memory at a time."""
        ...

    def is_empty(self, table: str) -> bool: ...
    def write(self, table: str, columns: Collection[str], rows: Iterable[Row]) -> None: ...


def silent(progress: CopyProgress) -> None:
    """Tell nobody how far a copy is."""


def copy_tables(source: Tables, target: Tables, on_progress: OnProgress = silent) -> None:
    """Copy every row, with the numbers that clients know: versions, revisions, counters, positions.

    Raises StorageError if the databases do not have the same tables, or if the target holds anything.
    """
    tables = _common(source.columns(), target.columns())
    for table in tables:
        if not target.is_empty(table):
            raise StorageError(f"the database holds data already (in the table {table}); name an empty one")
    for table, columns in tables.items():
        of = source.count(table)
        target.write(table, columns, _told(source.rows(table, columns), table, of, on_progress))


def _common(source: Mapping[str, Collection[str]], target: Mapping[str, Collection[str]]) -> dict[str, list[str]]:
    """The tables to copy, by name, and their columns. Raises StorageError if one is missing on either side."""
    ours, theirs = (
        {table: sorted(columns) for table, columns in side.items() if table not in NOT_COPIED}
        for side in (source, target)
    )
    if ours != theirs:
        differing = sorted(table for table in {*ours, *theirs} if ours.get(table) != theirs.get(table))
        raise StorageError(f"the databases differ in the tables {', '.join(differing)}, so nothing was copied")
    return dict(sorted(ours.items()))


def _told(rows: Iterator[Row], table: str, of: int, on_progress: OnProgress) -> Iterator[Row]:
    done = 0
    for row in rows:
        yield row
        done += 1
        if not done % BATCH:
            on_progress(CopyProgress(table, done, of))
    on_progress(CopyProgress(table, done, of))


class StoreState(NamedTuple):
    """What was found without a change.

    is_current  whether a start leaves the tables as they are; False if it has yet to make them
    notes       more that an operator wants to know: what it is about, and what was found
    warnings    the same, of what should be changed
    """

    text: str
    is_current: bool
    notes: Sequence[tuple[str, str]] = ()
    warnings: Sequence[tuple[str, str]] = ()


class StorePlace(Protocol):
    """Each method may raise StorageError, with nothing of a password in it."""

    @property
    def name(self) -> str:
        """How people know it."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether services with folders of their own may use it at once."""
        ...

    def is_new(self) -> bool:
        """Whether no service has made its tables there yet."""
        ...

    def require(self) -> None:
        """Raises StorageError unless a service has kept something there."""
        ...

    def open(self) -> Storage:
        """Its tables are made, or brought up to date."""
        ...

    def look(self) -> StoreState:
        """Change nothing. Raises StorageError for what a start would end with."""
        ...

    def back_up(self, to: Path, on_progress: OnProgress) -> None:
        """Copy everything, as of one moment, to the new SQLite file *to*, complete or not at all."""
        ...

    def restore(self, backup: Path, on_progress: OnProgress) -> None:
        """Put in everything that the file has, all or nothing. Refused if anything is there."""
        ...
