"""All ports in one SQLite file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from toolsearch.errors import StorageError
from toolsearch.storage.sqlite.audit import SqliteAuditLog
from toolsearch.storage.sqlite.contents import SqliteCatalogContents
from toolsearch.storage.sqlite.figures import SqliteFigureLog
from toolsearch.storage.sqlite.file import SqliteFile
from toolsearch.storage.sqlite.keys import SqliteKeyStore
from toolsearch.storage.sqlite.misses import SqliteMissLog
from toolsearch.storage.sqlite.pins import SqlitePins
from toolsearch.storage.sqlite.receipts import SqliteReceiptLog
from toolsearch.storage.sqlite.records import SqliteRecordStore
from toolsearch.storage.sqlite.sessions import SqliteSessionPersistence
from toolsearch.storage.sqlite.usage import SqliteUsageStore

_OF_TENANTS = ("records", "api_keys", "contents", "receipts", "figures", "misses")


class SqliteStorage:
    """A `Storage` in the file at *path*, which is made with its folder where it is missing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.records = SqliteRecordStore(path)
        self.keys = SqliteKeyStore(path)
        self.contents = SqliteCatalogContents(path)
        self.receipts = SqliteReceiptLog(path)
        self.figures = SqliteFigureLog(path)
        self.misses = SqliteMissLog(path)
        self.audit = SqliteAuditLog(path)
        self.usage = SqliteUsageStore(path)
        self._pins = SqlitePins(path)
        self._sessions = SqliteSessionPersistence(path)

    def sessions(self, tenant: str) -> SqliteSessionPersistence:  # noqa: ARG002
        return self._sessions  # to come: of the tenant alone

    def pins(self, tenant: str) -> SqlitePins:  # noqa: ARG002
        return self._pins  # to come: of the tenant alone

    def drop_tenant(self, tenant: str) -> None:
        with self.records.transaction() as database:
            for table in _OF_TENANTS:
                database.execute(f"DELETE FROM {table} WHERE tenant = ?", (tenant,))  # noqa: S608

    def backup(self, path: Path) -> None:
        try:
            with self.records.opened() as database, closing(sqlite3.connect(path)) as copy:
                database.backup(copy)
        except sqlite3.Error as error:
            raise StorageError(f"no backup can be written to {path}: {error}") from error

    def close(self) -> None:
        files: tuple[SqliteFile, ...] = (
            *(self.records, self.keys, self.contents, self.receipts, self.figures, self.misses, self.audit),
            *(self.usage, self._pins, self._sessions),
        )
        for file in files:
            file.close()
