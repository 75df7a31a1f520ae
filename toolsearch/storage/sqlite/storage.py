"""All ports in one SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from toolsearch.errors import StorageError
from toolsearch.storage.leases import ProcessLeases
from toolsearch.storage.private_files import make_private
from toolsearch.storage.sql.storage import SqlStorage
from toolsearch.storage.sqlite.copies import copy_to_new_file
from toolsearch.storage.sqlite.file import SqliteFile


class SqliteStorage(SqlStorage):
    """A `Storage` in the file at *path*, which is made with its folder where it is missing, for its owner alone.

    All ports share the connections to it: threads that write take turns, and threads that read wait for nobody.
    """

    is_shared = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _ServiceFile(path)
        super().__init__(self._file.file, ProcessLeases())

    def backup(self, path: Path) -> None:
        with self._file.copying() as database:
            copy_to_new_file(database, path)


class _ServiceFile(SqliteFile):
    contents = "data of the service"
    error_class = StorageError

    def __init__(self, path: Path) -> None:
        with self._opening(path):
            make_private(path)
        super().__init__(path)

    @contextmanager
    def copying(self) -> Generator[sqlite3.Connection]:
        with self._translated(), self.file.reading() as database:
            yield database
