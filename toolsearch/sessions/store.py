"""All sessions of an engine: those in memory, the eviction of others, and reading and writing."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TypeAlias, TypeVar
from weakref import WeakValueDictionary

from toolsearch.discovery.discovered_tools import Budget
from toolsearch.errors import ConflictError, Kept, StorageError, UnknownSessionError
from toolsearch.option_values import identity
from toolsearch.sessions.session_eviction import EvictionStrategy, LoadedSessions, LruEvictionStrategy
from toolsearch.sessions.state import SessionState, merge
from toolsearch.storage.sessions import SessionPersistence, StoredSession
from toolsearch.threads import FairLock, in_thread

_logger = logging.getLogger(__name__)
_Outcome = TypeVar("_Outcome")

Settle: TypeAlias = Callable[[SessionState], None]  # applies reach and budget to a merged state

_MAX_ATTEMPTS = 20  # attempts to save; an attempt fails only if another process has saved
_RETRY_AFTER_S = 1.0  # advice to the caller when all attempts have failed
_UNREADABLE = "{}"  # replaces a stored text that cannot be read


def _unsettled(_: SessionState) -> None:
    pass


def _nothing() -> None:
    return None


class SessionStore:
    """The sessions of one engine, shared between threads.

    An eviction by the strategy removes a session from memory. Without a persistence that ends the session; with one,
    the session is saved, and comes back when it is used again. `evict` always ends a session.

    A strategy may name the session that is being used (`AlwaysEvictStrategy`). That is obeyed when the session is
    opened, by `get_or_create`, and ignored during its turns, in `get` and `refresh`.

    In one process, all work with a session shares one state, whose parts are safe to share. Only reading and writing
    take turns, in the order of the requests; running tools hold up nobody. The work of another process is merged when a
    session is read, and when a write fails because of it.

    *clock* gives seconds since the epoch, since times are saved. *budget* is the budget of sessions that are read back.
    """

    def __init__(
        self,
        strategy: EvictionStrategy | None = None,
        persistence: SessionPersistence | None = None,
        *,
        budget: Budget | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._loaded = LoadedSessions(strategy or LruEvictionStrategy(), clock, is_kept=persistence is not None)
        self._persistence = persistence
        self._budget = budget or Budget()
        self._clock = clock
        # A session's lock is held while it is read or written. So it cannot be saved after its end or read while it is
        # saved. Nobody holds two of these locks.
        self._locks: WeakValueDictionary[str, FairLock] = WeakValueDictionary()
        self._lock = threading.Lock()  # guards the dict of locks

    async def run(self, step: Callable[[], _Outcome]) -> _Outcome:
        """Run a *step* that reads or writes a session. It runs in a thread unless everything is in memory."""
        return step() if self._persistence is None else await in_thread(step)

    def get_or_create(
        self,
        session_id: str,
        factory: Callable[[], SessionState],
        *,
        owner: str | None = None,
        may_replace: bool = True,
        settle: Settle = _unsettled,
    ) -> SessionState:
        """Return the session of that id as it is stored now, or a new one from *factory*. It counts as a use.

        Raises UnknownSessionError if the session does not belong to *owner*, the id of a principal.

        If the stored session cannot be read, its reach is lost. With *may_replace* a new session takes its place: say
        so only if *factory* knows the reach. Otherwise StorageError is raised, since the session must not come
        back with a wider reach.
        """
        identity(session_id, "session_id")
        with self._lock_of(session_id):
            state = self._in_memory(session_id, owner)
            if state is not None and self._loaded.use(state):
                self._loaded.evict(state)
                self._save_left(state)
                state = None
            state = self._read(session_id, state, owner, settle, factory if may_replace else None) or factory()
            self._loaded.admit(state)
        self._save_leaving()
        return state

    def refresh(self, session_id: str, *, owner: str | None = None, settle: Settle = _unsettled) -> SessionState:
        """Return an open session as it is stored now. It counts as a use. Raises UnknownSessionError."""
        with self._lock_of(session_id):
            state = self._in_memory(session_id, owner)
            if state is not None:
                self._loaded.use(state)
            state = self._read(session_id, state, owner, settle, _nothing)
            if state is None:
                raise UnknownSessionError(session_id)
            self._loaded.admit(state)
        self._save_leaving()
        return state

    def get(self, session_id: str, *, owner: str | None = None) -> SessionState:
        """Return an open session as this process knows it: nothing is read if it is in memory. It counts as a use.

        Raises UnknownSessionError.
        """
        state = self._in_memory(session_id, owner)
        if state is None:
            return self.refresh(session_id, owner=owner)
        self._loaded.use(state)
        return state

    def peek(self, session_id: str, *, owner: str) -> SessionState:
        """Return a session as it is stored now, for reading only. This does not count as a use, and does not load the
        session.

        Raises UnknownSessionError.
        """
        state = self._loaded.living(session_id)
        stored = self._persistence.load(session_id) if self._persistence is not None else None
        if state is None or _version(state.saved) != _version(stored):
            if stored is None:
                raise UnknownSessionError(session_id)
            state = self._parsed(stored)
        _require_owner(state, owner)
        return state

    def save(self, state: SessionState, settle: Settle | None = None) -> SessionState:
        """Write the parts of a session that survive a restart. Return the session as it is now.

        A session that has ended meanwhile is not written: *state* is returned unchanged. If it was opened again, the
        new session is returned, with the tools that *state* has discovered added to it. This needs *settle*, which
        knows the reach, and so does merging the work of another process. Raises ConflictError without it, or if
        others were faster in every attempt.
        """
        with self._lock_of(state.id):
            living = self._loaded.living(state.id)
            if living is None or (living is not state and settle is None) or living.principal != state.principal:
                return state
            if living is not state and settle is not None:
                known = living.discovered.tools
                found = {name: tool.tokens for name, tool in state.discovered.tools.items() if name not in known}
                living.discovered.add(found)
                settle(living)
            self._write(living, settle)
            return living

    def save_all(self, settle: Settle | None = None) -> None:
        """Save every session in memory, as before the end of the process."""
        self._save_leaving()
        for state in self._loaded.states:
            self.save(state, settle)

    def evict(self, session_id: str) -> bool:
        """End a session, in memory and wherever it is kept; return whether there was one."""
        with self._lock_of(session_id):
            was_in_memory = self._loaded.end(session_id)
            was_kept = self._persistence is not None and self._persistence.delete(session_id)
        return was_in_memory or was_kept

    def known_version(self, session_id: str) -> int:
        """The version of a session that this process has read or written last; 0 for one that is not in memory."""
        state = self._loaded.living(session_id)
        return _version(state.saved) if state is not None else 0

    def forget(self, session_id: str) -> None:
        """Take a session out of memory that was deleted where it is kept."""
        with self._lock_of(session_id):
            self._loaded.end(session_id)

    def ids(self) -> list[str]:
        """Every session that `get` would find, sorted."""
        kept = self._persistence.ids() if self._persistence is not None else []
        return sorted({*kept, *self._loaded.ids})

    def __len__(self) -> int:
        """How many are in memory."""
        return len(self._loaded)

    def __bool__(self) -> bool:
        """True, also while the store is empty: a store that is given is not one that is left out."""
        return True

    def _lock_of(self, session_id: str) -> FairLock:
        with self._lock:
            lock = self._locks.get(session_id)
            if lock is None:
                lock = self._locks[session_id] = FairLock()
            return lock

    def _in_memory(self, session_id: str, owner: str | None) -> SessionState | None:
        """Look for the session in memory. If it belongs to another owner, it is not touched."""
        for look in (self._loaded.living, self._loaded.find):
            state = look(session_id)
            if state is None:
                return None
            _require_owner(state, owner)
        return state

    # Reading and writing, with the lock of the session held

    def _read(
        self,
        session_id: str,
        state: SessionState | None,
        owner: str | None,
        settle: Settle,
        instead: Callable[[], SessionState | None] | None,
    ) -> SessionState | None:
        """Return the session as it is stored now; None if there is none. *state* is this process's knowledge of it.

        If the stored session cannot be read, *state* or the result of *instead* replaces it. Without both,
        StorageError is raised.
        """
        stored = self._persistence.load(session_id) if self._persistence is not None else None
        if stored is None:
            if self._persistence is not None and state is not None and state.saved is not None:
                self._loaded.end(session_id)  # another process has ended it
                return None
            return state
        if state is not None and state.saved is not None and state.saved.version == stored.version:
            return state
        try:
            theirs = self._parsed(stored)
        except StorageError as error:
            if state is None and instead is None:
                raise StorageError(
                    f"the session {session_id!r} and its reach cannot be read: {error}; open it "
                    "with a reach, or evict it",
                    Kept.SESSIONS,
                ) from error
            _logger.warning("the session %r starts anew: %s", session_id, error)
            state = state or (instead() if instead is not None else None)
            if state is not None:
                state.saved = StoredSession(_UNREADABLE, stored.version)
            return state
        _require_owner(theirs, owner)
        return self._taken_over(state, theirs, settle)

    def _taken_over(self, state: SessionState | None, theirs: SessionState, settle: Settle) -> SessionState:
        """Return *state* merged with *theirs*. If *theirs* is a newer session of the same id, return *theirs* alone."""
        if state is None or state.principal != theirs.principal or not _is_same(state, theirs):
            if state is not None:
                self._loaded.end(state.id)
            return theirs
        merge(state, self._base_of(state), theirs)
        state.saved = theirs.saved
        settle(state)
        return state

    def _write(self, state: SessionState, settle: Settle | None) -> None:
        """Write *state*, if it has changed, over the version that it came from. Merge the work of others that was
        written since.
        """
        if self._persistence is None:
            return
        for _ in range(_MAX_ATTEMPTS):
            if not state.is_changed():
                return
            text, version = state.to_json(), _version(state.saved)
            try:
                version = self._persistence.save(state.id, text, version=version)
            except ConflictError:
                if settle is None:
                    raise
                if self._read(state.id, state, None, settle, None) is not state:
                    return  # the session has ended, and may have been opened again
            else:
                state.saved = StoredSession(text, version)
                return
        raise ConflictError("session", state.id, Kept.SESSIONS, retry_after_s=_RETRY_AFTER_S)

    def _parsed(self, stored: StoredSession) -> SessionState:
        state = SessionState.from_json(stored.text, budget=self._budget, clock=self._clock)
        state.saved = stored
        return state

    def _base_of(self, state: SessionState) -> SessionState | None:
        try:
            return self._parsed(state.saved) if state.saved is not None else None
        except StorageError:
            return None

    def _save_left(self, state: SessionState) -> None:
        """Write *state*, which has left the memory, unless it was loaded again meanwhile."""
        if not self._loaded.is_leaving(state):
            return
        try:
            self._write(state, None)
        except ConflictError:
            _logger.info("the evicted session %r was not saved, because another process has written it since", state.id)
        except StorageError as error:  # a fault of an evicted session must not stop the session in use
            _logger.error("the evicted session %r could not be saved: %s", state.id, error)  # noqa: TRY400
        self._loaded.has_left(state)

    def _save_leaving(self) -> None:
        for state in self._loaded.leaving:
            with self._lock_of(state.id):
                self._save_left(state)


def _require_owner(state: SessionState, owner: str | None) -> None:
    if owner is not None and state.principal != owner:
        raise UnknownSessionError(state.id)


def _version(stored: StoredSession | None) -> int:
    return stored.version if stored is not None else 0


def _is_same(state: SessionState, theirs: SessionState) -> bool:
    """Whether both states are of the same session, rather than of two sessions that had the same id in turn."""
    return state.saved is None or state.saved.text == _UNREADABLE or state.created_s == theirs.created_s
