"""Ports in memory, until the process ends: for tests, and for whoever stores nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Generic

from toolsearch.errors import ConflictError, Kept
from toolsearch.storage.sessions import Message, StoredSession
from toolsearch.storage.usage import StoredWeight, UsageCell


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
                raise ConflictError("session", session_id, Kept.SESSIONS)
            self._last_version += 1
            self._sessions[session_id] = StoredSession(text, self._last_version)
            return self._last_version

    def delete(self, session_id: str) -> bool:
        with self._lock:
            return self._sessions.pop(session_id, None) is not None

    def ids(self) -> list[str]:
        with self._lock:
            return sorted(self._sessions)


class InMemoryUsageStore:
    """A `UsageStore` without a file."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._weights: dict[str, dict[UsageCell, StoredWeight]] = {}

    def load(self, principal: str) -> list[StoredWeight]:
        with self._lock:
            return [weight for _, weight in sorted(self._weights.get(principal, {}).items())]

    def add(self, principal: str, weights: Mapping[UsageCell, float], *, at_s: float, half_life_s: float) -> None:
        with self._lock:
            known = self._weights.setdefault(principal, {})
            for cell, weight in weights.items():
                left = known[cell].left(at_s, half_life_s) if cell in known else 0.0
                known[cell] = StoredWeight(cell, left + weight, at_s)

    def drop(self, principal: str, cells: Collection[UsageCell]) -> None:
        with self._lock:
            for cell in cells:
                self._weights.get(principal, {}).pop(cell, None)

    def reset(self, principal: str | None) -> None:
        with self._lock:
            for known in [known for known in self._weights if principal in (None, known)]:
                del self._weights[known]

    def principals(self) -> list[str]:
        with self._lock:
            return sorted(principal for principal, weights in self._weights.items() if weights)


class InMemoryMessageStore(Generic[Message]):
    """A `MessageStore` without a file."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._conversations: dict[str, tuple[Message, ...]] = {}

    def load(self, conversation_id: str) -> list[Message]:
        return list(self._conversations.get(conversation_id, ()))

    def update(self, conversation_id: str, change: Callable[[list[Message]], list[Message]]) -> None:
        with self._lock:
            self._conversations[conversation_id] = tuple(change(self.load(conversation_id)))

    def delete(self, conversation_id: str) -> None:
        with self._lock:
            self._conversations.pop(conversation_id, None)
