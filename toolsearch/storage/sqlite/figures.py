"""Figures of use in a SQLite file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from toolsearch.errors import FigureStoreError
from toolsearch.storage.figures import By, FigureCell, FigureSum
from toolsearch.storage.sqlite.file import SqliteFile

_ADD = """
INSERT INTO figures VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET amount = amount + excluded.amount
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


class SqliteFigureLog(SqliteFile):
    """A `FigureLog` in one SQLite file."""

    contents = "figures of use"
    error_class = FigureStoreError

    def add(self, tenant: str, amounts: Mapping[FigureCell, float]) -> None:
        with self.transaction() as database:
            database.executemany(_ADD, [(tenant, *cell, amount) for cell, amount in amounts.items()])

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
            "WHERE tenant = ?1 AND hour_s >= ?2 AND hour_s < ?3 AND (?4 IS NULL OR key = ?4) "
            "AND (?5 IS NULL OR session = ?5) GROUP BY grouped, name ORDER BY grouped, name"
        )
        with self.reading() as database:
            rows = database.execute(query, (tenant, since_s, until_s, key, session)).fetchall()
        return [FigureSum(str(group), name, amount) for group, name, amount in rows]

    def prune(self, *, before_s: float, limit: int) -> int:
        with self.transaction() as database:
            return database.execute(_PRUNE, (before_s, limit)).rowcount
