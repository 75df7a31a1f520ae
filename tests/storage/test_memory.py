"""What is kept in memory owes the same as what is kept in files."""

from pathlib import Path

from tests.kit import storage_contracts as contracts
from toolsearch.storage.memory import (
    InMemoryMessageStore,
    InMemorySessionPersistence,
    InMemoryUsageStore,
)
from toolsearch.storage.sessions import MessageStore, SessionPersistence
from toolsearch.storage.usage import UsageStore
from toolsearch_indexes.vector_store import MemoryVectorStore, VectorStore


class TestSessions(contracts.SessionPersistenceContract):
    def make(self, _folder: Path) -> SessionPersistence:
        return InMemorySessionPersistence()


class TestUsage(contracts.UsageStoreContract):
    def make(self, _folder: Path) -> UsageStore:
        return InMemoryUsageStore()


class TestMessages(contracts.MessageStoreContract):
    def make(self, _folder: Path) -> MessageStore[str]:
        return InMemoryMessageStore()


class TestVectors(contracts.VectorStoreContract):
    def make(self, _folder: Path) -> VectorStore:
        return MemoryVectorStore(10_000)
