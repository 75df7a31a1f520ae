"""All ports in one PostgreSQL database, which replicas share."""

from __future__ import annotations

from pathlib import Path

from toolsearch.errors import StorageError
from toolsearch.storage.copying import copy_tables
from toolsearch.storage.postgres.copies import reading_database
from toolsearch.storage.postgres.database import MAX_CONNECTIONS, PostgresDatabase
from toolsearch.storage.postgres.failures import translated
from toolsearch.storage.postgres.leases import PostgresLeases
from toolsearch.storage.postgres.vectors import PostgresVectors
from toolsearch.storage.sql.storage import SqlStorage
from toolsearch.storage.sqlite.copies import writing_new_file


class PostgresStorage(SqlStorage):
    """A `Storage` in the database at *url*, as ``postgresql://user@host/name``, in a schema named ``toolsearch``.

    Raises StorageError if it cannot be reached, or has tables of a newer version that this one cannot use.
    """

    is_shared = True

    def __init__(self, url: str, *, max_connections: int = MAX_CONNECTIONS) -> None:
        with translated("data of the service", StorageError):
            database = PostgresDatabase(url, max_connections=max_connections)
        super().__init__(database, PostgresLeases(database), PostgresVectors(database))
        self._url = url

    def backup(self, path: Path) -> None:
        """Over a connection of its own, since it may take longer than a request. The copy is a SQLite file."""
        with reading_database(self._url) as source, writing_new_file(path) as target:
            copy_tables(source, target)
