"""Where what was learnt outlives the process: one number for each thing that is counted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from toolsearch.errors import UsageStoreError
from toolsearch.sessions.usage.evidence import Cell
from toolsearch.storage.sqlite.file import SqliteFile


@dataclass(frozen=True, slots=True)
class StoredWeight:
    """What a cell counted at a moment, in seconds of the log's clock."""

    cell: Cell
    weight: float
    at_s: float


class UsageStore(Protocol):
    """Keeps weights by tenant and cell; safe to share between threads. Each method may raise UsageStoreError."""

    def load(self, tenant: str) -> list[StoredWeight]: ...

    def add(self, tenant: str, weights: Mapping[Cell, float], *, at_s: float, half_life_s: float) -> None:
        """Add to what is there, once that has faded until *at_s*."""
        ...

    def drop(self, tenant: str, cells: Collection[Cell]) -> None: ...

    def reset(self, tenant: str | None) -> None:
        """Forget one tenant, or all."""
        ...

    def tenants(self) -> list[str]:
        """Sorted."""
        ...


class SqliteUsageStore(SqliteFile):
    """One SQLite file. Of processes that share it, each adds what it sees, and reads what others saw when it starts."""

    holds = "counts of use"
    fault = UsageStoreError

    def load(self, tenant: str) -> list[StoredWeight]:
        with self.opened() as database:
            rows = database.execute(
                "SELECT term, tool, weight, at_s FROM usage WHERE tenant = ? ORDER BY term, tool", (tenant,)
            ).fetchall()
        return [StoredWeight(Cell(term, tool), weight, at_s) for term, tool, weight, at_s in rows]

    def add(self, tenant: str, weights: Mapping[Cell, float], *, at_s: float, half_life_s: float) -> None:
        with self.transaction() as database:
            for cell, weight in weights.items():
                key = (tenant, cell.term, cell.tool)
                found = database.execute(
                    "SELECT weight, at_s FROM usage WHERE tenant = ? AND term = ? AND tool = ?", key
                ).fetchone()
                left = found[0] * 0.5 ** ((at_s - found[1]) / half_life_s) if found else 0.0
                database.execute("INSERT OR REPLACE INTO usage VALUES (?, ?, ?, ?, ?)", (*key, left + weight, at_s))

    def drop(self, tenant: str, cells: Collection[Cell]) -> None:
        with self.transaction() as database:
            database.executemany(
                "DELETE FROM usage WHERE tenant = ? AND term = ? AND tool = ?", [(tenant, *cell) for cell in cells]
            )

    def reset(self, tenant: str | None) -> None:
        with self.opened() as database:
            database.execute("DELETE FROM usage WHERE ?1 IS NULL OR tenant = ?1", (tenant,))

    def tenants(self) -> list[str]:
        with self.opened() as database:
            return [row[0] for row in database.execute("SELECT DISTINCT tenant FROM usage ORDER BY tenant")]
