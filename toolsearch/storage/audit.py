"""The record of decisions: who did what, to what, when, and with which outcome. Entries are only added."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol

from toolsearch.errors import Kept
from toolsearch.storage.sql import DatabaseConnection, SqlStore, storable


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """*action* is a verb, such as ``approve``, *outcome* ``done`` or why not. *at_s* is in seconds since 1970.

    *tenant* is whose it is in a service for many, "" elsewhere. *position* grows with each record; the log gives it.
    """

    at_s: float
    who: str
    action: str
    subject: str
    outcome: str
    tenant: str = ""
    position: int = field(default=0, compare=False)


class AuditLog(Protocol):
    """Safe to share between threads. Each method may raise StorageError."""

    def append(self, record: AuditRecord) -> None: ...

    def records(
        self,
        *,
        limit: int,
        tenant: str | None = None,
        before: int | None = None,
        who: str | None = None,
        holding: str = "",
    ) -> list[AuditRecord]:
        """The newest *limit* in the order in which they were appended.

        Of *tenant* alone, of positions less than *before* alone, of *who* alone, where these are given, and with
        *holding* in the action, the subject or the outcome, in whatever case.
        """
        ...

    def prune(self, *, before_s: float, limit: int) -> int:
        """Delete at most *limit* records of an earlier time, the first ones first; return how many."""
        ...


_NEWEST = """
SELECT at_us, who, action, subject, outcome, tenant, position FROM audit
WHERE position < ?{} ORDER BY position DESC LIMIT ?
"""

_HOLDING: Final = r"lower(action || ' ' || subject || ' ' || outcome) LIKE ? ESCAPE '\'"
_PRUNE = "DELETE FROM audit WHERE position IN (SELECT position FROM audit WHERE at_us < ? ORDER BY at_us LIMIT ?)"
_END: Final = (1 << 63) - 1  # greater than all positions


class SqlAuditLog(SqlStore):
    """An `AuditLog` in SQL."""

    kept = Kept.AUDIT
    durability = "ACKNOWLEDGED"

    def append(self, record: AuditRecord) -> None:
        with self._statement() as database:
            append(database, record)

    def records(
        self,
        *,
        limit: int,
        tenant: str | None = None,
        before: int | None = None,
        who: str | None = None,
        holding: str = "",
    ) -> list[AuditRecord]:
        asked = {"tenant = ?": tenant, "who = ?": who, _HOLDING: _pattern(holding) if holding else None}
        conditions = {condition: value for condition, value in asked.items() if value is not None}
        query = _NEWEST.format("".join(f" AND {condition}" for condition in conditions))
        values = (_END if before is None else before, *conditions.values(), limit)
        with self._reading() as database:
            rows = database.execute(query, values).fetchall()
        return [AuditRecord(at_us / 1_000_000, *rest) for at_us, *rest in reversed(rows)]

    def prune(self, *, before_s: float, limit: int) -> int:
        with self._statement() as database:
            return database.execute(_PRUNE, (microseconds(before_s), limit)).rowcount


def append(database: DatabaseConnection, record: AuditRecord) -> None:
    """Append *record* within the transaction in which what it tells of is done."""
    texts = (record.who, record.action, record.subject, record.outcome)
    database.execute(
        "INSERT INTO audit (at_us, who, action, subject, outcome, tenant) VALUES (?, ?, ?, ?, ?, ?)",
        (microseconds(record.at_s), *map(storable, texts), record.tenant),
    )


def _pattern(part: str) -> str:
    """For ``LIKE``."""
    escaped = part.lower().replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
    return f"%{storable(escaped)}%"


def microseconds(at_s: float) -> int:
    return round(at_s * 1_000_000)
