"""Copies of SQLite files, made while others write."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from toolsearch.storage.private_files import make_private


def copy_to_new_file(database: sqlite3.Connection, path: Path) -> None:
    """Write what *database* has at this moment to *path*: complete or not at all, its owner's alone, without a log.

    The copy is read through before it gets its name. Raises sqlite3.Error, and OSError, which is FileExistsError if
    there is something at *path*.
    """
    if path.exists():
        raise FileExistsError(f"{path} exists; name another file")
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        new = Path(scratch) / path.name
        make_private(new)
        with closing(sqlite3.connect(new, isolation_level=None)) as copy:
            database.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, and no write-ahead log beside it
            damage = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if damage != "ok":
            raise sqlite3.DatabaseError(f"what would be copied is damaged: {damage}")
        _to_disk(new)
        new.rename(path)
    _to_disk(path.parent)


def _to_disk(path: Path) -> None:
    """Wait until the file, or the names in the folder, are safe from a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
