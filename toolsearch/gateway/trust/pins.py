"""Which definitions have been approved, and which wait for it: kept in a file that gateways and commands share."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from toolsearch.errors import BadSettingError, PinStoreError
from toolsearch.gateway.settings import GatewayConfig
from toolsearch.storage.sqlite.file import SqliteFile
from toolsearch.tools.json_types import JsonObject
from toolsearch.upstreams.identity import server_identity
from toolsearch.upstreams.pinned import Entry, Kind

FIRST_SIGHT: Final = "first sight"  # who approved what nobody has looked at
FILE: Final = "trust.db"
_APPROVE = "INSERT OR REPLACE INTO pins VALUES (?, ?, 1, ?, ?, ?, ?, ?)"
_HOLD = """
INSERT INTO pins VALUES (?, ?, 0, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET pin = excluded.pin, entry = excluded.entry, seen_s = excluded.seen_s
"""  # whoever has withdrawn an approval has withdrawn it from later definitions too
_FORGET = "DELETE FROM pins WHERE server = ? AND tool = ? AND NOT is_approved"


@dataclass(frozen=True, slots=True)
class Pin:
    """One definition of one entry. *by* is who approved it or, where it waits, who has withdrawn that, or ""."""

    name: str  # that the server gives it
    pin: str
    seen_s: float
    by: str = ""


class PinStore:
    """The pins of the servers of one configuration, which are named here as they are there.

    *identities* gives each server's identity; where a name is pointed elsewhere, nothing of it is approved any more.
    Safe to share between threads and processes. Raises PinStoreError if the file cannot be used, and
    BadSettingError for a server that the configuration does not have.
    """

    def __init__(self, path: Path, identities: Mapping[str, str], *, clock: Callable[[], float] = time.time) -> None:
        self._identities = identities
        self._clock = clock
        _make(path)
        self._seen_version: int | None = None
        self._decided_us = 0
        self._file = _PinFile(path)

    @classmethod
    def of(cls, config: GatewayConfig) -> Self:
        """The store in the state folder of *config*."""
        identities = {each.name: server_identity(each.server) for each in config.upstreams}
        return cls(config.settings.state_folder / FILE, identities)

    def version(self) -> int:
        """Another number once a person has decided something, in whatever process, but for this very store.

        What gateways note by themselves does not count: two of them would have each other judge for ever. Costs
        microseconds.
        """
        with self._file.opened() as database:
            seen: int = database.execute("PRAGMA data_version").fetchone()[0]
            if seen != self._seen_version:
                self._decided_us = database.execute("SELECT COALESCE(MAX(decided_us), 0) FROM pins").fetchone()[0]
                self._seen_version = seen
            return self._decided_us

    def approved(self, server: str, kind: Kind = Kind.TOOL) -> dict[str, Pin]:
        """What is approved of *server*, by the entries' own names."""
        return self._pins(server, kind, is_approved=True)

    def waiting(self, server: str, kind: Kind = Kind.TOOL) -> dict[str, Pin]:
        """What waits of *server*: for each entry the definition that was seen last."""
        return self._pins(server, kind, is_approved=False)

    def entry(self, server: str, name: str, kind: Kind = Kind.TOOL, *, is_approved: bool) -> JsonObject | None:
        """The definition that is approved, or that waits; None if there is none. Raises PinStoreError."""
        with self._file.opened() as database:
            row = database.execute(
                "SELECT entry FROM pins WHERE server = ? AND tool = ? AND is_approved = ?",
                (self._identity(server, kind), name, is_approved),
            ).fetchone()
        try:
            entry: JsonObject | None = json.loads(row[0]) if row else None
        except ValueError as error:
            raise PinStoreError(f"the definition of {name!r} that was kept of {server} is damaged") from error
        return entry

    def keep(
        self,
        server: str,
        *,
        approve: Sequence[Entry] = (),
        hold: Sequence[Entry] = (),
        forget: Sequence[Entry] = (),
    ) -> None:
        """Note *approve* as approved on first sight, *hold* as waiting, and *forget* as waiting no more."""
        if not (approve or hold or forget):
            return
        with self._file.transaction() as database:
            database.executemany(_APPROVE, [self._row(server, entry, FIRST_SIGHT) for entry in approve])
            database.executemany(_HOLD, [self._row(server, entry, "") for entry in hold])
            database.executemany(_FORGET, [(self._identity(server, entry.kind), entry.remote_name) for entry in forget])

    def approve(self, server: str, tool: str, pin: str, by: str, kind: Kind = Kind.TOOL) -> bool:
        """Approve the definition *pin* of *tool*, by the name that the server gives it; *by* says who.

        False if that is neither what waits nor what is in use: it has changed since somebody looked at it.
        """
        identity = self._identity(server, kind)
        with self._file.transaction() as database:
            row = database.execute(
                "SELECT entry, seen_s FROM pins WHERE server = ? AND tool = ? AND pin = ? ORDER BY is_approved",
                (identity, tool, pin),
            ).fetchone()
            if row is None:
                return False
            database.execute(_FORGET, (identity, tool))
            database.execute(_APPROVE, (identity, tool, pin, *row, by, self._now_us()))
            return True

    def revoke(self, server: str, tool: str, by: str, kind: Kind = Kind.TOOL) -> bool:
        """Have *tool* wait, whatever its definition, until it is approved anew. False if it is not approved."""
        identity = self._identity(server, kind)
        with self._file.transaction() as database:
            row = database.execute(
                "SELECT pin, entry, seen_s FROM pins WHERE server = ? AND tool = ? AND is_approved", (identity, tool)
            ).fetchone()
            if row is None:
                return False
            database.execute("DELETE FROM pins WHERE server = ? AND tool = ?", (identity, tool))
            database.execute(_HOLD, (identity, tool, *row, by, self._now_us()))
            return True

    def close(self) -> None:
        """May be called twice."""
        self._file.close()

    def _pins(self, server: str, kind: Kind, *, is_approved: bool) -> dict[str, Pin]:
        with self._file.opened() as database:
            rows = database.execute(
                "SELECT tool, pin, seen_s, by FROM pins WHERE server = ? AND is_approved = ? ORDER BY tool",
                (self._identity(server, kind), is_approved),
            ).fetchall()
        return {tool: Pin(tool, pin, seen_s, by) for tool, pin, seen_s, by in rows}

    def _row(self, server: str, entry: Entry, by: str) -> tuple[object, ...]:
        raw = json.dumps(entry.raw, sort_keys=True)  # in ASCII: SQLite takes no lone surrogates
        return self._identity(server, entry.kind), entry.remote_name, entry.pin(), raw, self._clock(), by, 0

    def _now_us(self) -> int:
        return int(self._clock() * 1_000_000)

    def _identity(self, server: str, kind: Kind) -> str:
        if server not in self._identities:
            known = ", ".join(sorted(self._identities)) or "none"
            raise BadSettingError(f"there is no server {server!r} in the configuration; there are: {known}")
        identity = self._identities[server]  # which ends with a hash, so that what is added here is no other's
        return identity if kind is Kind.TOOL else f"{identity} {kind.value}"


class _PinFile(SqliteFile):
    holds = "approved tools"
    fault = PinStoreError


def _make(path: Path) -> None:
    """Have the file, and what SQLite puts beside it, readable by its owner alone from its first byte on.

    It comes into being whole, however many begin at once, so that an empty one is one that was lost: SQLite would take
    it for new, and everything for seen for the first time. Raises PinStoreError for that.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            new = Path(scratch) / path.name
            os.close(os.open(new, os.O_CREAT | os.O_RDWR, 0o600))
            _PinFile(new).close()
            with suppress(FileExistsError):  # somebody was quicker
                os.link(new, path)
    if not path.stat().st_size:
        raise PinStoreError(f"{path} is empty; restore it, or remove it to approve everything anew")
    path.chmod(0o600)
