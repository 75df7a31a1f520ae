"""Where a service keeps everything: the SQLite file in its folder, or a PostgreSQL database by its URL."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Final

from toolsearch.errors import BadSettingError, MissingExtraError
from toolsearch.storage.place import StorePlace
from toolsearch.storage.storage import Storage

SCHEMES: Final = ("postgresql://", "postgres://")


def place_of(url: str | None, file: Path, *, max_connections: int | None = None) -> StorePlace:
    """The database at *url*, or the SQLite file *file* where that is None or empty. Nothing is opened yet.

    Raises BadSettingError for what is no URL of a database, and MissingExtraError. No message has the URL in it, since
    that may have a password.
    """
    if not url:
        from toolsearch.storage.sqlite.place import SqlitePlace

        return SqlitePlace(file)
    if not url.startswith(SCHEMES):
        raise BadSettingError("the store is no URL that begins with postgresql://; leave it out to use SQLite")
    if importlib.util.find_spec("psycopg_pool") is None:
        raise MissingExtraError("a store in PostgreSQL", "postgres")
    from toolsearch.storage.postgres.place import PostgresPlace

    return PostgresPlace(url, max_connections=max_connections)


def open_storage(url: str | None, file: Path, *, max_connections: int | None = None) -> Storage:
    """Open what `place_of` gives; a database by up to *max_connections* at once. Raises StorageError if it cannot be
    used.
    """
    return place_of(url, file, max_connections=max_connections).open()
