"""Requests without a good answer, in a SQL database."""

from __future__ import annotations

from toolsearch.errors import MissStoreError
from toolsearch.storage.misses import Miss, MissKind
from toolsearch.storage.sql.store import SqlStore
from toolsearch.storage.sql.values import storable

_ADD = """
INSERT INTO misses VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?)
ON CONFLICT (tenant, corpus, folded) DO UPDATE SET query = excluded.query, kind = excluded.kind,
    count = misses.count + 1,
    last_s = excluded.last_s, best = excluded.best, best_score = excluded.best_score
"""
_PRUNE = """
DELETE FROM misses WHERE (tenant, corpus, folded) IN (
    SELECT tenant, corpus, folded FROM misses WHERE last_s < ? ORDER BY last_s LIMIT ?
)
"""


class SqlMissLog(SqlStore):
    """A `MissLog` in SQL."""

    contents = "requests without a good answer"
    error_class = MissStoreError

    def add(
        self, tenant: str, corpus: str, query: str, kind: MissKind, *, best: str, best_score: float, at_s: float
    ) -> None:
        query = storable(query)
        with self._statement() as database:
            database.execute(_ADD, (tenant, corpus, _folded(query), query, kind, at_s, at_s, best, best_score))

    def page(self, tenant: str, corpus: str | None, *, offset: int = 0, limit: int) -> list[Miss]:
        query = (
            "SELECT query, kind, count, first_s, last_s, best, best_score FROM misses "
            "WHERE tenant = ?1 AND (CAST(?2 AS TEXT) IS NULL OR corpus = ?2) "
            "ORDER BY count DESC, last_s DESC, folded, corpus LIMIT ?3 OFFSET ?4"
        )
        with self._reading() as database:
            return [Miss(*row) for row in database.execute(query, (tenant, corpus, limit, offset))]

    def forget(self, tenant: str, corpus: str, query: str) -> bool:
        with self._statement() as database:
            done = database.execute(
                "DELETE FROM misses WHERE tenant = ? AND corpus = ? AND folded = ?",
                (tenant, corpus, _folded(storable(query))),
            )
            return done.rowcount == 1

    def prune(self, *, before_s: float, limit: int) -> int:
        with self._statement() as database:
            return database.execute(_PRUNE, (before_s, limit)).rowcount


def _folded(query: str) -> str:
    return " ".join(query.casefold().split())
