"""A PostgreSQL database, as the place where services keep everything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from toolsearch.errors import StorageError
from toolsearch.storage.copying import OnProgress, copy_tables
from toolsearch.storage.place import State
from toolsearch.storage.postgres.connecting import connected
from toolsearch.storage.postgres.copies import filling_database, reading_database
from toolsearch.storage.postgres.database import MAX_CONNECTIONS
from toolsearch.storage.postgres.inspection import Inspection, inspected
from toolsearch.storage.postgres.storage import PostgresStorage
from toolsearch.storage.postgres.urls import shown
from toolsearch.storage.sqlite.copies import reading_file, writing_new_file


class PostgresPlace:
    """A `StorePlace`. Raises BadSettingError if *url* cannot be read."""

    is_shared = True

    def __init__(self, url: str, *, max_connections: int | None = None) -> None:
        self._url = url
        self._max_connections = max_connections or MAX_CONNECTIONS
        self.name = shown(url)

    def is_new(self) -> bool:
        return not inspected(self._url).version

    def require(self) -> None:
        if self.is_new():
            raise StorageError(f"no service keeps anything in {self.name}; name another database by --store")

    def open(self) -> PostgresStorage:
        with connected(self._url, "start"):
            pass  # a wrong password is told at once, while the pool of connections tries until its time is over
        return PostgresStorage(self._url, max_connections=self._max_connections)

    def look(self) -> State:
        found = inspected(self._url)
        return State(found.state, found.is_current, [("pgvector", _vector(found))], list(warnings_of(found)))

    def back_up(self, to: Path, on_progress: OnProgress) -> None:
        with reading_database(self._url) as source, writing_new_file(to) as target:
            copy_tables(source, target, on_progress)

    def restore(self, backup: Path, on_progress: OnProgress) -> None:
        with reading_file(backup) as source, filling_database(self._url) as target:
            copy_tables(source, target, on_progress)


def _vector(found: Inspection) -> str:
    if found.vector:
        return f"version {found.vector}"
    if found.available_vector:
        return f"version {found.available_vector} can be had, by CREATE EXTENSION vector"
    return "not there, and only needed for catalogs that do not fit into memory"


def warnings_of(found: Inspection) -> Iterator[tuple[str, str]]:
    if found.is_remote and not found.is_encrypted:
        told = "the connection to PostgreSQL is not encrypted; add sslmode=verify-full to the URL"
        yield "store's encryption", told
