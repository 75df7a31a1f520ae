"""Numbers that only grow, for versions: of each tenant its own, kept even when the tenant is deleted."""

from __future__ import annotations

import sqlite3

_NEXT = "INSERT INTO counters VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET last = last + 1 RETURNING last"
_LAST = "SELECT last FROM counters WHERE tenant = ? AND name = ?"


def following(database: sqlite3.Connection, tenant: str, name: str) -> int:
    """Return the next number, within the transaction that uses it."""
    number: int = database.execute(_NEXT, (tenant, name)).fetchone()[0]
    return number


def last(database: sqlite3.Connection, tenant: str, name: str) -> int:
    """Return the number that was given out last, 0 if none was."""
    row = database.execute(_LAST, (tenant, name)).fetchone()
    return row[0] if row else 0
