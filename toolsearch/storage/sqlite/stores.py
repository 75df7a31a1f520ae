"""Data of one kind in a SQLite file of their own, as the library and the gateway keep them."""

from __future__ import annotations

from pathlib import Path

from toolsearch.storage.sql.audit import SqlAuditLog
from toolsearch.storage.sql.sessions import SqlSessionPersistence
from toolsearch.storage.sql.usage import SqlUsageStore
from toolsearch.storage.sqlite.file import SqliteFile


class SqliteAuditLog(SqliteFile, SqlAuditLog):
    """An `AuditLog` in one SQLite file."""


class SqliteUsageStore(SqliteFile, SqlUsageStore):
    """One SQLite file. Of processes that share it, each adds what it sees, and reads what others saw when it starts."""


class SqliteSessionPersistence(SqliteFile, SqlSessionPersistence):
    """A `SessionPersistence` in one SQLite file. Several processes may share it.

    *tenant* is whose sessions these are in a service for many. Each tenant has ids of its own.
    """

    def __init__(self, path: str | Path, *, tenant: str = "") -> None:
        super().__init__(path)
        self._tenant = tenant
