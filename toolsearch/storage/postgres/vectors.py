"""Vectors by key in PostgreSQL, so that no replica embeds a text that another one has embedded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from toolsearch.errors import VectorStoreError
from toolsearch.storage.sql.store import SqlStore

_AT_ONCE: Final = 1_000  # some MB, as a vector has some kB
_GET: Final = "SELECT key, value FROM vectors WHERE key = ANY(?)"
_PUT: Final = "INSERT INTO vectors VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"


class PostgresVectors(SqlStore):
    """A `VectorStore` that replicas share. Raises VectorStoreError, which is an IndexStoreError."""

    contents = "vectors"
    error_class = VectorStoreError

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found = dict[bytes, bytes]()
        for place in range(0, len(keys), _AT_ONCE):
            with self._reading() as database:
                found.update(database.execute(_GET, (list(keys[place : place + _AT_ONCE]),)).fetchall())
        return found

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """In the order of the keys, so that two replicas that embed the same texts never wait for each other."""
        with self._transaction() as database:
            database.executemany(_PUT, sorted(values.items()))

    def close(self) -> None:
        """Whoever opened the database closes it."""
