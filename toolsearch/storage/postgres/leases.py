"""Leases in PostgreSQL, by the clock of its server. Each change is one statement, so that one of two is the first."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from toolsearch.errors import StorageError
from toolsearch.storage.sql.store import SqlStore

_NOW: Final = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"
_TAKE: Final = f"""
INSERT INTO leases VALUES (?1, ?2, {_NOW} + CAST(?3 AS DOUBLE PRECISION))
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_s = excluded.until_s
WHERE leases.holder = excluded.holder OR leases.until_s <= {_NOW}
"""  # noqa: S608
_RENEW: Final = f"""
UPDATE leases SET until_s = {_NOW} + CAST(?3 AS DOUBLE PRECISION)
WHERE name = ?1 AND holder = ?2 AND until_s > {_NOW}
"""  # noqa: S608
_RELEASE: Final = "DELETE FROM leases WHERE name = ? AND holder = ?"
_HELD: Final = f"SELECT name FROM leases WHERE name = ANY(?) AND until_s > {_NOW}"  # noqa: S608
_FORGET: Final = f"DELETE FROM leases WHERE until_s < {_NOW} - 3600"  # noqa: S608


class PostgresLeases(SqlStore):
    """`Leases` that replicas share."""

    contents = "leases of replicas"
    error_class = StorageError

    def take(self, name: str, holder: str, *, for_s: float) -> bool:
        with self._transaction() as database:
            database.execute(_FORGET)  # those of replicas that are gone
            return database.execute(_TAKE, (name, holder, for_s)).rowcount == 1

    def renew(self, name: str, holder: str, *, for_s: float) -> bool:
        with self._transaction() as database:
            return database.execute(_RENEW, (name, holder, for_s)).rowcount == 1

    def release(self, name: str, holder: str) -> None:
        with self._transaction() as database:
            database.execute(_RELEASE, (name, holder))

    def held(self, names: Collection[str]) -> frozenset[str]:
        with self._reading() as database:
            return frozenset(name for (name,) in database.execute(_HELD, (list(names),)))
