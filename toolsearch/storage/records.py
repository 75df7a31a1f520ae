"""Small documents of many kinds, each of one tenant: toolsets, sources, sessions of the service, jobs, tenants."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from toolsearch.errors import ConflictError, Kept, StorageError
from toolsearch.storage import sql
from toolsearch.storage.replicas import RECORD_KINDS
from toolsearch.storage.sql import DatabaseConnection, SqlStore
from toolsearch.tools.json_types import JsonObject

THE_SERVICE: Final = ""  # the tenant of what belongs to the service itself, such as the list of tenants


@dataclass(frozen=True, slots=True)
class Record:
    """*version* is 1 or more, and no two writings under one id have the same, also after a deletion.

    Times are in seconds since 1970. Once *expires_s* is reached, the record counts as gone.
    """

    id: str
    document: JsonObject
    version: int
    changed_s: float
    expires_s: float | None = None


_COLUMNS = "id, document, version, changed_s, expires_s"
_LIVING = "(expires_s IS NULL OR expires_s > ?)"
_VERSION = "SELECT version FROM records WHERE tenant = ? AND kind = ? AND id = ?"
_SCAN = f"SELECT tenant, kind, {_COLUMNS} FROM records WHERE (tenant, kind, id) > (?, ?, ?) ORDER BY 1, 2, 3 LIMIT ?"  # noqa: S608

_PUT = """
INSERT INTO records (tenant, kind, id, document, version, changed_s, expires_s) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, kind, id) DO UPDATE SET document = excluded.document, version = excluded.version,
    changed_s = excluded.changed_s, expires_s = excluded.expires_s
"""

_PRUNE = """
DELETE FROM records WHERE (tenant, kind, id) IN (
    SELECT tenant, kind, id FROM records WHERE expires_s <= ? ORDER BY expires_s LIMIT ?
)
RETURNING tenant, kind, id
"""


class RecordStore(SqlStore):
    """Documents by tenant, kind and id."""

    kept = Kept.RECORDS
    durability = "FULL"

    def get(self, tenant: str, kind: str, record_id: str, *, at_s: float) -> Record | None:
        """*at_s* is now."""
        query = f"SELECT {_COLUMNS} FROM records WHERE tenant = ? AND kind = ? AND id = ? AND {_LIVING}"  # noqa: S608
        with self._reading() as database:
            row = database.execute(query, (tenant, kind, record_id, at_s)).fetchone()
        return _record(row) if row else None

    def hold(self, tenant: str, kind: str, record_id: str, *, at_s: float) -> Record | None:
        """The same as `get`, within a `Storage.transaction`: nobody else writes records of the tenant until it ends."""
        with self._transaction() as database:
            sql.next_version(database, tenant, sql.RECORDS)  # it is the lock
            return self.get(tenant, kind, record_id, at_s=at_s)

    def put(
        self,
        tenant: str,
        kind: str,
        record_id: str,
        document: JsonObject,
        *,
        over: int | None,
        at_s: float,
        expires_s: float | None = None,
    ) -> Record:
        """Write over the version *over*: 0 for what must be new, None for whatever is there.

        Raises ConflictError, and writes nothing, if another version is there by now.
        """
        text = json.dumps(document, separators=(",", ":"))
        with self._transaction() as database:
            version = sql.next_version(database, tenant, sql.RECORDS)  # before anything is read, as it is the lock
            _require(database, tenant, kind, record_id, over, at_s)
            database.execute(_PUT, (tenant, kind, record_id, text, version, at_s, expires_s))
            if kind in RECORD_KINDS:
                database.announce(tenant, kind, record_id, version)
        return Record(record_id, document, version, at_s, expires_s)

    def delete(self, tenant: str, kind: str, record_id: str, *, over: int | None = None) -> bool:
        """Return whether there was something to delete. Raises ConflictError as `put` does."""
        with self._transaction() as database:
            sql.next_version(database, tenant, sql.RECORDS)
            _require(database, tenant, kind, record_id, over, 0.0)
            done = database.execute(
                "DELETE FROM records WHERE tenant = ? AND kind = ? AND id = ?", (tenant, kind, record_id)
            )
            if done.rowcount and kind in RECORD_KINDS:
                database.announce(tenant, kind, record_id)
            return done.rowcount == 1

    def page(self, tenant: str, kind: str, *, after: str = "", limit: int, at_s: float) -> list[Record]:
        """At most *limit* records whose id is greater than *after*, by id."""
        query = (
            f"SELECT {_COLUMNS} FROM records WHERE tenant = ? AND kind = ? AND id > ? AND {_LIVING} "  # noqa: S608
            "ORDER BY id LIMIT ?"
        )
        with self._reading() as database:
            return [_record(row) for row in database.execute(query, (tenant, kind, after, at_s, limit))]

    def count(self, tenant: str, kind: str, *, at_s: float) -> int:
        query = f"SELECT count(*) FROM records WHERE tenant = ? AND kind = ? AND {_LIVING}"  # noqa: S608
        with self._reading() as database:
            return int(database.execute(query, (tenant, kind, at_s)).fetchone()[0])

    def scan(self, *, after: tuple[str, str, str] = ("", "", ""), limit: int) -> list[tuple[str, str, Record]]:
        """At most *limit* records of all tenants with their tenant and kind, those that have expired included.

        By tenant, kind and id, and greater than *after*: for upkeep.
        """
        with self._reading() as database:
            rows = database.execute(_SCAN, (*after, limit)).fetchall()
        return [(tenant, kind, _record(tuple(rest))) for tenant, kind, *rest in rows]

    def prune(self, *, at_s: float, limit: int) -> list[tuple[str, str, str]]:
        """Delete at most *limit* records that have expired; return the tenant, kind and id of each."""
        with self._transaction() as database:
            return database.execute(_PRUNE, (at_s, limit)).fetchall()


def _require(
    database: DatabaseConnection, tenant: str, kind: str, record_id: str, over: int | None, at_s: float
) -> None:
    """Raise ConflictError unless what is there has the version *over*."""
    if over is None:
        return
    row = database.execute(f"{_VERSION} AND {_LIVING}", (tenant, kind, record_id, at_s)).fetchone()
    if (row[0] if row else 0) != over:
        raise ConflictError(kind, record_id)


def _record(row: tuple[Any, ...]) -> Record:
    record_id, document, version, changed_s, expires_s = row
    try:
        return Record(record_id, json.loads(document), version, changed_s, expires_s)
    except ValueError as error:
        raise StorageError(
            f"the record {record_id!r} is damaged; restore the file from a backup", Kept.RECORDS
        ) from error
