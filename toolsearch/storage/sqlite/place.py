"""A SQLite file, as the place where a service keeps everything."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from toolsearch.errors import StorageError
from toolsearch.storage.copying import OnProgress
from toolsearch.storage.place import State
from toolsearch.storage.sqlite.copies import copy_to_new_file
from toolsearch.storage.sqlite.inspection import inspected, version_at
from toolsearch.storage.sqlite.schema import VERSION
from toolsearch.storage.sqlite.storage import SqliteStorage


class SqlitePlace:
    """A `StorePlace`: the file at *path*. A file is copied whole, so there is no progress to tell of."""

    is_shared = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = str(path)

    def is_new(self) -> bool:
        return not self._path.is_file() or not self._path.stat().st_size

    def require(self) -> None:
        if self.is_new():
            raise StorageError(f"no service keeps anything in {self._path.parent}; name its folder by --data")

    def open(self) -> SqliteStorage:
        return SqliteStorage(self._path)

    def look(self) -> State:
        return State(inspected(self._path), version_at(self._path) == VERSION)

    def back_up(self, to: Path, on_progress: OnProgress) -> None:  # noqa: ARG002  it is one step
        self.require()
        _copy(self._path, to)

    def restore(self, backup: Path, on_progress: OnProgress) -> None:  # noqa: ARG002  it is one step
        for file in (self._path, *self._left_behind()):
            if file.exists():
                raise StorageError(f"{file} exists; move it away, or name another folder by --data")
        _copy(backup, self._path)

    def _left_behind(self) -> list[Path]:
        """What SQLite keeps beside a file, and would take for its own if another file came in its place."""
        return [self._path.with_name(self._path.name + end) for end in ("-wal", "-shm", "-journal")]


def _copy(source: Path, to: Path) -> None:
    try:
        with closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as database:
            copy_to_new_file(database, to)
    except (sqlite3.Error, OSError) as error:
        raise StorageError(f"{source} cannot be copied to {to}: {error}") from error
