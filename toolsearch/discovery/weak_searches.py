"""What a session has searched for in vain, so that it is told when there is probably no such tool."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

from toolsearch_indexes.analysis import terms

_KEPT = 20  # searches
_FEWEST_TOOLS = 2  # that like searches have in common


@dataclass(frozen=True, slots=True)
class _WeakSearch:
    words: frozenset[str]
    found: frozenset[str]

    def is_like(self, other: _WeakSearch) -> bool:
        """A verb alone makes no two searches alike: more than half of the words have to be the same, or half of what
        was found.
        """
        words, tools = len(self.words & other.words), len(self.found & other.found)
        is_same_find = tools >= _FEWEST_TOOLS and 2 * tools >= min(len(self.found), len(other.found))
        return is_same_find or 2 * words > max(len(self.words), len(other.words))


@dataclass(slots=True)
class WeakSearches:
    """The latest searches of a session whose answers were weak. Safe to share between threads."""

    _kept: deque[_WeakSearch] = field(default_factory=lambda: deque[_WeakSearch](maxlen=_KEPT))

    def note(self, query: str, found: Collection[str]) -> bool:
        """Note a weak search; return whether there was one like it before.

        The same query again counts for nothing: it says no more than the first time.
        """
        asked = _WeakSearch(frozenset(terms(query)), frozenset(found))
        earlier = [search for search in tuple(self._kept) if search.words != asked.words]
        if len(earlier) == len(self._kept):
            self._kept.append(asked)
        return any(search.is_like(asked) for search in earlier)
