"""The sessions in memory: which there are, and which are evicted when another is used. Reads and writes nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from weakref import WeakValueDictionary

from toolsearch.sessions.eviction import EvictionStrategy
from toolsearch.sessions.state import SessionState


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
        # Every session that has not ended, also one that only running work still holds: each has exactly one state.
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
        """Note a use, and evict the other sessions that the strategy names for it; return whether it names this one as
        well.
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
        """Note that one of the `leaving` does not have to be written any more."""
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
