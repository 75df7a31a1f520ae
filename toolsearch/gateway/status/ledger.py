"""Counts what the gateway does, in bounded memory. Only the status shows it; nothing is decided by it."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolsearch.gateway.caller import Caller
from toolsearch.gateway.settings import SESSION_IDLE_S
from toolsearch.gateway.status.snapshot import SearchRow, SessionRow
from toolsearch.wire.mcp.eras import Era

_LAST_SEARCHES = 50
_MAX_SESSIONS = 1_000  # rows kept; least recently used goes first
_QUERY_CHARS = 200  # of a query that is kept


@dataclass(slots=True)
class _Session:
    """What one row has come to so far."""

    caller: Caller
    seen_s: float
    tools: int = 0
    searches: int = 0
    calls: int = 0
    is_outdated: bool = False  # its last list, since a search has changed what it shows


class Ledger:
    """Totals since the start, and the latest sessions. To be used from the gateway's event loop.

    Each list counts once, when it is handed out, beside what it would have cost with the caller's whole reach. A list
    that is asked for anew because a search has changed it counts with nothing beside it: with every tool in it from the
    beginning it would not have been asked for.
    Clients send their list to the model with every request, so the real saving is larger than these totals say.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, idle_s: float = SESSION_IDLE_S) -> None:
        """A session that has not been heard of for *idle_s* has ended."""
        self._idle_s = idle_s
        self.lists = self.searches = self.calls = self.failed_calls = 0
        self.shown_tokens = self.written_tokens = 0
        self._all_tools_tokens = self._uncounted = 0
        self._clock = clock
        self._last_searches: deque[SearchRow] = deque(maxlen=_LAST_SEARCHES)
        self._sessions: OrderedDict[tuple[str, Era, str], _Session] = OrderedDict()  # least recently used first

    @property
    def all_tools_tokens(self) -> int | None:
        """What the lists would have cost with every tool in reach; None while that is not known of one of them."""
        return None if self._uncounted else self._all_tools_tokens

    def listed(self, caller: Caller, *, tools: int, shown_tokens: int) -> bool:
        """A list of *tools* tools was handed out. Return whether it counts with every tool beside it: call `counted`
        with what these take, once that is known.
        """
        session = self._session(caller)
        counts, session.is_outdated, session.tools = not session.is_outdated, False, tools
        self.lists += 1
        self.shown_tokens += shown_tokens
        self._uncounted += counts
        return counts

    def counted(self, all_tools_tokens: int) -> None:
        """A list that was `listed` would have cost so much with every tool in it."""
        self._uncounted -= 1
        self._all_tools_tokens += all_tools_tokens

    def searched(
        self,
        caller: Caller,
        query: str,
        found: Sequence[str],
        *,
        seconds: float,
        written_tokens: int,
        answer_tokens: int,
        list_changed: bool = False,
    ) -> None:
        """A search was answered with *found*. *list_changed*: the caller's list is another one now."""
        session = self._session(caller)
        session.searches += 1
        session.is_outdated |= list_changed and session.tools > 0
        self.searches += 1
        self.written_tokens += written_tokens
        self.shown_tokens += answer_tokens
        self._last_searches.append(
            SearchRow(caller.principal.id, query[:_QUERY_CHARS], tuple(found), round(seconds * 1_000, 2))
        )

    def called(self, caller: Caller, *, failed: bool) -> None:
        self.calls += 1
        self.failed_calls += failed
        self._session(caller).calls += 1

    @property
    def last_searches(self) -> tuple[SearchRow, ...]:
        """The newest first."""
        return tuple(reversed(self._last_searches))

    @property
    def sessions(self) -> tuple[SessionRow, ...]:
        """Those of the last half hour, the latest used first."""
        self._forget()
        now = self._clock()
        return tuple(
            SessionRow(
                kept.caller.principal.id,
                kept.caller.client_name,
                tools=kept.tools,
                searches=kept.searches,
                calls=kept.calls,
                idle_s=round(now - kept.seen_s, 1),
                era=kept.caller.era.value,
            )
            for kept in reversed(self._sessions.values())
        )

    def _session(self, caller: Caller) -> _Session:
        key = (caller.principal.id, caller.era, caller.session or caller.session_key or caller.client_name)
        now = self._clock()
        session = self._sessions.pop(key, None) or _Session(caller, now)
        session.seen_s = now
        self._sessions[key] = session
        self._forget()
        return session

    def _forget(self) -> None:
        now = self._clock()
        while self._sessions:
            key, oldest = next(iter(self._sessions.items()))
            if len(self._sessions) <= _MAX_SESSIONS and now - oldest.seen_s < self._idle_s:
                return
            del self._sessions[key]
