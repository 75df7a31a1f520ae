"""Approved definitions in a SQLite file that gateways and commands share. A damaged file never counts as a new one."""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from toolsearch.errors import PinStoreError
from toolsearch.storage.pins import FIRST_SIGHT, Pin, SeenEntry, approval, withdrawal
from toolsearch.storage.sqlite import audit
from toolsearch.storage.sqlite.file import SqliteFile
from toolsearch.storage.sqlite.schema import UnusableFileError
from toolsearch.tools.json_types import JsonObject

_APPROVE = "INSERT OR REPLACE INTO pins VALUES (?, ?, 1, ?, ?, ?, ?, ?)"
_HOLD = """
INSERT INTO pins VALUES (?, ?, 0, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET pin = excluded.pin, entry = excluded.entry, seen_s = excluded.seen_s
"""
_FORGET = "DELETE FROM pins WHERE server = ? AND tool = ? AND NOT is_approved"
_LAST_DECISION = """
SELECT (SELECT position FROM audit WHERE action IN ('approve', 'revoke') ORDER BY position DESC LIMIT 1),
    EXISTS (SELECT 1 FROM pins)
"""  # the second column is only to notice that they are there
_REMEDY = "restore it from a backup, or remove it to approve everything anew"


class _PinFile(SqliteFile):
    contents = "approved tools"
    error_class = PinStoreError


class SqlitePins(_PinFile):
    """A `PinPersistence` in the file at *path*, which is its owner's alone, and so is the folder if it is made."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._translated():
            _make(path)
        super().__init__(path)

    def version(self) -> int:
        with self.opened() as database:
            return database.execute(_LAST_DECISION).fetchone()[0] or 0

    def approved(self, owner: str) -> dict[str, Pin]:
        return self._pins(owner, is_approved=True)

    def waiting(self, owner: str) -> dict[str, Pin]:
        return self._pins(owner, is_approved=False)

    def entry(self, owner: str, name: str, *, is_approved: bool) -> JsonObject | None:
        with self.opened() as database:
            row = database.execute(
                "SELECT entry FROM pins WHERE server = ? AND tool = ? AND is_approved = ?", (owner, name, is_approved)
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
            database.executemany(_APPROVE, [_row(entry, FIRST_SIGHT) for entry in approve])
            database.executemany(_HOLD, [_row(entry, "") for entry in hold])
            database.executemany(_FORGET, [(entry.owner, entry.name) for entry in forget])

    def approve(self, owner: str, name: str, pin: str, *, by: str, at_s: float) -> bool:
        with self.transaction() as database:
            row = database.execute(
                "SELECT entry, seen_s FROM pins WHERE server = ? AND tool = ? AND pin = ? ORDER BY is_approved",
                (owner, name, pin),
            ).fetchone()
            if row is not None:
                database.execute(_FORGET, (owner, name))
                database.execute(_APPROVE, (owner, name, pin, *row, by, _us(at_s)))
            audit.append(database, approval(owner, name, by=by, at_s=at_s, is_done=row is not None))
        return row is not None

    def revoke(self, owner: str, name: str, *, by: str, at_s: float) -> bool:
        with self.transaction() as database:
            row = database.execute(
                "SELECT pin, entry, seen_s FROM pins WHERE server = ? AND tool = ? AND is_approved", (owner, name)
            ).fetchone()
            if row is not None:
                database.execute("DELETE FROM pins WHERE server = ? AND tool = ?", (owner, name))
                database.execute(_HOLD, (owner, name, *row, by, _us(at_s)))
            audit.append(database, withdrawal(owner, name, by=by, at_s=at_s, is_done=row is not None))
        return row is not None

    def copy_to(self, path: Path) -> None:
        """Copy the whole file, even while others write to it. Raises PinStoreError."""
        with self.opened() as database, closing(sqlite3.connect(path)) as copy:
            database.backup(copy)

    def _pins(self, owner: str, *, is_approved: bool) -> dict[str, Pin]:
        with self.opened() as database:
            rows = database.execute(
                "SELECT tool, pin, seen_s, by FROM pins WHERE server = ? AND is_approved = ? ORDER BY tool",
                (owner, is_approved),
            ).fetchall()
        return {tool: Pin(tool, pin, seen_s, by) for tool, pin, seen_s, by in rows}

    def _prepare(self, database: sqlite3.Connection) -> None:
        """Refuse a file without its table: `_make` writes that at once, so the approvals have been lost."""
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'pins'").fetchall():
            raise UnusableFileError(f"are lost, there is no table of them; {_REMEDY}")
        if database.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
            raise UnusableFileError(f"are damaged; {_REMEDY}")
        super()._prepare(database)
        database.execute("PRAGMA synchronous = FULL")  # a power cut must not bring back a withdrawn approval


def _row(entry: SeenEntry, by: str) -> tuple[object, ...]:
    raw = json.dumps(entry.raw, sort_keys=True)  # in ASCII: SQLite takes no lone surrogates
    return entry.owner, entry.name, entry.pin, raw, entry.seen_s, by, 0


def _us(at_s: float) -> int:
    return int(at_s * 1_000_000)


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
            os.close(os.open(new, os.O_CREAT | os.O_RDWR, 0o600))
            _PinFile(new).close()
            with suppress(FileExistsError):  # another process was faster
                os.link(new, path)
    if not path.stat().st_size:
        raise PinStoreError(f"{path} is empty; restore it, or remove it to approve everything anew")
    path.chmod(0o600)
