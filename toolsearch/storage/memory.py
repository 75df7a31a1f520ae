"""What is kept for as long as the process lives: for tests, and for whoever keeps nothing."""

from __future__ import annotations

import threading

from toolsearch.errors import SessionConflictError
from toolsearch.storage.sessions import StoredSession


class InMemorySessionPersistence:
    """A `SessionPersistence` without a file."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[str, StoredSession] = {}
        self._last_version = 0

    def load(self, session_id: str) -> StoredSession | None:
        return self._sessions.get(session_id)

    def save(self, session_id: str, text: str, *, version: int) -> int:
        with self._lock:
            stored = self._sessions.get(session_id)
            if (stored.version if stored else 0) != version:
                raise SessionConflictError(session_id)
            self._last_version += 1
            self._sessions[session_id] = StoredSession(text, self._last_version)
            return self._last_version

    def delete(self, session_id: str) -> bool:
        with self._lock:
            return self._sessions.pop(session_id, None) is not None

    def ids(self) -> list[str]:
        with self._lock:
            return sorted(self._sessions)
