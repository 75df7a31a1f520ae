"""Everything that a service keeps in one SQL database, as one object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar, Final

from toolsearch.errors import Kept
from toolsearch.storage import pins, sql, usage
from toolsearch.storage.activity import FigureLog, MissLog, ReceiptLog
from toolsearch.storage.audit import AuditLog
from toolsearch.storage.contents import CatalogContents
from toolsearch.storage.keys import KeyStore
from toolsearch.storage.pins import SqlPins
from toolsearch.storage.records import RecordStore
from toolsearch.storage.replicas import CONTENTS, DROPPED, PINS, RECORD_KINDS, Change, Leases, OnChange, Subscription
from toolsearch.storage.sessions import SqlSessionPersistence
from toolsearch.storage.sql import Database, DatabaseConnection, SqlStore, StoreLoad
from toolsearch.storage.usage import SqlUsageStore
from toolsearch_indexes.vector_store import VectorStore

_AT_ONCE = 512  # tenants in one statement


class ReplicaFeed(SqlStore):
    """Tells what replicas write. Those who write announce it by `DatabaseConnection.announce`."""

    kept = Kept.DATA

    def follow(self, on_change: OnChange) -> Subscription:
        """Call *on_change*, in another thread, with each change that any replica commits from now on, this one too.

        None: some may have been missed. It must return soon.
        """
        return self._database.follow(on_change)

    def current(self, tenants: Collection[str]) -> list[Change]:
        """What is there now of *tenants*, of records, contents and approvals, with the versions of this moment."""
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
        WHERE tenant IN ({tenants}) AND name = '{sql.PINS}'
    """  # noqa: S608


# What is deleted with a tenant, by the column that names it. The audit stays. So do the counters, which hold no more
# than a number: a tenant of the same name must not get versions that caches or clients know from before.
_OF_TENANT: Final = {
    **dict.fromkeys(("records", "api_keys", "contents", "revisions", "receipts", "figures", "misses"), "tenant"),
    **dict.fromkeys(("pins", "sessions"), "tenant"),
    "usage": "principal",
}


class Storage(ABC):
    """Every store over one database, with shared connections. `close` closes them all.

    is_shared  whether several processes may use the database at the same time
    vectors    what replicas have embedded, for all of them; None where one process has a file of its own for that
    """

    is_shared: ClassVar[bool]

    def __init__(self, database: Database, leases: Leases, vectors: VectorStore | None = None) -> None:
        self.database = database
        self.leases = leases
        self.vectors = vectors
        self._whole = _Whole(database)
        self.changes = ReplicaFeed(database)
        self.records = RecordStore(database)
        self.keys = KeyStore(database)
        self.contents = CatalogContents(database)
        self.receipts = ReceiptLog(database)
        self.figures = FigureLog(database)
        self.misses = MissLog(database)
        self.audit = AuditLog(database)
        self.usage = SqlUsageStore(database)

    def sessions(self, tenant: str) -> SqlSessionPersistence:
        """The sessions of *tenant* alone."""
        return SqlSessionPersistence(self.database, tenant=tenant)

    def pins(self, tenant: str) -> SqlPins:
        """The approvals of *tenant* alone."""
        return SqlPins(self.database, tenant=tenant)

    def reading(self) -> AbstractContextManager[DatabaseConnection]:
        """To read rows of whichever store, in plain SQL."""
        return self._whole.reading()

    def snapshot(self) -> AbstractContextManager[DatabaseConnection]:
        """Everything that this thread reads within the block, through whichever store, is of one moment.

        Nothing can be written within it. Keep to plain code in one thread, without an ``await``.
        """
        return self._whole.snapshot()

    def transaction(self) -> AbstractContextManager[DatabaseConnection]:
        """Everything that this thread writes within the block, through whichever store, is written all or nothing.

        Others write before it or after it, so keep it short, and without an ``await``. An error of a store undoes what
        that call wrote; one that leaves the block undoes everything.
        """
        return self._whole.transaction()

    def load(self) -> StoreLoad:
        """How it is doing, without asking it."""
        return self.database.load()

    def drop_tenant(self, tenant: str) -> None:
        """Delete everything that belongs to *tenant*, all or nothing. The audit stays.

        Raises ValueError for "", whose records are those of the service itself.
        """
        if not tenant:
            raise ValueError("the service itself cannot be deleted; name a tenant")
        with self._whole.transaction() as database:
            for counter in (sql.SESSIONS, sql.RECORDS, sql.CONTENTS):
                sql.next_version(database, tenant, counter)
            for name in (usage.LOCK, pins.LOCK):
                database.lock(name, tenant)
            for table, column in _OF_TENANT.items():
                database.execute(f"DELETE FROM {table} WHERE {column} = ?", (tenant,))  # noqa: S608
            database.announce(tenant, DROPPED)

    @abstractmethod
    def backup(self, path: Path) -> None:
        """Write a copy of one moment to a new file, while others go on reading and writing.

        Raises StorageError, and leaves what is there, if there is a file already.
        """

    def close(self) -> None:
        """May be called twice."""
        self.database.close()


class _Whole(SqlStore):
    kept = Kept.DATA
    durability = "FULL"  # what was acknowledged stays

    def reading(self) -> AbstractContextManager[DatabaseConnection]:
        return self._reading()

    def snapshot(self) -> AbstractContextManager[DatabaseConnection]:
        return self._snapshot()

    def transaction(self) -> AbstractContextManager[DatabaseConnection]:
        return self._transaction()
