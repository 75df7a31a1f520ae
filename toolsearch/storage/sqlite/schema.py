"""How SQLite writes the tables, the steps that bring older files up to date, and a look that changes nothing."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from toolsearch.errors import StorageError
from toolsearch.storage.tables import SqlDialect, first_tables

_DIALECT: Final[SqlDialect] = {
    "name": "TEXT",
    "number": "INTEGER",
    "real": "REAL",
    "flag": "INTEGER",
    "serial": "INTEGER PRIMARY KEY",
    "clustered": " WITHOUT ROWID",
}

_FIRST: Final = (
    *first_tables(_DIALECT),
    # All fingerprints are read when a catalog is opened.
    "CREATE INDEX contents_fingerprints ON contents (tenant, catalog, name, source, fingerprint)",
)

_STEPS: Final = (_FIRST,)
VERSION: Final = len(_STEPS)
_TABLES: Final = frozenset(re.findall(r"CREATE TABLE (\w+)", " ".join(_FIRST)))


class UnusableFileError(Exception):
    """The file is not ours, is of a newer version, or lacks a table; the message says which."""


def migrate(database: sqlite3.Connection) -> None:
    """Bring the file up to date, within the transaction that is open. Raises UnusableFileError."""
    for step in _STEPS[version_of(database) :]:
        for statement in step:
            database.execute(statement)
    database.execute(f"PRAGMA user_version = {VERSION}")


def version_of(database: sqlite3.Connection) -> int:
    """Return the version of a file that can be used as it is, or be migrated. Raises UnusableFileError."""
    version: int = database.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise UnusableFileError(
            f"were written by another version ({version}, not {VERSION}); move the file away to start without them, or "
            "use the newer toolsearch that wrote them"
        )
    tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if version == VERSION and not tables >= _TABLES:
        missing = ", ".join(sorted(_TABLES - tables))
        raise UnusableFileError(
            f"are damaged: there is no table {missing}; restore the file from a backup, or move it away"
        )
    if tables and not tables & _TABLES:
        raise UnusableFileError("cannot be kept there: it is a database of something else; name another file")
    return version


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
