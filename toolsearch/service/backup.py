"""Copies of what a service keeps: made while it runs, checked, and put back into an empty folder."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from toolsearch.errors import StorageError
from toolsearch.service.data_folder import STORE_FILE, data_folder
from toolsearch.storage.sqlite.copies import copy_to_new_file
from toolsearch.storage.sqlite.inspection import inspected


def back_up(data: Path, to: Path) -> str:
    """Write a copy of one moment of the service in *data* to the new file *to*; return its state in words.

    The secret key is not in it. Raises StorageError, and leaves no file, if that fails.
    """
    store = data / STORE_FILE
    if not store.is_file():
        raise StorageError(f"no service keeps anything in {data}; name its folder by --data")
    _copy(store, to)
    return inspected(to)


def restore(backup: Path, data: Path) -> str:
    """Put the copy *backup* into *data*, where there must be no store yet; return its state in words.

    Raises StorageError, and changes nothing, if there is one, if a service is running there, or if the copy is damaged
    or of something else.
    """
    if not backup.is_file() or not backup.stat().st_size:
        raise StorageError(f"there is no file {backup}, or nothing in it")
    state = inspected(backup)
    with data_folder(data):
        store = data / STORE_FILE
        for file in (store, *_left_by(store)):
            if file.exists():
                raise StorageError(f"{file} exists; move it away, or name another folder by --data")
        _copy(backup, store)
    return state


def _copy(source: Path, to: Path) -> None:
    try:
        with closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as database:
            copy_to_new_file(database, to)
    except (sqlite3.Error, OSError) as error:
        raise StorageError(f"{source} cannot be copied to {to}: {error}") from error


def _left_by(store: Path) -> list[Path]:
    """What SQLite keeps beside a file, and would take for its own if another file came in its place."""
    return [store.with_name(store.name + end) for end in ("-wal", "-shm", "-journal")]
