"""The record of what was decided, in the SQLite file of what it was decided about."""

from __future__ import annotations

import sqlite3

from toolsearch.errors import AuditStoreError
from toolsearch.storage.audit import AuditRecord
from toolsearch.storage.sqlite.file import SqliteFile

_NEWEST = """
SELECT at_us, who, action, subject, outcome, tenant FROM audit
WHERE ?1 IS NULL OR tenant = ?1 ORDER BY position DESC LIMIT ?2
"""


class SqliteAuditLog(SqliteFile):
    """An `AuditLog` in one SQLite file."""

    contents = "records of decisions"
    error_class = AuditStoreError

    def append(self, record: AuditRecord) -> None:
        with self.opened() as database:
            append(database, record)

    def records(self, *, limit: int, tenant: str | None = None) -> list[AuditRecord]:
        with self.opened() as database:
            rows = database.execute(_NEWEST, (tenant, limit)).fetchall()
        return [AuditRecord(at_us / 1_000_000, *rest) for at_us, *rest in reversed(rows)]


def append(database: sqlite3.Connection, record: AuditRecord) -> None:
    """Append *record* within the transaction in which what it tells of is done."""
    database.execute(
        "INSERT INTO audit (at_us, who, action, subject, outcome, tenant) VALUES (?, ?, ?, ?, ?, ?)",
        (round(record.at_s * 1_000_000), record.who, record.action, record.subject, record.outcome, record.tenant),
    )
