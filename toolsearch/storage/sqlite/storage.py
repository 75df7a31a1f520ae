"""All ports in one SQLite file."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from toolsearch.errors import StorageError
from toolsearch.storage.private_files import make_private
from toolsearch.storage.sqlite.audit import SqliteAuditLog
from toolsearch.storage.sqlite.contents import SqliteCatalogContents
from toolsearch.storage.sqlite.copies import copy_to_new_file
from toolsearch.storage.sqlite.figures import SqliteFigureLog
from toolsearch.storage.sqlite.file import SqliteFile
from toolsearch.storage.sqlite.keys import SqliteKeyStore
from toolsearch.storage.sqlite.misses import SqliteMissLog
from toolsearch.storage.sqlite.pins import SqlitePins
from toolsearch.storage.sqlite.receipts import SqliteReceiptLog
from toolsearch.storage.sqlite.records import SqliteRecordStore
from toolsearch.storage.sqlite.sessions import SqliteSessionPersistence
from toolsearch.storage.sqlite.usage import SqliteUsageStore

# What is deleted with a tenant, by the column that names it. The audit stays. So do the counters, which hold no more
# than a number: a tenant of the same name must not get versions that caches or clients know from before.
_OF_TENANT: Final = {
    **dict.fromkeys(("records", "api_keys", "contents", "revisions", "receipts", "figures", "misses"), "tenant"),
    **dict.fromkeys(("pins", "sessions"), "tenant"),
    "usage": "principal",
}


class SqliteStorage:
    """A `Storage` in the file at *path*, which is made with its folder where it is missing, for its owner alone.

    All ports share the connections to it: threads that write take turns, and threads that read wait for nobody.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _ServiceFile(path)
        database = self._file.database
        self.records = SqliteRecordStore(path, _shared=database)
        self.keys = SqliteKeyStore(path, _shared=database)
        self.contents = SqliteCatalogContents(path, _shared=database)
        self.receipts = SqliteReceiptLog(path, _shared=database)
        self.figures = SqliteFigureLog(path, _shared=database)
        self.misses = SqliteMissLog(path, _shared=database)
        self.audit = SqliteAuditLog(path, _shared=database)
        self.usage = SqliteUsageStore(path, _shared=database)

    def sessions(self, tenant: str) -> SqliteSessionPersistence:
        return SqliteSessionPersistence(self.path, tenant=tenant, _shared=self._file.database)

    def pins(self, tenant: str) -> SqlitePins:
        return SqlitePins(self.path, tenant=tenant, _shared=self._file.database)

    def snapshot(self) -> AbstractContextManager[object]:
        return self._file.snapshot()

    def transaction(self) -> AbstractContextManager[object]:
        return self._file.transaction()

    def drop_tenant(self, tenant: str) -> None:
        if not tenant:
            raise ValueError("the service itself cannot be deleted; name a tenant")
        with self._file.transaction() as database:
            for table, column in _OF_TENANT.items():
                database.execute(f"DELETE FROM {table} WHERE {column} = ?", (tenant,))  # noqa: S608

    def backup(self, path: Path) -> None:
        with self._file.reading() as database:
            copy_to_new_file(database, path)

    def close(self) -> None:
        self._file.close()


class _ServiceFile(SqliteFile):
    contents = "data of the service"
    error_class = StorageError
    durability = "FULL"  # what was acknowledged stays

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._translated():
            make_private(path)
        super().__init__(path)
