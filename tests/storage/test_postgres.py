"""PostgreSQL: what each port owes, on every version that is there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import storage_contracts as contracts
from tests.kit.clock import Clock
from tests.kit.postgres import PostgresServer
from toolsearch.service.catalogs.imports.servers import KeptListings
from toolsearch.storage.activity import FigureLog, MissLog, ReceiptLog
from toolsearch.storage.audit import AuditLog
from toolsearch.storage.contents import CatalogContents
from toolsearch.storage.keys import KeyStore
from toolsearch.storage.pins import PinPersistence
from toolsearch.storage.postgres.place import PostgresStorage
from toolsearch.storage.records import RecordStore
from toolsearch.storage.sessions import MessageStore, SessionPersistence, SqlMessages
from toolsearch.storage.sqlite.place import SqliteStorage
from toolsearch.storage.storage import Storage
from toolsearch.storage.usage import UsageStore
from toolsearch_indexes.vector_store import VectorStore


class OnPostgres:
    @pytest.fixture(autouse=True)
    def _opened(self, any_postgres: PostgresServer) -> Iterator[None]:
        self.storage_at_hand = PostgresStorage(any_postgres.new_database())
        yield
        self.storage_at_hand.close()


class TestSessions(OnPostgres, contracts.SessionPersistenceContract):
    def make(self, _folder: Path) -> SessionPersistence:
        return self.storage_at_hand.sessions("a")


class TestUsage(OnPostgres, contracts.UsageStoreContract):
    def make(self, _folder: Path) -> UsageStore:
        return self.storage_at_hand.usage


class TestMessages(OnPostgres, contracts.MessageStoreContract):
    def make(self, _folder: Path) -> MessageStore[str]:
        return SqlMessages(self.storage_at_hand.database, write=str, read=str)


class TestAudit(OnPostgres, contracts.AuditLogContract):
    def make(self, _folder: Path) -> AuditLog:
        return self.storage_at_hand.audit


class TestPins(OnPostgres, contracts.PinPersistenceContract):
    def make(self, _folder: Path) -> tuple[PinPersistence, AuditLog]:
        return self.storage_at_hand.pins(""), self.storage_at_hand.audit


class TestRecords(OnPostgres, contracts.RecordStoreContract):
    def make(self, _folder: Path) -> RecordStore:
        return self.storage_at_hand.records


class TestKeys(OnPostgres, contracts.KeyStoreContract):
    def make(self, _folder: Path) -> KeyStore:
        return self.storage_at_hand.keys


class TestContents(OnPostgres, contracts.CatalogContentsContract):
    def make(self, _folder: Path) -> CatalogContents:
        return self.storage_at_hand.contents


class TestReceipts(OnPostgres, contracts.ReceiptLogContract):
    def make(self, _folder: Path) -> ReceiptLog:
        return self.storage_at_hand.receipts


class TestFigures(OnPostgres, contracts.FigureLogContract):
    def make(self, _folder: Path) -> FigureLog:
        return self.storage_at_hand.figures


class TestMisses(OnPostgres, contracts.MissLogContract):
    def make(self, _folder: Path) -> MissLog:
        return self.storage_at_hand.misses


class TestListings(OnPostgres, contracts.ListingPersistenceContract):
    def make(self, _folder: Path) -> KeptListings:
        return KeptListings(self.storage_at_hand.records, "acme", Clock())


class TestVectors(OnPostgres, contracts.VectorStoreContract):
    def make(self, _folder: Path) -> VectorStore:
        assert self.storage_at_hand.vectors is not None
        return self.storage_at_hand.vectors


class TestAllOfThem(OnPostgres, contracts.StorageContract):
    def make(self, _folder: Path) -> Storage:
        return self.storage_at_hand


class TestBackups(OnPostgres, contracts.BackupContract):
    """A backup is a SQLite file."""

    def make(self, _folder: Path) -> Storage:
        return self.storage_at_hand

    def open_backup(self, path: Path) -> Storage:
        return SqliteStorage(path)
