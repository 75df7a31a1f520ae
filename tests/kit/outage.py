"""A store that goes away and comes back, as PostgreSQL does when its network is cut."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from toolsearch.errors import StorageError
from toolsearch.storage.storage import Storage


@contextmanager
def outage(storage: Storage) -> Iterator[None]:
    """While the block runs, whatever is asked of *storage* fails, and says when to try again."""

    def away(contents: str, error_class: type[StorageError]) -> AbstractContextManager[None]:
        raise error_class(f"cannot use the {contents}: nobody answers", retry_after_s=2)

    database: Any = storage.database
    database.translated = away
    try:
        yield
    finally:
        del database.translated
