"""Data of one kind in a SQLite file of its own, as the library and the gateway keep it.

A damaged file of approvals never counts as a new one.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import ClassVar

from filelock import FileLock

from toolsearch.errors import Kept, StorageError
from toolsearch.storage.audit import AuditLog
from toolsearch.storage.files import make_private
from toolsearch.storage.pins import SqlPins
from toolsearch.storage.sessions import Message, SqlMessages, SqlSessionPersistence
from toolsearch.storage.sqlite.database import SqliteConnection, SqliteFile
from toolsearch.storage.sqlite.schema import UnusableFileError
from toolsearch.storage.usage import SqlUsageStore


class SqliteAuditLog(SqliteFile, AuditLog):
    """An `AuditLog` in the file at *path*, which is its owner's alone, and so is the folder if it is made."""

    def __init__(self, path: str | Path) -> None:
        with self._opening(path):
            make_private(Path(path))
        super().__init__(path)


class SqliteUsageStore(SqliteFile, SqlUsageStore):
    """One SQLite file. Of processes that share it, each adds what it sees, and reads what others saw when it starts."""


class SqliteSessionPersistence(SqliteFile, SqlSessionPersistence):
    """A `SessionPersistence` in one SQLite file. Several processes may share it.

    *tenant* is whose sessions these are in a service for many. Each tenant has ids of its own.
    """

    def __init__(self, path: str | Path, *, tenant: str = "") -> None:
        super().__init__(path)
        self._tenant = tenant


class SqliteMessages(SqliteFile, SqlMessages[Message]):
    """A `MessageStore` in one file, of messages that *write* makes a text of, and *read* brings back."""

    def __init__(self, path: str | Path, *, write: Callable[[Message], str], read: Callable[[str], Message]) -> None:
        super().__init__(path)
        self._write = write
        self._read = read


_REMEDY = "restore it from a backup, or remove it to approve everything anew"


class _PinFile(SqliteFile):
    kept: ClassVar[Kept] = Kept.PINS
    durability = SqlPins.durability


class SqlitePins(_PinFile, SqlPins):
    """A `PinPersistence` in the file at *path*, which is its owner's alone, and so is the folder if it is made.

    *tenant* is whose approvals these are in a service for many.
    """

    def __init__(self, path: Path, *, tenant: str = "") -> None:
        self._tenant = tenant
        with self._opening(path):
            _make(path)
        super().__init__(path)

    def copy_to(self, path: Path) -> None:
        """Copy the whole file, even while others write to it. Raises StorageError."""
        with self._translated(), self.file.reading() as database, closing(sqlite3.connect(path)) as copy:
            database.backup(copy)

    def _prepare(self, database: SqliteConnection) -> None:
        """Refuse a file without its table: `_make` writes that at once, so the approvals have been lost."""
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'pins'").fetchall():
            raise UnusableFileError(f"are lost, there is no table of them; {_REMEDY}")
        if database.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
            raise UnusableFileError(f"are damaged; {_REMEDY}")
        super()._prepare(database)


def _make(path: Path) -> None:
    """Create the file, with its table, so that only its owner can read it and what SQLite puts beside it.

    It is put in its place when it is complete, even if several processes create it at once. So an empty file is one
    that lost its contents. SQLite would take it for a new one, and every tool for one seen for the first time; that is
    a StorageError.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            new = Path(scratch) / path.name
            make_private(new)
            _PinFile(new).close()
            _put_in_place(new, path)
    if not path.stat().st_size:
        raise StorageError(f"{path} is empty; restore it, or remove it to approve everything anew", Kept.PINS)
    path.chmod(0o600)


def _put_in_place(new: Path, path: Path) -> None:
    """Let the complete file *new* be the one at *path*, unless another process was faster."""
    try:
        os.link(new, path)
    except FileExistsError:
        return
    except (AttributeError, OSError):  # no hard links, as on exFAT, some network shares and Android
        with FileLock(path.with_name(f".{path.name}.lock"), mode=0o600):
            if not path.exists():
                new.replace(path)
