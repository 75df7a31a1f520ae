"""Numbers that only grow, for versions: of each tenant its own, kept even when the tenant is deleted."""

from __future__ import annotations

from typing import Final

from toolsearch.storage.sql.database import Connection

SESSIONS: Final = "sessions"  # that were made
RECORDS: Final = "records"  # writings
CONTENTS: Final = "contents"  # changes of catalogs
PINS: Final = "pins"  # decisions about what servers list

_NEXT = """
INSERT INTO counters VALUES (?, ?, 1) ON CONFLICT (tenant, name) DO UPDATE SET last = counters.last + 1
RETURNING last
"""


def following(database: Connection, tenant: str, name: str) -> int:
    """Return the next number, within the transaction that uses it, and let nobody else get one until that ends."""
    number: int = database.execute(_NEXT, (tenant, name)).fetchone()[0]
    return number
