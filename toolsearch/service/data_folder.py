"""The folder in which a service keeps everything, used by one process at a time; copies of it, made while it runs."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from toolsearch.errors import StorageError
from toolsearch.storage.opening import place_of
from toolsearch.storage.place import OnProgress, silent
from toolsearch.storage.sqlite.schema import inspected

STORE_FILE: Final = "toolsearch.db"
INDEXES: Final = "indexes"  # a cache; it may be deleted
_LOCK_FILE: Final = "serving.lock"


@contextmanager
def data_folder(data: Path) -> Generator[Path]:
    """Make the folder *data* if it is missing, for its owner alone, and lock out other services.

    Raises StorageError if another service uses it, since each would miss the other's writes.
    """
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(data / _LOCK_FILE, timeout=0, mode=0o600)
        lock.acquire()
    except FileExistsError as error:
        raise StorageError(f"{data} is not a folder; name another one by --data") from error
    except Timeout as error:
        raise StorageError(f"another process serves {data}; end it, or name another folder by --data") from error
    except OSError as error:
        raise StorageError(f"the folder {data} cannot be used: {error.strerror}") from error
    try:
        yield data
    finally:
        lock.release()


def back_up(data: Path, to: Path, *, store: str | None = None, on_progress: OnProgress = silent) -> str:
    """Write a consistent copy of the service in *data*, or in the database *store*, to the new file *to*.

    Return its state in words. The secret key is not in it. Raises StorageError, and leaves no file, if that fails.
    """
    place_of(store, data / STORE_FILE).back_up(to, on_progress)
    return inspected(to)


def restore(backup: Path, data: Path, *, store: str | None = None, on_progress: OnProgress = silent) -> str:
    """Put the copy *backup* into *data*, or into the database *store*; return its state in words.

    Raises StorageError, and changes nothing, if the place is not empty, if a service is running there, or if the copy
    is damaged or not a service's.
    """
    place = place_of(store, data / STORE_FILE)
    if not backup.is_file() or not backup.stat().st_size:
        raise StorageError(f"the file {backup} is missing or empty; name a backup of 'toolsearch backup'")
    state = inspected(backup)
    with nullcontext() if place.is_shared else data_folder(data):
        place.restore(backup, on_progress)
    return state
