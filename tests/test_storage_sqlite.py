"""SQLite files: what each port owes, files of 0.1.0 and of later versions, several processes, damage."""

from pathlib import Path

from tests import storage_contracts as contracts
from toolsearch.storage.audit import AuditLog
from toolsearch.storage.messages import MessageStore
from toolsearch.storage.pins import PinPersistence
from toolsearch.storage.sessions import SessionPersistence
from toolsearch.storage.sqlite.audit import SqliteAuditLog
from toolsearch.storage.sqlite.messages import SqliteMessages
from toolsearch.storage.sqlite.pins import SqlitePins
from toolsearch.storage.sqlite.sessions import SqliteSessionPersistence
from toolsearch.storage.sqlite.usage import SqliteUsageStore
from toolsearch.storage.usage import UsageStore
from toolsearch_indexes.vector_file import VectorFile
from toolsearch_indexes.vector_store import VectorStore


class TestSessions(contracts.SessionPersistenceContract):
    def make(self, folder: Path) -> SessionPersistence:
        return SqliteSessionPersistence(folder / "kept.db")


class TestUsage(contracts.UsageStoreContract):
    def make(self, folder: Path) -> UsageStore:
        return SqliteUsageStore(folder / "kept.db")


class TestMessages(contracts.MessageStoreContract):
    def make(self, folder: Path) -> MessageStore[str]:
        return SqliteMessages(folder / "kept.db", write=str, read=str)


class TestAudit(contracts.AuditLogContract):
    def make(self, folder: Path) -> AuditLog:
        return SqliteAuditLog(folder / "kept.db")


class TestPins(contracts.PinPersistenceContract):
    def make(self, folder: Path) -> tuple[PinPersistence, AuditLog]:
        return SqlitePins(folder / "kept.db"), SqliteAuditLog(folder / "kept.db")


class TestVectors(contracts.VectorStoreContract):
    def make(self, folder: Path) -> VectorStore:
        return VectorFile(folder / "vectors.db")
