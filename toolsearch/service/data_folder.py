"""The folder in which a service keeps everything, used by one process at a time."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from toolsearch.errors import StorageError

STORE_FILE: Final = "toolsearch.db"
INDEXES: Final = "indexes"  # a cache, which may be deleted
_LOCK_FILE: Final = "serving.lock"


@contextmanager
def data_folder(data: Path) -> Generator[Path]:
    """Make the folder *data* if it is missing, for its owner alone, and keep other services out of it.

    Raises StorageError if another one uses it: each would miss what the other writes.
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
