"""Approved definitions in a SQLite file that gateways and commands share. A damaged file never counts as a new one."""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from toolsearch.errors import PinStoreError
from toolsearch.storage.audit import AuditRecord
from toolsearch.storage.pins import FIRST_SIGHT, Pin, SeenEntry, approval, withdrawal
from toolsearch.storage.private_files import make_private
from toolsearch.storage.sqlite import audit, counters
from toolsearch.storage.sqlite.audit import microseconds
from toolsearch.storage.sqlite.database import SqliteDatabase
from toolsearch.storage.sqlite.file import SqliteFile
from toolsearch.storage.sqlite.schema import UnusableFileError
from toolsearch.tools.json_types import JsonObject

_APPROVE = "INSERT OR REPLACE INTO pins VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?)"
_HOLD = """
INSERT INTO pins VALUES (?, ?, ?, 0, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET pin = excluded.pin, entry = excluded.entry, seen_s = excluded.seen_s
"""
_FORGET = "DELETE FROM pins WHERE tenant = ? AND server = ? AND tool = ? AND NOT is_approved"
_CAN_BE_READ = "SELECT EXISTS (SELECT 1 FROM pins), EXISTS (SELECT 1 FROM audit)"
_COUNTER = "pins"  # counts decisions
_REMEDY = "restore it from a backup, or remove it to approve everything anew"


class _PinFile(SqliteFile):
    contents = "approved tools"
    error_class = PinStoreError
    durability = "FULL"  # a power cut must not bring back a withdrawn approval


class SqlitePins(_PinFile):
    """A `PinPersistence` in the file at *path*, which is its owner's alone, and so is the folder if it is made.

    *tenant* is whose approvals these are in a service for many.
    """

    def __init__(self, path: Path, *, tenant: str = "", _shared: SqliteDatabase | None = None) -> None:
        self._tenant = tenant
        if _shared is None:
            self._path = path
            with self._translated():
                _make(path)
        super().__init__(path, _shared=_shared)

    def version(self) -> int:
        with self.reading() as database:
            database.execute(_CAN_BE_READ)
            return counters.last(database, self._tenant, _COUNTER)

    def approved(self, owner: str) -> dict[str, Pin]:
        return self._pins(owner, is_approved=True)

    def waiting(self, owner: str) -> dict[str, Pin]:
        return self._pins(owner, is_approved=False)

    def entry(self, owner: str, name: str, *, is_approved: bool) -> JsonObject | None:
        with self.reading() as database:
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
        with self.transaction() as database:
            database.executemany(_APPROVE, [self._row(entry, FIRST_SIGHT) for entry in approve])
            database.executemany(_HOLD, [self._row(entry, "") for entry in hold])
            database.executemany(_FORGET, [(self._tenant, entry.owner, entry.name) for entry in forget])

    def approve(self, owner: str, name: str, pin: str, *, by: str, at_s: float) -> bool:
        with self.transaction() as database:
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
        with self.transaction() as database:
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

    def copy_to(self, path: Path) -> None:
        """Copy the whole file, even while others write to it. Raises PinStoreError."""
        with self.reading() as database, closing(sqlite3.connect(path)) as copy:
            database.backup(copy)

    def _decided(self, database: sqlite3.Connection, record: AuditRecord) -> None:
        audit.append(database, replace(record, tenant=self._tenant))
        counters.following(database, self._tenant, _COUNTER)

    def _row(self, entry: SeenEntry, by: str) -> tuple[object, ...]:
        raw = json.dumps(entry.raw, sort_keys=True)  # in ASCII: SQLite takes no lone surrogates
        return self._tenant, entry.owner, entry.name, entry.pin, raw, entry.seen_s, by, 0

    def _pins(self, owner: str, *, is_approved: bool) -> dict[str, Pin]:
        with self.reading() as database:
            rows = database.execute(
                "SELECT tool, pin, seen_s, by FROM pins WHERE tenant = ? AND server = ? AND is_approved = ? "
                "ORDER BY tool",
                (self._tenant, owner, is_approved),
            ).fetchall()
        return {tool: Pin(tool, pin, seen_s, by) for tool, pin, seen_s, by in rows}

    def _prepare(self, database: sqlite3.Connection) -> None:
        """Refuse a file without its table: `_make` writes that at once, so the approvals have been lost."""
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'pins'").fetchall():
            raise UnusableFileError(f"are lost, there is no table of them; {_REMEDY}")
        if database.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
            raise UnusableFileError(f"are damaged; {_REMEDY}")
        super()._prepare(database)


def _make(path: Path) -> None:
    """Create the file, with its table, so that only its owner can read it and what SQLite puts beside it.

    It is linked into place when it is complete, even if several processes create it at once. So an empty file is one
    that lost its contents. SQLite would take it for a new one, and every tool for one seen for the first time; that is
    a PinStoreError.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            new = Path(scratch) / path.name
            make_private(new)
            _PinFile(new).close()
            with suppress(FileExistsError):  # another process was faster
                os.link(new, path)
    if not path.stat().st_size:
        raise PinStoreError(f"{path} is empty; restore it, or remove it to approve everything anew")
    path.chmod(0o600)
