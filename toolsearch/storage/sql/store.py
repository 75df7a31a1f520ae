"""The base of what keeps one kind of data in a SQL database, with our own errors."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import ClassVar

from toolsearch.errors import StorageError
from toolsearch.storage.sql.database import Connection, Database, Durability


class SqlStore:
    """A subclass says in *contents* what it keeps, in the plural, for messages, in *error_class* which error it raises,
    and in *durability* what may be lost of the last second. Objects of several subclasses may use one database.
    """

    contents: ClassVar[str]
    error_class: ClassVar[type[StorageError]]
    durability: ClassVar[Durability] = "NORMAL"

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def _reading(self) -> Generator[Connection]:
        """A connection of this thread alone, to read from."""
        with self._translated(), self._database.reading() as database:
            yield database

    @contextmanager
    def _snapshot(self) -> Generator[Connection]:
        """The same; all that this thread reads within the block, through whichever object, is of one moment."""
        with self._translated(), self._database.snapshot() as database:
            yield database

    @contextmanager
    def _transaction(self) -> Generator[Connection]:
        """A connection for writing, within one transaction."""
        with self._translated(), self._database.transaction(self.durability) as database:
            yield database

    @contextmanager
    def _statement(self) -> Generator[Connection]:
        """A connection for one statement that writes."""
        with self._translated(), self._database.statement(self.durability) as database:
            yield database

    @contextmanager
    def _translated(self) -> Generator[None]:
        with self._database.translated(self.contents, self.error_class):
            yield
