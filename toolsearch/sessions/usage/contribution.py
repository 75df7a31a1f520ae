"""What one session adds to what is learnt: tools that it searched for and then called, and never much of them.

Anybody can open a new session, so what one session adds is bounded. Each further call of the same tool counts half: a
loop that calls a tool ten thousand times weighs less than two sessions that called it once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from toolsearch.sessions.usage.vocabulary import Terms

_REMEMBERED_SEARCHES = 20  # a call is credited to one of these, or to none
_LEAST_WEIGHT = 1 / 8  # a credit below this is not stored
_MOST_CREDITS = 40


@dataclass(frozen=True, slots=True)
class Credit:
    """A tool was called for a query of these *terms*.

    called  what that counts for the tool: 1, 1/2, 1/4 or 1/8
    asked   what it counts for the query: as much, less what this session gave to the same query before
    """

    terms: Terms
    tool: str
    called: float
    asked: float


@dataclass(slots=True)
class SessionContribution:
    """The latest searches of one session, and what it was credited for. Its owner guards it."""

    _shown: dict[Terms, frozenset[str]] = field(default_factory=dict[Terms, frozenset[str]])  # oldest first
    _asked: dict[Terms, float] = field(default_factory=dict[Terms, float])
    _credited: set[tuple[Terms, str]] = field(default_factory=set[tuple[Terms, str]])
    _times: Counter[str] = field(default_factory=Counter[str])

    def discovered(self, terms: Terms, tools: Collection[str]) -> None:
        self._shown.pop(terms, None)
        self._shown[terms] = frozenset(tools)
        if len(self._shown) > _REMEMBERED_SEARCHES:
            del self._shown[next(iter(self._shown))]

    def called(self, tool: str) -> Credit | None:
        """Credit the latest search that found *tool*; None if none did, or if it adds nothing."""
        terms = next((terms for terms, tools in reversed(self._shown.items()) if tool in tools), None)
        called = 0.5 ** self._times[tool]
        is_spent = called < _LEAST_WEIGHT or len(self._credited) >= _MOST_CREDITS
        if terms is None or is_spent or (terms, tool) in self._credited:
            return None
        asked_before = self._asked.get(terms, 0.0)
        self._asked[terms] = max(asked_before, called)
        self._credited.add((terms, tool))
        self._times[tool] += 1
        return Credit(terms, tool, called, max(0.0, called - asked_before))
