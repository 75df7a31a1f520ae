"""Where what was learnt from use outlives the process: one weight for each pair of a term and a tool."""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from toolsearch.errors import Kept
from toolsearch.storage.sql import DatabaseConnection, SqlStore


class UsageCell(NamedTuple):
    """What a weight counts: calls of *tool* after a query with *term*.

    With an empty tool: queries with the term. With an empty term: calls of the tool. With both empty: all queries.
    """

    term: str
    tool: str


@dataclass(frozen=True, slots=True)
class StoredWeight:
    """The weight of a cell at the moment *at_s*, in seconds of the log's clock."""

    cell: UsageCell
    weight: float
    at_s: float

    def left(self, at_s: float, half_life_s: float) -> float:
        """Return what is left of the weight at a later moment."""
        return self.weight * math.pow(0.5, (at_s - self.at_s) / half_life_s)


class UsageStore(Protocol):
    """Keeps weights by principal and cell; safe to share between threads. Each method may raise StorageError."""

    def load(self, principal: str) -> list[StoredWeight]:
        """By term and tool."""
        ...

    def add(self, principal: str, weights: Mapping[UsageCell, float], *, at_s: float, half_life_s: float) -> None:
        """Add to the stored weights, after these have faded until *at_s*."""
        ...

    def drop(self, principal: str, cells: Collection[UsageCell]) -> None: ...

    def reset(self, principal: str | None) -> None:
        """Forget one principal, or all."""
        ...

    def principals(self) -> list[str]:
        """Sorted."""
        ...


_FIND = """
WITH wanted (wanted_term, wanted_tool) AS (VALUES {}) SELECT term, tool, weight, at_s FROM wanted CROSS JOIN usage
WHERE principal = ? AND term = wanted_term AND tool = wanted_tool
"""

_AT_ONCE: Final = 250  # cells in one statement, as SQLite takes few values

_SAVE = """
INSERT INTO usage (principal, term, tool, weight, at_s) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (principal, term, tool) DO UPDATE SET weight = excluded.weight, at_s = excluded.at_s
"""

LOCK: Final = "usage"  # of what one principal has used


class SqlUsageStore(SqlStore):
    """A `UsageStore` in SQL. Each process adds what it sees, and reads at its start what others saw."""

    kept = Kept.USAGE

    def load(self, principal: str) -> list[StoredWeight]:
        with self._reading() as database:
            rows = database.execute(
                "SELECT term, tool, weight, at_s FROM usage WHERE principal = ? ORDER BY term, tool", (principal,)
            ).fetchall()
        return [StoredWeight(UsageCell(term, tool), weight, at_s) for term, tool, weight, at_s in rows]

    def add(self, principal: str, weights: Mapping[UsageCell, float], *, at_s: float, half_life_s: float) -> None:
        with self._transaction() as database:
            database.lock(LOCK, principal)
            left = {each.cell: each.left(at_s, half_life_s) for each in _found(database, principal, sorted(weights))}
            rows = [(principal, *cell, left.get(cell, 0.0) + weight, at_s) for cell, weight in sorted(weights.items())]
            database.executemany(_SAVE, rows)

    def drop(self, principal: str, cells: Collection[UsageCell]) -> None:
        with self._transaction() as database:
            database.lock(LOCK, principal)
            database.executemany(
                "DELETE FROM usage WHERE principal = ? AND term = ? AND tool = ?",
                [(principal, *cell) for cell in cells],
            )

    def reset(self, principal: str | None) -> None:
        with self._statement() as database:
            database.execute("DELETE FROM usage WHERE CAST(?1 AS TEXT) IS NULL OR principal = ?1", (principal,))

    def principals(self) -> list[str]:
        with self._reading() as database:
            return [row[0] for row in database.execute("SELECT DISTINCT principal FROM usage ORDER BY principal")]


def _found(database: DatabaseConnection, principal: str, cells: Sequence[UsageCell]) -> Generator[StoredWeight]:
    for place in range(0, len(cells), _AT_ONCE):
        part = cells[place : place + _AT_ONCE]
        query = _FIND.format(", ".join(["(?, ?)"] * len(part)))
        values = [text for cell in part for text in cell]
        for term, tool, weight, at_s in database.execute(query, (*values, principal)):
            yield StoredWeight(UsageCell(term, tool), weight, at_s)
