"""The record of what was decided, in the SQL database of what it was decided about."""

from __future__ import annotations

from typing import Final

from toolsearch.errors import AuditStoreError
from toolsearch.storage.audit import AuditRecord
from toolsearch.storage.sql.database import Connection
from toolsearch.storage.sql.store import SqlStore
from toolsearch.storage.sql.values import storable

_NEWEST = """
SELECT at_us, who, action, subject, outcome, tenant, position FROM audit
WHERE position < ? {} ORDER BY position DESC LIMIT ?
"""
_PRUNE = "DELETE FROM audit WHERE position IN (SELECT position FROM audit WHERE at_us < ? ORDER BY at_us LIMIT ?)"
_END: Final = (1 << 63) - 1  # greater than all positions


class SqlAuditLog(SqlStore):
    """An `AuditLog` in SQL."""

    contents = "records of decisions"
    error_class = AuditStoreError
    durability = "ACKNOWLEDGED"

    def append(self, record: AuditRecord) -> None:
        with self._statement() as database:
            append(database, record)

    def records(self, *, limit: int, tenant: str | None = None, before: int | None = None) -> list[AuditRecord]:
        condition, values = ("AND tenant = ?", (tenant,)) if tenant is not None else ("", ())
        query = _NEWEST.format(condition)
        with self._reading() as database:
            rows = database.execute(query, (_END if before is None else before, *values, limit)).fetchall()
        return [AuditRecord(at_us / 1_000_000, *rest) for at_us, *rest in reversed(rows)]

    def prune(self, *, before_s: float, limit: int) -> int:
        with self._statement() as database:
            return database.execute(_PRUNE, (microseconds(before_s), limit)).rowcount


def append(database: Connection, record: AuditRecord) -> None:
    """Append *record* within the transaction in which what it tells of is done."""
    texts = (record.who, record.action, record.subject, record.outcome)
    database.execute(
        "INSERT INTO audit (at_us, who, action, subject, outcome, tenant) VALUES (?, ?, ?, ?, ?, ?)",
        (microseconds(record.at_s), *map(storable, texts), record.tenant),
    )


def microseconds(at_s: float) -> int:
    return round(at_s * 1_000_000)
