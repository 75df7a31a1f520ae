"""Approved definitions in a SQL database that gateways, services and commands share."""

from __future__ import annotations

import json
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from toolsearch.errors import PinStoreError
from toolsearch.storage.audit import AuditRecord
from toolsearch.storage.changes import PINS
from toolsearch.storage.pins import FIRST_SIGHT, Pin, SeenEntry, approval, withdrawal
from toolsearch.storage.sql import audit, counters
from toolsearch.storage.sql.audit import microseconds
from toolsearch.storage.sql.database import Connection, Database
from toolsearch.storage.sql.store import SqlStore
from toolsearch.tools.json_types import JsonObject

_APPROVE = """
INSERT INTO pins VALUES (?, ?, ?, TRUE, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, server, tool, is_approved) DO UPDATE SET pin = excluded.pin, entry = excluded.entry,
    seen_s = excluded.seen_s, by = excluded.by, decided_us = excluded.decided_us
"""
_HOLD = """
INSERT INTO pins VALUES (?, ?, ?, FALSE, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, server, tool, is_approved)
DO UPDATE SET pin = excluded.pin, entry = excluded.entry, seen_s = excluded.seen_s
"""
_FORGET = "DELETE FROM pins WHERE tenant = ? AND server = ? AND tool = ? AND NOT is_approved"
_WITHDRAWN = "SELECT tool FROM pins WHERE tenant = ? AND server = ? AND NOT is_approved AND by <> ''"
# Also whether the other tables can be read, since a number out of a damaged file must not count as the last one.
_VERSION = f"""
SELECT coalesce((SELECT last FROM counters WHERE tenant = ?1 AND name = '{counters.PINS}'), 0),
    EXISTS (SELECT 1 FROM pins WHERE tenant = ?1), EXISTS (SELECT 1 FROM audit WHERE tenant = ?1)
"""  # noqa: S608
LOCK: Final = "pins"  # of what a tenant has approved


class SqlPins(SqlStore):
    """A `PinPersistence` in SQL. *tenant* is whose approvals these are in a service for many."""

    contents = "approved tools"
    error_class = PinStoreError
    durability = "FULL"  # a power cut must not bring back a withdrawn approval

    def __init__(self, database: Database, *, tenant: str = "") -> None:
        super().__init__(database)
        self._tenant = tenant

    def version(self) -> int:
        with self._reading() as database:
            version: int = database.execute(_VERSION, (self._tenant,)).fetchone()[0]
        return version

    def approved(self, owner: str) -> dict[str, Pin]:
        return self._pins(owner, is_approved=True)

    def waiting(self, owner: str) -> dict[str, Pin]:
        return self._pins(owner, is_approved=False)

    def entry(self, owner: str, name: str, *, is_approved: bool) -> JsonObject | None:
        with self._reading() as database:
            row = database.execute(
                "SELECT entry FROM pins WHERE tenant = ? AND server = ? AND tool = ? AND is_approved = ?",
                (self._tenant, owner, name, is_approved),
            ).fetchone()
        try:
            entry: JsonObject | None = json.loads(row[0]) if row else None
        except (TypeError, ValueError) as error:
            raise PinStoreError(f"the definition of {name!r} that was kept of {owner} is damaged") from error
        return entry

    def keep(
        self, *, approve: Sequence[SeenEntry] = (), hold: Sequence[SeenEntry] = (), forget: Sequence[SeenEntry] = ()
    ) -> None:
        if not (approve or hold or forget):
            return
        with self._deciding() as database:
            withdrawn = self._withdrawn(database, {entry.owner for entry in (*approve, *forget)})
            approve, forget = (
                [entry for entry in entries if (entry.owner, entry.name) not in withdrawn]
                for entries in (approve, forget)
            )
            database.executemany(_APPROVE, [self._row(entry, FIRST_SIGHT) for entry in approve])
            database.executemany(_HOLD, [self._row(entry, "") for entry in hold])
            database.executemany(_FORGET, [(self._tenant, entry.owner, entry.name) for entry in forget])

    def approve(self, owner: str, name: str, pin: str, *, by: str, at_s: float) -> bool:
        with self._deciding() as database:
            row = database.execute(
                "SELECT entry, seen_s FROM pins WHERE tenant = ? AND server = ? AND tool = ? AND pin = ? "
                "ORDER BY is_approved",
                (self._tenant, owner, name, pin),
            ).fetchone()
            if row is not None:
                database.execute(_FORGET, (self._tenant, owner, name))
                database.execute(_APPROVE, (self._tenant, owner, name, pin, *row, by, microseconds(at_s)))
            self._decided(database, approval(owner, name, by=by, at_s=at_s, is_done=row is not None))
        return row is not None

    def revoke(self, owner: str, name: str, *, by: str, at_s: float) -> bool:
        with self._deciding() as database:
            row = database.execute(
                "SELECT pin, entry, seen_s FROM pins WHERE tenant = ? AND server = ? AND tool = ? AND is_approved",
                (self._tenant, owner, name),
            ).fetchone()
            if row is not None:
                database.execute(
                    "DELETE FROM pins WHERE tenant = ? AND server = ? AND tool = ?", (self._tenant, owner, name)
                )
                database.execute(_HOLD, (self._tenant, owner, name, *row, by, microseconds(at_s)))
            self._decided(database, withdrawal(owner, name, by=by, at_s=at_s, is_done=row is not None))
        return row is not None

    def close(self) -> None:
        """Whoever opened the database closes it."""

    def _withdrawn(self, database: Connection, owners: Collection[str]) -> set[tuple[str, str]]:
        return {(owner, name) for owner in owners for (name,) in database.execute(_WITHDRAWN, (self._tenant, owner))}

    @contextmanager
    def _deciding(self) -> Generator[Connection]:
        with self._transaction() as database:
            database.lock(LOCK, self._tenant)
            yield database

    def _decided(self, database: Connection, record: AuditRecord) -> None:
        audit.append(database, replace(record, tenant=self._tenant))
        database.announce(self._tenant, PINS, version=counters.following(database, self._tenant, counters.PINS))

    def _row(self, entry: SeenEntry, by: str) -> tuple[object, ...]:
        raw = json.dumps(entry.raw, sort_keys=True)  # in ASCII: databases take no lone surrogates
        return self._tenant, entry.owner, entry.name, entry.pin, raw, entry.seen_s, by, 0

    def _pins(self, owner: str, *, is_approved: bool) -> dict[str, Pin]:
        with self._reading() as database:
            rows = database.execute(
                "SELECT tool, pin, seen_s, by FROM pins WHERE tenant = ? AND server = ? AND is_approved = ? "
                "ORDER BY tool",
                (self._tenant, owner, is_approved),
            ).fetchall()
        return {tool: Pin(tool, pin, seen_s, by) for tool, pin, seen_s, by in rows}
