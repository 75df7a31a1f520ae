"""All ports in one SQL database."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

from toolsearch.errors import StorageError
from toolsearch.storage.changes import DROPPED
from toolsearch.storage.leases import Leases
from toolsearch.storage.load import StoreLoad
from toolsearch.storage.sql import counters, pins, usage
from toolsearch.storage.sql.audit import SqlAuditLog
from toolsearch.storage.sql.changes import SqlChangeFeed
from toolsearch.storage.sql.contents import SqlCatalogContents
from toolsearch.storage.sql.database import Connection, Database
from toolsearch.storage.sql.figures import SqlFigureLog
from toolsearch.storage.sql.keys import SqlKeyStore
from toolsearch.storage.sql.misses import SqlMissLog
from toolsearch.storage.sql.pins import SqlPins
from toolsearch.storage.sql.receipts import SqlReceiptLog
from toolsearch.storage.sql.records import SqlRecordStore
from toolsearch.storage.sql.sessions import SqlSessionPersistence
from toolsearch.storage.sql.store import SqlStore
from toolsearch.storage.sql.usage import SqlUsageStore
from toolsearch_indexes.vector_store import VectorStore

# What is deleted with a tenant, by the column that names it. The audit stays. So do the counters, which hold no more
# than a number: a tenant of the same name must not get versions that caches or clients know from before.
_OF_TENANT: Final = {
    **dict.fromkeys(("records", "api_keys", "contents", "revisions", "receipts", "figures", "misses"), "tenant"),
    **dict.fromkeys(("pins", "sessions"), "tenant"),
    "usage": "principal",
}


class SqlStorage:
    """A `Storage` in *database*, but for how it is copied. All ports share its connections."""

    def __init__(self, database: Database, leases: Leases, vectors: VectorStore | None = None) -> None:
        self.database = database
        self.leases = leases
        self.vectors = vectors
        self._whole = _Whole(database)
        self.changes = SqlChangeFeed(database)
        self.records = SqlRecordStore(database)
        self.keys = SqlKeyStore(database)
        self.contents = SqlCatalogContents(database)
        self.receipts = SqlReceiptLog(database)
        self.figures = SqlFigureLog(database)
        self.misses = SqlMissLog(database)
        self.audit = SqlAuditLog(database)
        self.usage = SqlUsageStore(database)

    def sessions(self, tenant: str) -> SqlSessionPersistence:
        return SqlSessionPersistence(self.database, tenant=tenant)

    def pins(self, tenant: str) -> SqlPins:
        return SqlPins(self.database, tenant=tenant)

    def reading(self) -> AbstractContextManager[Connection]:
        """To read rows of whichever port, in plain SQL."""
        return self._whole.reading()

    def snapshot(self) -> AbstractContextManager[Connection]:
        return self._whole.snapshot()

    def transaction(self) -> AbstractContextManager[Connection]:
        return self._whole.transaction()

    def load(self) -> StoreLoad:
        return self.database.load()

    def drop_tenant(self, tenant: str) -> None:
        if not tenant:
            raise ValueError("the service itself cannot be deleted; name a tenant")
        with self._whole.transaction() as database:
            for counter in (counters.SESSIONS, counters.RECORDS, counters.CONTENTS):
                counters.following(database, tenant, counter)
            for name in (usage.LOCK, pins.LOCK):
                database.lock(name, tenant)
            for table, column in _OF_TENANT.items():
                database.execute(f"DELETE FROM {table} WHERE {column} = ?", (tenant,))  # noqa: S608
            database.announce(tenant, DROPPED)

    def close(self) -> None:
        self.database.close()


class _Whole(SqlStore):
    contents = "data of the service"
    error_class = StorageError
    durability = "FULL"  # what was acknowledged stays

    def reading(self) -> AbstractContextManager[Connection]:
        return self._reading()

    def snapshot(self) -> AbstractContextManager[Connection]:
        return self._snapshot()

    def transaction(self) -> AbstractContextManager[Connection]:
        return self._transaction()
