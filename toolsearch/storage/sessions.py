"""Where sessions outlive the process: one text each, under the session's id, with a version."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StoredSession:
    """What was saved last. *version* is 1 or more, and no two savings under one id have the same."""

    text: str
    version: int


class SessionPersistence(Protocol):
    """Keeps texts by session id; safe to share between threads. Each method may raise SessionStoreError."""

    def load(self, session_id: str) -> StoredSession | None: ...

    def save(self, session_id: str, text: str, *, version: int) -> int:
        """Save over what was read as *version*, 0 where there was nothing; return the new version.

        Raises SessionConflictError, and leaves what is there, if that has another version by now, or is gone.
        """
        ...

    def delete(self, session_id: str) -> bool:
        """Return whether there was something to delete."""
        ...

    def ids(self) -> list[str]:
        """Sorted."""
        ...


class SharedSessions(SessionPersistence, Protocol):
    """That of a service, whose replicas look now and then whether others have written a session."""

    def versions(self, session_ids: Collection[str]) -> dict[str, int]:
        """The versions of those that are there, by id."""
        ...
