"""What was learnt from use, in a SQLite file."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from toolsearch.errors import UsageStoreError
from toolsearch.storage.sqlite.file import SqliteFile
from toolsearch.storage.usage import StoredWeight, UsageCell

_FIND = "SELECT weight, at_s FROM usage WHERE principal = ? AND term = ? AND tool = ?"
_SAVE = "INSERT OR REPLACE INTO usage VALUES (?, ?, ?, ?, ?)"


class SqliteUsageStore(SqliteFile):
    """One SQLite file. Of processes that share it, each adds what it sees, and reads what others saw when it starts."""

    contents = "counts of use"
    error_class = UsageStoreError

    def load(self, principal: str) -> list[StoredWeight]:
        with self.reading() as database:
            rows = database.execute(
                "SELECT term, tool, weight, at_s FROM usage WHERE principal = ? ORDER BY term, tool", (principal,)
            ).fetchall()
        return [StoredWeight(UsageCell(term, tool), weight, at_s) for term, tool, weight, at_s in rows]

    def add(self, principal: str, weights: Mapping[UsageCell, float], *, at_s: float, half_life_s: float) -> None:
        with self.transaction() as database:
            for cell, weight in weights.items():
                found = database.execute(_FIND, (principal, *cell)).fetchone()
                left = StoredWeight(cell, *found).left(at_s, half_life_s) if found else 0.0
                database.execute(_SAVE, (principal, *cell, left + weight, at_s))

    def drop(self, principal: str, cells: Collection[UsageCell]) -> None:
        with self.transaction() as database:
            database.executemany(
                "DELETE FROM usage WHERE principal = ? AND term = ? AND tool = ?",
                [(principal, *cell) for cell in cells],
            )

    def reset(self, principal: str | None) -> None:
        with self.transaction() as database:
            database.execute("DELETE FROM usage WHERE ?1 IS NULL OR principal = ?1", (principal,))

    def principals(self) -> list[str]:
        with self.reading() as database:
            return [row[0] for row in database.execute("SELECT DISTINCT principal FROM usage ORDER BY principal")]
