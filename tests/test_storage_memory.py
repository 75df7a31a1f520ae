"""What is kept in memory owes the same as what is kept in files."""

from pathlib import Path

from tests.storage_contracts import SessionPersistenceContract
from toolsearch.storage.memory import InMemorySessionPersistence
from toolsearch.storage.sessions import SessionPersistence


class TestSessions(SessionPersistenceContract):
    def make(self, folder: Path) -> SessionPersistence:  # noqa: ARG002
        return InMemorySessionPersistence()
