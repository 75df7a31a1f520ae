"""SQLite files: what each port owes, files of 0.1.0 and of later versions, several processes, damage."""

from pathlib import Path

from tests.storage_contracts import SessionPersistenceContract
from toolsearch.storage.sessions import SessionPersistence
from toolsearch.storage.sqlite.sessions import SqliteSessionPersistence


class TestSessions(SessionPersistenceContract):
    def make(self, folder: Path) -> SessionPersistence:
        return SqliteSessionPersistence(folder / "kept.db")
