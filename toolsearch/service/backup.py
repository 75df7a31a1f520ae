"""Copies of what a service keeps: made while it runs, checked, and put back where nothing is kept yet."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from toolsearch.errors import StorageError
from toolsearch.service.data_folder import STORE_FILE, data_folder
from toolsearch.storage.copying import OnProgress, silent
from toolsearch.storage.opening import place_of
from toolsearch.storage.sqlite.inspection import inspected


def back_up(data: Path, to: Path, *, store: str | None = None, on_progress: OnProgress = silent) -> str:
    """Write a copy of one moment of the service in *data*, or in the database *store*, to the new file *to*.

    Return its state in words. The secret key is not in it. Raises StorageError, and leaves no file, if that fails.
    """
    place_of(store, data / STORE_FILE).back_up(to, on_progress)
    return inspected(to)


def restore(backup: Path, data: Path, *, store: str | None = None, on_progress: OnProgress = silent) -> str:
    """Put the copy *backup* into *data*, or into the database *store*; return its state in words.

    Raises StorageError, and changes nothing, if something is there, if a service is running there, or if the copy is
    damaged or of something else.
    """
    place = place_of(store, data / STORE_FILE)
    if not backup.is_file() or not backup.stat().st_size:
        raise StorageError(f"there is no file {backup}, or nothing in it")
    state = inspected(backup)
    with nullcontext() if place.is_shared else data_folder(data):
        place.restore(backup, on_progress)
    return state
