"""A store that goes away and comes back, as PostgreSQL does when its network is cut."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from toolsearch.errors import Kept, StorageError
from toolsearch.storage.storage import Storage


@contextmanager
def outage(storage: Storage) -> Iterator[None]:
    """While the block runs, whatever is asked of *storage* fails, and says when to try again."""

    def away(kept: Kept) -> AbstractContextManager[None]:
        raise StorageError(f"cannot use the {kept.contents}: nobody answers", kept, retry_after_s=2)

    database: Any = storage.database
    database.translated = away
    try:
        yield
    finally:
        del database.translated
