"""Looks at a SQLite file of ours without changing it, as a check before a start or an upgrade does."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from toolsearch.errors import StorageError
from toolsearch.storage.sqlite.schema import VERSION, UnusableFileError, version_of


def inspected(path: Path) -> str:
    """Return what state the file at *path* is in, in words. Raises StorageError if it cannot be used."""
    version = version_at(path)
    if version is None:
        return f"{path} is not there yet; the first start makes it"
    return f"version {version}" if version == VERSION else f"version {version}; the next start makes it {VERSION}"


def version_at(path: Path) -> int | None:
    """Return the version of the file at *path*, None if there is none. Raises StorageError if it cannot be used."""
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            version = version_of(database)
            damage: str = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    except UnusableFileError as error:
        raise StorageError(f"the contents of {path} {error}") from error
    except sqlite3.Error as error:
        raise StorageError(f"{path} cannot be read: {error}; restore it from a backup") from error
    if damage != "ok":
        raise StorageError(f"{path} is damaged ({damage}); restore it from a backup")
    return version
