"""The record of decisions: who did what, to what, when, and with which outcome. Entries are only added.

The records of a tenant are a chain: the digest of each covers its content and the digest of the one before it. So a
record that was changed, added or taken out afterwards is found. Whoever can write the database can also write a whole
new chain; to find that, keep the digest of the newest record elsewhere from time to time. Deleting the oldest ones is
recorded in the chain itself, so that a chain without its beginning is found, too. A counter elsewhere holds how often a
chain was begun, so that an audit whose records were all removed is not taken for a new one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby, takewhile
from operator import attrgetter
from typing import Any, Final, NamedTuple

from toolsearch.errors import Kept
from toolsearch.storage.sql import CHAINS, DatabaseConnection, SqlStore, next_version, storable


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """*action* is a verb, such as ``approve``, *outcome* ``done`` or why not. *at_s* is in seconds since 1970.

    tenant      whose it is in a service for many, "" elsewhere
    server      the MCP server that it is about; "" for none
    session     tells sessions of clients apart; "" for none
    seconds     how long it took
    request_id  the id of the request, as logs and errors name it
    position    grows with each record, and *digest* is the link of the chain; the log gives both
    """

    at_s: float
    who: str
    action: str
    subject: str
    outcome: str
    tenant: str = ""
    server: str = ""
    session: str = ""
    seconds: float = 0.0
    request_id: str = ""
    position: int = field(default=0, compare=False)
    digest: str = field(default="", compare=False)


class AuditCheck(NamedTuple):
    """The outcome of `AuditLog.verify`.

    records  how many are sound, from the first one on
    head     the digest of the newest record, as the log keeps it
    fault    what is wrong with the chain; "" if every record is as it was written
    pruned   how many more there were, which were too old
    """

    records: int
    head: str
    fault: str = ""
    pruned: int = 0


PRUNE: Final = "prune"  # the action of deleting what is too old
_COLUMNS: Final = "at_us, who, action, subject, outcome, tenant, server, session, took_us, request_id, position, digest"
_NEWEST = f"SELECT {_COLUMNS} FROM audit WHERE position < ?{{}} ORDER BY position DESC LIMIT ?"  # noqa: S608
_NEXT = f"SELECT {_COLUMNS} FROM audit WHERE tenant = ? AND position > ? ORDER BY position LIMIT ?"  # noqa: S608
_HOLDING: Final = r"lower(action || ' ' || subject || ' ' || outcome) LIKE ? ESCAPE '\'"
_INSERT: Final = """
INSERT INTO audit (at_us, who, action, subject, outcome, tenant, server, session, took_us, request_id, digest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
# It locks the chain of the tenant until the transaction ends.
_LENGTHEN: Final = """
INSERT INTO audit_chains (tenant, anchor, head, kept, pruned, oldest_us) VALUES (?, '', '', ?, 0, ?)
ON CONFLICT (tenant) DO UPDATE SET kept = audit_chains.kept + excluded.kept,
    oldest_us = CASE WHEN audit_chains.kept = 0 OR excluded.oldest_us < audit_chains.oldest_us
        THEN excluded.oldest_us ELSE audit_chains.oldest_us END
RETURNING head
"""
_SHORTEN: Final = """
UPDATE audit_chains SET anchor = ?, kept = kept - ?, pruned = pruned + ?, oldest_us = ? WHERE tenant = ?
RETURNING pruned
"""
_TIMES_BEGUN: Final = "SELECT last FROM counters WHERE tenant = ? AND name = ?"
_PUT_ASIDE: Final = "UPDATE audit_chains SET oldest_us = ? WHERE tenant = ?"
_WITH_OLD: Final = "SELECT tenant FROM audit_chains WHERE oldest_us < ? ORDER BY oldest_us, tenant LIMIT ?"
_END: Final = (1 << 63) - 1  # greater than all positions
_PAGE: Final = 1_000  # records that are read at a time


class AuditLog(SqlStore):
    """Safe to share between threads. Each method may raise StorageError."""

    kept = Kept.AUDIT
    durability = "ACKNOWLEDGED"

    def append(self, *records: AuditRecord) -> None:
        """Append all or none."""
        with self._transaction() as database:
            append(database, *records)

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
        asked = {"tenant = ?": tenant, "who = ?": who, _HOLDING: _pattern(holding) if holding else None}
        conditions = {condition: value for condition, value in asked.items() if value is not None}
        query = _NEWEST.format("".join(f" AND {condition}" for condition in conditions))
        values = (_END if before is None else before, *conditions.values(), limit)
        with self._reading() as database:
            rows = database.execute(query, values).fetchall()
        return [_record(row) for row in reversed(rows)]

    def all_of(self, tenant: str = "") -> Iterator[AuditRecord]:
        """Every record of *tenant*, in order. Only so many are in memory at a time."""
        after = 0
        while page := self._page(tenant, after):
            after = page[-1].position
            yield from page

    def verify(self, tenant: str = "") -> AuditCheck:
        """Whether every record of *tenant* is as it was written, and none is missing since the last that was pruned."""
        with self._snapshot() as database:
            kept = "SELECT anchor, head, kept, pruned FROM audit_chains WHERE tenant = ?"
            anchor, head, count, pruned = database.execute(kept, (tenant,)).fetchone() or ("", "", 0, 0)
            (begun,) = database.execute(_TIMES_BEGUN, (tenant, CHAINS)).fetchone() or (0,)
            digest, sound, is_told = anchor, 0, not anchor
            for record in self.all_of(tenant):
                digest = digest_of(record, digest)
                if digest != record.digest:
                    fault = f"record {record.position} was changed, or one before it was taken out"
                    return AuditCheck(sound, head, fault, pruned)
                is_told |= (record.action, record.subject) == (PRUNE, _pruned(pruned, anchor))
                sound += 1
        if (sound, digest) != (count, head):
            return AuditCheck(sound, head, f"{sound} records are left of {count} at the end", pruned)
        if begun != bool(head):
            return AuditCheck(sound, head, "all earlier records were taken out", pruned)
        fault = "" if is_told else "the first records were taken out, and not because of their age"
        return AuditCheck(sound, head, fault, pruned)

    def prune(self, *, before_s: float, limit: int, at_s: float) -> int:
        """Delete at most *limit* records of an earlier time, and record that as done at *at_s*; return how many.

        The first ones of a tenant go first, and none that stands behind a later one: a chain has no gaps. A record of a
        time after *at_s* had a wrong clock, and goes with the next one.
        """
        before_us, deleted = microseconds(before_s), 0
        with self._reading() as database:
            tenants = database.execute(_WITH_OLD, (before_us, limit)).fetchall()
        for (tenant,) in tenants:
            if deleted < limit:
                deleted += self._prune_chain(tenant, before_us, limit - deleted, at_s)
        return deleted

    def _prune_chain(self, tenant: str, before_us: int, limit: int, at_s: float) -> int:
        """Delete the first records of one chain. The digest of the last one stays, so that the rest can be verified."""
        with self._transaction() as database:
            database.execute(_LENGTHEN, (tenant, 0, _END)).fetchone()
            first = "SELECT position, at_us, digest FROM audit WHERE tenant = ? ORDER BY position LIMIT ?"
            rows = database.execute(first, (tenant, limit + 1)).fetchall()
            now_us = microseconds(at_s)
            old = list(takewhile(lambda row: not before_us <= row[1] <= now_us, rows[:limit]))
            while old and old[-1][1] >= before_us:
                old.pop()
            oldest_us = min(rows[len(old)][1], now_us) if len(rows) > len(old) else _END
            if not old:
                database.execute(_PUT_ASIDE, (oldest_us, tenant))
                return 0
            last, _, anchor = old[-1]
            database.execute("DELETE FROM audit WHERE tenant = ? AND position <= ?", (tenant, last))
            (pruned,) = database.execute(_SHORTEN, (anchor, len(old), len(old), oldest_us, tenant)).fetchone()
            append(database, AuditRecord(at_s, "", PRUNE, _pruned(pruned, anchor), "done", tenant))
        return len(old)

    def _page(self, tenant: str, after: int) -> list[AuditRecord]:
        with self._reading() as database:
            return list(map(_record, database.execute(_NEXT, (tenant, after, _PAGE)).fetchall()))


def _pruned(count: int, anchor: str) -> str:
    """What a record of pruning is about: all that was ever pruned."""
    return f"{count} records up to {anchor}"


def append(database: DatabaseConnection, *records: AuditRecord) -> None:
    """Append *records* within the transaction in which what they tell of is done."""
    for tenant, of_tenant in groupby(sorted(map(_storable, records), key=attrgetter("tenant")), attrgetter("tenant")):
        linked = list(of_tenant)
        oldest_us = microseconds(min(record.at_s for record in linked))
        (head,) = database.execute(_LENGTHEN, (tenant, len(linked), oldest_us)).fetchone()
        if not head:
            next_version(database, tenant, CHAINS)
        rows: list[tuple[object, ...]] = []
        for record in linked:
            head = digest_of(record, head)
            rows.append((*_values(record), head))
        database.executemany(_INSERT, rows)
        database.execute("UPDATE audit_chains SET head = ? WHERE tenant = ?", (head, tenant))


def digest_of(record: AuditRecord, before: str) -> str:
    """The digest of *record*, behind a record with the digest *before*; "" if it is the first one.

    It is the SHA-256, in hex, of a JSON list without spaces, in ASCII: *before*, the time in microseconds since 1970,
    who, action, subject, outcome, tenant, server, session, the duration in microseconds, and the request's id.
    """
    return hashlib.sha256(_compact([before, *_values(record)]).encode()).hexdigest()


_compact = json.JSONEncoder(separators=(",", ":")).encode


def _values(record: AuditRecord) -> tuple[object, ...]:
    return (
        *(microseconds(record.at_s), record.who, record.action, record.subject, record.outcome, record.tenant),
        *(record.server, record.session, microseconds(record.seconds), record.request_id),
    )


_TEXTS: Final = ("who", "action", "subject", "outcome", "server", "session", "request_id")


def _storable(record: AuditRecord) -> AuditRecord:
    texts: dict[str, Any] = {
        name: text for name in _TEXTS if (text := storable(getattr(record, name))) is not getattr(record, name)
    }
    return replace(record, **texts) if texts else record


def _record(row: Iterable[Any]) -> AuditRecord:
    at_us, who, action, subject, outcome, tenant, server, session, took_us, request_id, position, digest = row
    texts = (who, action, subject, outcome, tenant, server, session)
    return AuditRecord(at_us / 1_000_000, *texts, took_us / 1_000_000, request_id, position, digest)


def _pattern(part: str) -> str:
    """For ``LIKE``."""
    escaped = part.lower().replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
    return f"%{storable(escaped)}%"


def microseconds(at_s: float) -> int:
    return round(at_s * 1_000_000)
