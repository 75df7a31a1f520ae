"""Everything that a service keeps, as one object: each port, of whichever database."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from toolsearch.storage.audit import AuditLog
from toolsearch.storage.changes import ChangeFeed
from toolsearch.storage.contents import CatalogContents
from toolsearch.storage.figures import FigureLog
from toolsearch.storage.keys import KeyStore
from toolsearch.storage.leases import Leases
from toolsearch.storage.load import StoreLoad
from toolsearch.storage.misses import MissLog
from toolsearch.storage.pins import PinPersistence
from toolsearch.storage.receipts import ReceiptLog
from toolsearch.storage.records import RecordStore
from toolsearch.storage.sessions import SharedSessions
from toolsearch.storage.usage import UsageStore
from toolsearch_indexes.vector_store import VectorStore


class Storage(Protocol):
    """The ports of one database. `close` closes them all.

    is_shared  whether several processes may use it at the same time
    """

    @property
    def is_shared(self) -> bool: ...

    @property
    def changes(self) -> ChangeFeed: ...
    @property
    def records(self) -> RecordStore: ...
    @property
    def keys(self) -> KeyStore: ...
    @property
    def contents(self) -> CatalogContents: ...
    @property
    def receipts(self) -> ReceiptLog: ...
    @property
    def figures(self) -> FigureLog: ...
    @property
    def misses(self) -> MissLog: ...
    @property
    def audit(self) -> AuditLog: ...
    @property
    def usage(self) -> UsageStore: ...
    @property
    def leases(self) -> Leases: ...
    @property
    def vectors(self) -> VectorStore | None:
        """What replicas have embedded, for all of them; None where one process has a file of its own for that."""
        ...

    def sessions(self, tenant: str) -> SharedSessions:
        """The sessions of *tenant* alone."""
        ...

    def pins(self, tenant: str) -> PinPersistence:
        """The approvals of *tenant* alone."""
        ...

    def snapshot(self) -> AbstractContextManager[object]:
        """Everything that this thread reads within the block, through whichever port, is of one moment.

        Nothing can be written within it. Keep to plain code in one thread, without an ``await``.
        """
        ...

    def transaction(self) -> AbstractContextManager[object]:
        """Everything that this thread writes within the block, through whichever port, is written all or nothing.

        Others write before it or after it, so keep it short, and without an ``await``. An error of a port undoes what
        that call wrote; one that leaves the block undoes everything.
        """
        ...

    def load(self) -> StoreLoad:
        """How it is doing, without asking it."""
        ...

    def drop_tenant(self, tenant: str) -> None:
        """Delete everything that belongs to *tenant*, all or nothing. The audit stays.

        Raises ValueError for "", whose records are those of the service itself.
        """
        ...

    def backup(self, path: Path) -> None:
        """Write a copy of one moment to a new file, while others go on reading and writing.

        Raises StorageError, and leaves what is there, if there is a file already.
        """
        ...

    def close(self) -> None:
        """May be called twice."""
        ...
