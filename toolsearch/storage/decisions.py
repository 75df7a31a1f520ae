"""The version of people's decisions about approvals, for programs that start often: nothing heavy is imported here."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

APPROVALS_FILE: Final = "trust.db"  # in the state folder of a gateway
PINS_COUNTER: Final = "pins"
# A file without its tables is refused, since its approvals have been lost.
PINS_VERSION: Final = f"""
SELECT coalesce((SELECT last FROM counters WHERE tenant = ?1 AND name = '{PINS_COUNTER}'), 0),
    EXISTS (SELECT 1 FROM pins WHERE tenant = ?1), EXISTS (SELECT 1 FROM audit WHERE tenant = ?1)
"""  # noqa: S608


def decisions_version(path: Path) -> int:
    """`PinPersistence.version` of the file at *path*. Raises sqlite3.Error if it is damaged or none of ours."""
    with closing(sqlite3.connect(path)) as database:
        if database.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError(f"{path.name} is damaged")
        version: int = database.execute(PINS_VERSION, ("",)).fetchone()[0]
    return version
