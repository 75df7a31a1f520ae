"""Figures of use in a SQL database."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from toolsearch.errors import FigureStoreError
from toolsearch.storage.figures import By, FigureCell, FigureSum
from toolsearch.storage.sql.store import SqlStore

_ADD = """
INSERT INTO figures VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, hour_s, key, session, name) DO UPDATE SET amount = figures.amount + excluded.amount
"""
_PRUNE = """
DELETE FROM figures WHERE (tenant, hour_s, key, session, name) IN (
    SELECT tenant, hour_s, key, session, name FROM figures WHERE hour_s < ? ORDER BY hour_s LIMIT ?
)
"""
_GROUPS: Final[Mapping[By, str]] = {
    "hour": "hour_s",
    "day": "hour_s - hour_s % 86400",
    "key": "key",
    "session": "session",
}


class SqlFigureLog(SqlStore):
    """A `FigureLog` in SQL."""

    contents = "figures of use"
    error_class = FigureStoreError

    # Hours are whole numbers, and so is what they are compared with: PostgreSQL finds them by no index otherwise.

    def add(self, tenant: str, amounts: Mapping[FigureCell, float]) -> None:
        with self._transaction() as database:
            database.executemany(_ADD, [(tenant, *cell, amount) for cell, amount in sorted(amounts.items())])

    def sums(
        self,
        tenant: str,
        *,
        by: By,
        since_s: float,
        until_s: float,
        key: str | None = None,
        session: str | None = None,
    ) -> list[FigureSum]:
        query = (
            f"SELECT {_GROUPS[by]} AS grouped, name, sum(amount) FROM figures "  # noqa: S608
            "WHERE tenant = ?1 AND hour_s >= ?2 AND hour_s < ?3 AND (CAST(?4 AS TEXT) IS NULL OR key = ?4) "
            "AND (CAST(?5 AS TEXT) IS NULL OR session = ?5) GROUP BY 1, 2 ORDER BY 1, 2"
        )
        with self._reading() as database:
            rows = database.execute(query, (tenant, math.ceil(since_s), math.ceil(until_s), key, session)).fetchall()
        return [FigureSum(str(group), name, amount) for group, name, amount in rows]

    def prune(self, *, before_s: float, limit: int) -> int:
        with self._statement() as database:
            return database.execute(_PRUNE, (math.ceil(before_s), limit)).rowcount
