"""Which sessions to forget, decided when one is used: by number, by idle time, always, never, or several of these."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from itertools import takewhile
from typing import Final, Protocol

from toolsearch.errors import BadSettingError

MAX_SESSIONS: Final = 1_000
_NONE: frozenset[str] = frozenset()


class EvictionStrategy(Protocol):
    """Keeps track of the sessions of one store, which makes all calls under its lock. Nothing runs by itself."""

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
        self._ids: OrderedDict[str, None] = OrderedDict()  # used longest ago first

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
        self._used_s: OrderedDict[str, float] = OrderedDict()  # last access, used longest ago first

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
    """Forget what any of some strategies would."""

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
