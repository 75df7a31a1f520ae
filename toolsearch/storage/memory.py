"""Every port in memory, until the process ends: for tests, and for whoever stores nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Generic

from toolsearch.errors import ConflictError, Kept
from toolsearch.storage.audit import AuditLog, AuditRecord
from toolsearch.storage.pins import FIRST_SIGHT, Pin, SeenEntry, approval, withdrawal
from toolsearch.storage.sessions import Message, StoredSession
from toolsearch.storage.usage import StoredWeight, UsageCell
from toolsearch.tools.json_types import JsonObject


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


class InMemoryAuditLog:
    """An `AuditLog` without a file."""

    def __init__(self) -> None:
        self._records: list[AuditRecord] = []

    def append(self, record: AuditRecord) -> None:
        self._records.append(replace(record, position=self._records[-1].position + 1 if self._records else 1))

    def records(
        self,
        *,
        limit: int,
        tenant: str | None = None,
        before: int | None = None,
        who: str | None = None,
        holding: str = "",
    ) -> list[AuditRecord]:
        return [
            each
            for each in self._records
            if tenant in (None, each.tenant)
            and (before is None or each.position < before)
            and who in (None, each.who)
            and holding.lower() in " ".join((each.action, each.subject, each.outcome)).lower()
        ][-limit:]

    def prune(self, *, before_s: float, limit: int) -> int:
        old = sorted((each for each in self._records if each.at_s < before_s), key=lambda each: each.at_s)[:limit]
        self._records = [each for each in self._records if each not in old]
        return len(old)


class InMemoryPins:
    """A `PinPersistence` without a file, which records what is decided in *audit*."""

    def __init__(self, audit: AuditLog) -> None:
        self._audit = audit
        self._lock = threading.RLock()
        self._version = 0
        self._entries: dict[tuple[str, str, bool], tuple[SeenEntry, str]] = {}  # by owner, name and whether approved

    def version(self) -> int:
        return self._version

    def approved(self, owner: str) -> dict[str, Pin]:
        return self._pins(owner, is_approved=True)

    def waiting(self, owner: str) -> dict[str, Pin]:
        return self._pins(owner, is_approved=False)

    def entry(self, owner: str, name: str, *, is_approved: bool) -> JsonObject | None:
        kept = self._entries.get((owner, name, is_approved))
        return kept[0].raw if kept else None

    def keep(
        self, *, approve: Sequence[SeenEntry] = (), hold: Sequence[SeenEntry] = (), forget: Sequence[SeenEntry] = ()
    ) -> None:
        with self._lock:
            for entry in approve:
                if not self._withdrawn_by(entry):
                    self._entries[entry.owner, entry.name, True] = entry, FIRST_SIGHT
            for entry in hold:
                self._entries[entry.owner, entry.name, False] = entry, self._withdrawn_by(entry)
            for entry in forget:
                if not self._withdrawn_by(entry):
                    self._entries.pop((entry.owner, entry.name, False), None)

    def approve(self, owner: str, name: str, pin: str, *, by: str, at_s: float) -> bool:
        with self._lock:
            kept = [self._entries.get((owner, name, is_approved)) for is_approved in (False, True)]
            found = next((each for each in kept if each and each[0].pin == pin), None)
            if found:
                self._entries.pop((owner, name, False), None)
                self._entries[owner, name, True] = found[0], by
            self._decided(approval(owner, name, by=by, at_s=at_s, is_done=found is not None))
            return found is not None

    def revoke(self, owner: str, name: str, *, by: str, at_s: float) -> bool:
        with self._lock:
            found = self._entries.pop((owner, name, True), None)
            if found:
                self._entries[owner, name, False] = found[0], by
            self._decided(withdrawal(owner, name, by=by, at_s=at_s, is_done=found is not None))
            return found is not None

    def close(self) -> None:
        """There is nothing to close."""

    def _withdrawn_by(self, entry: SeenEntry) -> str:
        waiting = self._entries.get((entry.owner, entry.name, False))
        return waiting[1] if waiting else ""

    def _decided(self, record: AuditRecord) -> None:
        self._version += 1
        self._audit.append(record)

    def _pins(self, owner: str, *, is_approved: bool) -> dict[str, Pin]:
        with self._lock:
            kept = [each for key, each in sorted(self._entries.items()) if (key[0], key[2]) == (owner, is_approved)]
        return {entry.name: Pin(entry.name, entry.pin, entry.seen_s, by) for entry, by in kept}
