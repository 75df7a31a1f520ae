"""Keeps track of the sessions in memory, and chooses which to evict when another is used.

A strategy evicts by number, by idle time, always, never, or by several of these rules. Nothing is read or written here.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from itertools import takewhile
from typing import Final, Protocol
from weakref import WeakValueDictionary

from toolsearch.errors import BadSettingError
from toolsearch.sessions.state import SessionState

MAX_SESSIONS: Final = 1_000
_NONE: frozenset[str] = frozenset()


class EvictionStrategy(Protocol):
    """Keeps track of the sessions of one store, which calls it under a lock. It has no thread or task of its own."""

    def on_access(self, session_id: str) -> frozenset[str]:
        """Note that *session_id* is used now; return the sessions to forget now, each of them once."""
        ...

    def on_removed(self, session_id: str) -> None:
        """Note that the store no longer has *session_id*; it may be one that this strategy never saw."""
        ...


class LruEvictionStrategy:
    """Keep the *max_sessions* that were used last."""

    def __init__(self, max_sessions: int = MAX_SESSIONS) -> None:
        if max_sessions < 1:
            raise BadSettingError(f"max_sessions must be 1 or more; got {max_sessions}")
        self._max_sessions = max_sessions
        self._ids: OrderedDict[str, None] = OrderedDict()  # ordered by last use, oldest first

    def on_access(self, session_id: str) -> frozenset[str]:
        self._ids[session_id] = None
        self._ids.move_to_end(session_id)
        if len(self._ids) <= self._max_sessions:
            return _NONE
        return frozenset([self._ids.popitem(last=False)[0]])

    def on_removed(self, session_id: str) -> None:
        self._ids.pop(session_id, None)


class TtlEvictionStrategy:
    """Forget a session once it has been idle for *ttl_s* seconds; it is looked at when another one is used."""

    def __init__(self, ttl_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        if not ttl_s > 0:
            raise BadSettingError(f"ttl_s must be above 0; got {ttl_s}")
        self._ttl_s = ttl_s
        self._clock = clock
        self._used_s: OrderedDict[str, float] = OrderedDict()  # id -> time of the last access, oldest first

    def on_access(self, session_id: str) -> frozenset[str]:
        now = self._clock()
        self._used_s[session_id] = now
        self._used_s.move_to_end(session_id)
        expired = frozenset(takewhile(lambda other: now - self._used_s[other] >= self._ttl_s, self._used_s))
        for other in expired:
            del self._used_s[other]
        return expired

    def on_removed(self, session_id: str) -> None:
        self._used_s.pop(session_id, None)


class CompositeEvictionStrategy:
    """Evicts each session that any of its strategies evicts."""

    def __init__(self, *strategies: EvictionStrategy) -> None:
        if not strategies:
            raise BadSettingError("a composite eviction strategy needs at least one strategy to ask")
        self._strategies = strategies

    def on_access(self, session_id: str) -> frozenset[str]:
        return _NONE.union(*[strategy.on_access(session_id) for strategy in self._strategies])

    def on_removed(self, session_id: str) -> None:
        for strategy in self._strategies:
            strategy.on_removed(session_id)


class NeverEvictStrategy:
    """Keep every session until it is evicted by name; memory grows with the number of sessions."""

    def on_access(self, session_id: str) -> frozenset[str]:  # noqa: ARG002
        return _NONE

    def on_removed(self, session_id: str) -> None:
        pass


class AlwaysEvictStrategy:
    """Forget the very session that is used, so that each request opens it afresh."""

    def on_access(self, session_id: str) -> frozenset[str]:
        return frozenset([session_id])

    def on_removed(self, session_id: str) -> None:
        pass


class LoadedSessions:
    """Safe to share between threads: one lock guards everything here, *strategy* included, and is only held for a
    moment.

    *is_kept* says that sessions are stored elsewhere too. Then an evicted session stays in `leaving` until it is
    written; otherwise it ends.
    """

    def __init__(self, strategy: EvictionStrategy, clock: Callable[[], float], *, is_kept: bool) -> None:
        self._strategy = strategy
        self._clock = clock
        self._is_kept = is_kept
        self._lock = threading.Lock()
        self._states: dict[str, SessionState] = {}
        self._leaving: dict[str, SessionState] = {}
        # Every session that has not ended, even if only running work still holds it: each has exactly one state.
        self._living: WeakValueDictionary[str, SessionState] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._states)

    @property
    def ids(self) -> set[str]:
        with self._lock:
            return {*self._states, *self._leaving}

    @property
    def states(self) -> list[SessionState]:
        with self._lock:
            return list(self._states.values())

    @property
    def leaving(self) -> list[SessionState]:
        """The evicted sessions that still have to be written."""
        with self._lock:
            return list(self._leaving.values())

    def living(self, session_id: str) -> SessionState | None:
        """Return the session if it has not ended, without counting a use."""
        return self._living.get(session_id)

    def find(self, session_id: str) -> SessionState | None:
        """Return the session if it has not ended. One that was about to leave stays."""
        with self._lock:
            state = self._living.get(session_id)
            if state is not None:
                self._leaving.pop(session_id, None)
                self._states[session_id] = state
            return state

    def use(self, state: SessionState) -> bool:
        """Note a use, and evict the other sessions that the strategy names. Return whether it names this one
        as well.
        """
        with self._lock:
            state.used_s = self._clock()
            evicted = self._strategy.on_access(state.id)
            for other in evicted - {state.id}:
                self._evict(other)
            return state.id in evicted

    def admit(self, state: SessionState) -> None:
        """Take *state* in and note a use, if it is not here."""
        with self._lock:
            if self._states.get(state.id) is state:
                return
            self._states[state.id] = self._living[state.id] = state
        self.use(state)

    def evict(self, state: SessionState) -> None:
        with self._lock:
            self._evict(state.id)

    def has_left(self, state: SessionState) -> None:
        """Note that one of the `leaving` sessions need not be written any more."""
        with self._lock:
            if self._leaving.get(state.id) is state:
                del self._leaving[state.id]

    def is_leaving(self, state: SessionState) -> bool:
        return self._leaving.get(state.id) is state

    def end(self, session_id: str) -> bool:
        """Forget a session; return whether it was in memory."""
        with self._lock:
            was_here = session_id in self._states or session_id in self._leaving
            self._end(session_id)
            return was_here

    def _evict(self, session_id: str) -> None:
        state = self._states.pop(session_id, None)
        if not self._is_kept:
            self._end(session_id)
            return
        self._strategy.on_removed(session_id)
        if state is not None:
            self._leaving[session_id] = state

    def _end(self, session_id: str) -> None:
        for states in (self._states, self._leaving, self._living):
            states.pop(session_id, None)
        self._strategy.on_removed(session_id)
