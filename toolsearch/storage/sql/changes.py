"""What was written to a SQL database, for the replicas that share it."""

from __future__ import annotations

from collections.abc import Collection

from toolsearch.errors import StorageError
from toolsearch.storage.changes import CONTENTS, PINS, RECORD_KINDS, Change, OnChange, Subscription
from toolsearch.storage.sql import counters
from toolsearch.storage.sql.store import SqlStore

_AT_ONCE = 512  # tenants in one statement


class SqlChangeFeed(SqlStore):
    """A `ChangeFeed` in SQL. Those who write announce it by `Connection.announce`."""

    contents = "versions of what is kept"
    error_class = StorageError

    def follow(self, on_change: OnChange) -> Subscription:
        return self._database.follow(on_change)

    def current(self, tenants: Collection[str]) -> list[Change]:
        wanted, found = sorted(set(tenants)), list[Change]()
        with self._reading() as database:
            for place in range(0, len(wanted), _AT_ONCE):
                part = _padded(wanted[place : place + _AT_ONCE])
                found += [Change(*row) for row in database.execute(_query(len(part)), part)]
        return found


def _padded(tenants: list[str]) -> list[str]:
    """The last one once more until there are 1, 2, 4 and so on: so there are few statements to be prepared."""
    size = 1 << (len(tenants) - 1).bit_length()
    return tenants + tenants[-1:] * (size - len(tenants))


def _query(count: int) -> str:
    tenants = ", ".join(f"?{place}" for place in range(1, count + 1))
    kinds = ", ".join(f"'{kind}'" for kind in sorted(RECORD_KINDS))
    return f"""
        SELECT tenant, kind, id, version FROM records WHERE tenant IN ({tenants}) AND kind IN ({kinds})
        UNION ALL SELECT tenant, '{CONTENTS}', catalog, revision FROM revisions WHERE tenant IN ({tenants})
        UNION ALL SELECT tenant, '{PINS}', '', last FROM counters
        WHERE tenant IN ({tenants}) AND name = '{counters.PINS}'
    """  # noqa: S608
