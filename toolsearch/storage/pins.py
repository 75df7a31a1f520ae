"""Which definitions are approved, and which wait for approval."""

from __future__ import annotations

import json
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, Protocol

from toolsearch.errors import Kept, StorageError
from toolsearch.storage import audit, sql
from toolsearch.storage.audit import AuditRecord, microseconds
from toolsearch.storage.decisions import PINS_VERSION
from toolsearch.storage.replicas import PINS
from toolsearch.storage.sql import Database, DatabaseConnection, SqlStore
from toolsearch.tools.json_types import JsonObject

FIRST_SIGHT: Final = "first sight"  # stands for who approved a definition that nobody looked at


@dataclass(frozen=True, slots=True)
class Pin:
    """One definition of one entry.

    name        the name that its owner gives it
    by          who approved it; of one that waits, who withdrew the approval, or ""
    refused_by  who refused this definition while it waited, or ""
    """

    name: str
    pin: str
    seen_s: float
    by: str = ""
    refused_by: str = ""


@dataclass(frozen=True, slots=True)
class SeenEntry:
    """A definition as it was seen: whose it is, by which name its owner knows it, and its pin."""

    owner: str
    name: str
    pin: str
    raw: JsonObject
    seen_s: float


class PinPersistence(Protocol):
    """Keeps the approved definition of each entry, and the last definition that waits for approval.

    Safe to share between threads. Each method raises StorageError if the approvals cannot be read; no definition may
    count as new then. A person's decision and its record in the audit are written together.
    """

    def version(self) -> int:
        """Return a number that changes with each decision of a person, in any process. `keep` does not change it.

        Takes microseconds.
        """
        ...

    def approved(self, owner: str) -> dict[str, Pin]:
        """What is approved of *owner*, by name, sorted."""
        ...

    def waiting(self, owner: str) -> dict[str, Pin]:
        """The same of what waits."""
        ...

    def entry(self, owner: str, name: str, *, is_approved: bool) -> JsonObject | None:
        """The definition that is approved, or that waits; None if there is none."""
        ...

    def keep(
        self, *, approve: Sequence[SeenEntry] = (), hold: Sequence[SeenEntry] = (), forget: Sequence[SeenEntry] = ()
    ) -> None:
        """Note *approve* as approved on first sight, *hold* as waiting, and *forget* as waiting no more: all or none.

        A withdrawal also holds for definitions that wait later; a refusal ends with another definition. What somebody
        has withdrawn or refused by now is neither approved nor forgotten: the caller may have judged it before that.
        """
        ...

    def approve(self, owner: str, name: str, pin: str, *, by: str, at_s: float) -> bool:
        """Approve the definition *pin*. Returns False if the entry has another definition by now."""
        ...

    def revoke(self, owner: str, name: str, *, by: str, at_s: float) -> bool:
        """Withdraw the approval of the entry, whatever its definition is. Returns False if it was not approved."""
        ...

    def refuse(self, owner: str, name: str, pin: str, *, by: str, at_s: float) -> bool:
        """Refuse the definition *pin*, which waits: it stays refused until it is approved, or another one is held.

        Returns False if the entry has another definition by now.
        """
        ...

    def close(self) -> None:
        """May be called twice."""
        ...


def approval(owner: str, name: str, *, by: str, at_s: float, is_done: bool) -> AuditRecord:
    """How `PinPersistence.approve` is recorded."""
    return AuditRecord(at_s, by, "approve", _subject(owner, name), "done" if is_done else "changed meanwhile")


def withdrawal(owner: str, name: str, *, by: str, at_s: float, is_done: bool) -> AuditRecord:
    """How `PinPersistence.revoke` is recorded."""
    return AuditRecord(at_s, by, "revoke", _subject(owner, name), "done" if is_done else "was not approved")


def refusal(owner: str, name: str, *, by: str, at_s: float, is_done: bool) -> AuditRecord:
    """How `PinPersistence.refuse` is recorded."""
    return AuditRecord(at_s, by, "refuse", _subject(owner, name), "done" if is_done else "changed meanwhile")


def _subject(owner: str, name: str) -> str:
    return f"{owner}: {name}" if name else owner


_APPROVE = """
INSERT INTO pins (tenant, server, tool, is_approved, pin, entry, seen_s, by, decided_us, refused_by)
VALUES (?, ?, ?, TRUE, ?, ?, ?, ?, ?, '')
ON CONFLICT (tenant, server, tool, is_approved) DO UPDATE SET pin = excluded.pin, entry = excluded.entry,
    seen_s = excluded.seen_s, by = excluded.by, decided_us = excluded.decided_us
"""

_HOLD = """
INSERT INTO pins (tenant, server, tool, is_approved, pin, entry, seen_s, by, decided_us, refused_by)
VALUES (?, ?, ?, FALSE, ?, ?, ?, ?, ?, '')
ON CONFLICT (tenant, server, tool, is_approved)
DO UPDATE SET pin = excluded.pin, entry = excluded.entry, seen_s = excluded.seen_s,
    refused_by = CASE WHEN pins.pin = excluded.pin THEN pins.refused_by ELSE '' END
"""

_REFUSE = """
UPDATE pins SET refused_by = ?, decided_us = ?
WHERE tenant = ? AND server = ? AND tool = ? AND pin = ? AND NOT is_approved
"""

_FORGET = "DELETE FROM pins WHERE tenant = ? AND server = ? AND tool = ? AND NOT is_approved"
_DENIED = """
SELECT tool, CASE WHEN by <> '' THEN '' ELSE pin END FROM pins
WHERE tenant = ? AND server = ? AND NOT is_approved AND (by <> '' OR refused_by <> '')
"""


# Also whether the other tables can be read, since a number out of a damaged file must not count as the last one.
LOCK: Final = "pins"  # of what a tenant has approved


class SqlPins(SqlStore):
    """A `PinPersistence` in SQL. *tenant* is whose approvals these are in a service for many."""

    kept = Kept.PINS
    durability = "FULL"  # a power cut must not bring back a withdrawn approval

    def __init__(self, database: Database, *, tenant: str = "") -> None:
        super().__init__(database)
        self._tenant = tenant

    def version(self) -> int:
        with self._reading() as database:
            version: int = database.execute(PINS_VERSION, (self._tenant,)).fetchone()[0]
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
            raise StorageError(f"the definition of {name!r} that was kept of {owner} is damaged", Kept.PINS) from error
        return entry

    def keep(
        self, *, approve: Sequence[SeenEntry] = (), hold: Sequence[SeenEntry] = (), forget: Sequence[SeenEntry] = ()
    ) -> None:
        if not (approve or hold or forget):
            return
        with self._deciding() as database:
            denied = self._denied(database, {entry.owner for entry in (*approve, *forget)})
            approve, forget = (
                [entry for entry in entries if denied.get((entry.owner, entry.name)) not in ("", entry.pin)]
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

    def refuse(self, owner: str, name: str, pin: str, *, by: str, at_s: float) -> bool:
        with self._deciding() as database:
            refused = database.execute(_REFUSE, (by, microseconds(at_s), self._tenant, owner, name, pin)).rowcount
            self._decided(database, refusal(owner, name, by=by, at_s=at_s, is_done=refused > 0))
        return refused > 0

    def close(self) -> None:
        """Whoever opened the database closes it."""

    def _denied(self, database: DatabaseConnection, owners: Collection[str]) -> dict[tuple[str, str], str]:
        """What somebody has withdrawn or refused, with the pin that was refused; "" stands for every definition."""
        return {
            (owner, name): pin for owner in owners for name, pin in database.execute(_DENIED, (self._tenant, owner))
        }

    @contextmanager
    def _deciding(self) -> Generator[DatabaseConnection]:
        with self._transaction() as database:
            database.lock(LOCK, self._tenant)
            yield database

    def _decided(self, database: DatabaseConnection, record: AuditRecord) -> None:
        audit.append(database, replace(record, tenant=self._tenant))
        database.announce(self._tenant, PINS, version=sql.next_version(database, self._tenant, sql.PINS))

    def _row(self, entry: SeenEntry, by: str) -> tuple[object, ...]:
        raw = json.dumps(entry.raw, sort_keys=True)  # in ASCII: databases take no lone surrogates
        return self._tenant, entry.owner, entry.name, entry.pin, raw, entry.seen_s, by, 0

    def _pins(self, owner: str, *, is_approved: bool) -> dict[str, Pin]:
        with self._reading() as database:
            rows = database.execute(
                "SELECT tool, pin, seen_s, by, refused_by FROM pins WHERE tenant = ? AND server = ? "
                "AND is_approved = ? ORDER BY tool",
                (self._tenant, owner, is_approved),
            ).fetchall()
        return {row[0]: Pin(*row) for row in rows}
