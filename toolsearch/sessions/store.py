"""All sessions: which are in memory, which go when another is used, and how they come back after a restart."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from toolsearch.discovery.discovered import Budget
from toolsearch.errors import SessionStoreError, UnknownSessionError
from toolsearch.option_values import identity
from toolsearch.sessions.eviction import EvictionStrategy, LruEvictionStrategy
from toolsearch.sessions.state import SessionState
from toolsearch.storage.sessions import SessionPersistence

_logger = logging.getLogger(__name__)


class SessionStore:
    """The sessions of one engine, shared between threads.

    An eviction by the strategy is from memory. Without a persistence that is the end of the session; with one, the
    session is saved, and comes back when it is used again. `evict` is the end of a session in any case.

    A strategy that names the very session in use (`AlwaysEvictStrategy`) is heeded when the session is opened, with
    `get_or_create`, and not in the midst of its turns, with `get`.

    *clock* gives seconds since the epoch, since times are saved. *budget* is that of the sessions that are read back.
    """

    def __init__(
        self,
        strategy: EvictionStrategy | None = None,
        persistence: SessionPersistence | None = None,
        *,
        budget: Budget | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._strategy = strategy or LruEvictionStrategy()
        self._persistence = persistence
        self._budget = budget or Budget()
        self._clock = clock
        # _lock guards the maps and the strategy, and is never held while something is read or written. _io_lock puts
        # what is read and written in order, so that a session cannot be saved after its end, or read before its saving.
        # Whoever needs both takes _io_lock first.
        self._lock = threading.Lock()
        self._io_lock = threading.Lock()
        self._states: dict[str, SessionState] = {}
        self._leaving: dict[str, SessionState] = {}  # evicted, not saved yet
        self._unreadable: dict[str, int] = {}  # the versions of what was kept, to be replaced

    def get_or_create(
        self, session_id: str, factory: Callable[[], SessionState], *, may_replace: bool = True
    ) -> SessionState:
        """Open a session: the one there is, or else what *factory* makes. It counts as a use.

        A session that is kept and cannot be read back has lost its reach. It starts anew if *may_replace*, which is for
        a *factory* that knows the reach; otherwise that is a SessionStoreError, as it must not come back wider.
        """
        identity(session_id, "session_id")
        with self._lock:
            state = self._find(session_id)
            if state is not None and self._use(state):
                self._forget(session_id)
                state = None
        self._save_leaving()
        if state is None:
            state = self._load(session_id, may_replace=may_replace) or self._admit(factory())
            self._save_leaving()
        return state

    def get(self, session_id: str) -> SessionState:
        """Return an open session, for a search or a call. It counts as a use. Raises UnknownSessionError."""
        with self._lock:
            state = self._find(session_id)
            if state is not None:
                self._use(state)
        if state is None:
            state = self._load(session_id)
        if state is None:
            raise UnknownSessionError(session_id)
        self._save_leaving()
        return state

    def save(self, state: SessionState) -> None:
        """Write what a restart should bring back. A state that is no longer in memory is not written: `get` it anew.

        Raises SessionConflictError if another process has saved or ended the session since it was read.
        """
        if self._persistence is None:
            return
        with self._io_lock:
            with self._lock:
                is_live = self._states.get(state.id) is state
            if is_live:
                state.version = self._persistence.save(state.id, state.to_json(), version=state.version)

    def save_all(self) -> None:
        """Save every session in memory, as before the end of the process."""
        with self._lock:
            states = list(self._states.values())
        for state in states:
            self.save(state)

    def evict(self, session_id: str) -> bool:
        """End a session, in memory and wherever it is kept; return whether there was one."""
        with self._io_lock:
            with self._lock:
                was_in_memory = self._find(session_id) is not None
                self._states.pop(session_id, None)
                self._strategy.on_removed(session_id)
            was_kept = self._persistence is not None and self._persistence.delete(session_id)
        return was_in_memory or was_kept

    def ids(self) -> list[str]:
        """Every session that `get` would find, sorted."""
        with self._io_lock:
            kept = self._persistence.ids() if self._persistence is not None else []
            with self._lock:
                return sorted({*kept, *self._states, *self._leaving})

    def __len__(self) -> int:
        """How many are in memory."""
        return len(self._states)

    def _find(self, session_id: str) -> SessionState | None:
        """Look in memory; one that is about to leave it stays."""
        leaving = self._leaving.pop(session_id, None)
        return self._states.setdefault(session_id, leaving) if leaving else self._states.get(session_id)

    def _use(self, state: SessionState) -> bool:
        """Note a use, with what that does to other sessions; return whether the strategy wants this one to go too."""
        state.used_s = self._clock()
        evicted = self._strategy.on_access(state.id)
        for session_id in evicted - {state.id}:
            self._forget(session_id)
        return state.id in evicted

    def _forget(self, session_id: str) -> None:
        state = self._states.pop(session_id, None)
        self._strategy.on_removed(session_id)
        if state is not None and self._persistence is not None:
            self._leaving[session_id] = state

    def _load(self, session_id: str, *, may_replace: bool = True) -> SessionState | None:
        if self._persistence is None:
            return None
        with self._io_lock:
            stored = self._persistence.load(session_id)
            if stored is None:
                return None
            try:
                state = SessionState.from_json(stored.text, budget=self._budget, clock=self._clock)
                state.version = stored.version
            except SessionStoreError as error:
                if not may_replace:
                    raise SessionStoreError(
                        f"the session {session_id!r} cannot be read back, nor what it may see: {error}; open it with a "
                        "reach, or evict it"
                    ) from error
                _logger.warning("the session %r starts anew: %s", session_id, error)
                self._unreadable[session_id] = stored.version
                return None
            return self._admit(state)

    def _admit(self, state: SessionState) -> SessionState:
        """Take *state* into memory, unless another thread was faster; return the one that is in memory."""
        with self._lock:
            state.version = self._unreadable.pop(state.id, state.version)
            state = self._find(state.id) or self._states.setdefault(state.id, state)
            self._use(state)
            return state

    def _save_leaving(self) -> None:
        if self._persistence is None or not self._leaving:
            return
        with self._io_lock:
            with self._lock:
                leaving = list(self._leaving.values())
            for state in leaving:
                try:
                    state.version = self._persistence.save(state.id, state.to_json(), version=state.version)
                except SessionStoreError as error:  # it must not fail the session that happens to be in use
                    _logger.error("the evicted session %r could not be saved: %s", state.id, error)  # noqa: TRY400
                with self._lock:
                    if self._leaving.get(state.id) is state:
                        del self._leaving[state.id]
