"""Which way a conversion goes: ``rgb_to_hsv``, ``rgb2hsv`` and "get hsv from rgb" one way, ``hsv_to_rgb`` the other."""

from __future__ import annotations

from typing import NamedTuple

from toolsearch_indexes.analysis import STOP_WORDS, name_words, stem, words

_TO = frozenset({"to", "into", "2"})
_FROM = "from"
_LONGEST = 80  # characters; in a longer request "to" mostly begins what is to be done


class Direction(NamedTuple):
    """The terms of what is converted, and of what it becomes; other words of the text may be among them."""

    source: frozenset[str]
    target: frozenset[str]

    def agreement(self, other: Direction) -> int:
        """1 if *other* goes the same way, -1 if it goes the other way, 0 if that cannot be said."""
        is_same = bool(self.source & other.source and self.target & other.target)
        is_reverse = bool(self.source & other.target and self.target & other.source)
        return is_same - is_reverse


def may_tell_direction(request: str) -> bool:
    """Whether it is worth to ask for the `direction` of a request: quick, as each search asks it."""
    return (" to " in request or " into " in request or " from " in request) and len(request) <= _LONGEST


def direction(text: str) -> Direction | None:
    """The direction that a name or a request tells, if it does."""
    lower = text.lower()
    if "to" not in lower and "from" not in lower and "2" not in lower:
        return None
    said = [part for word in words(text) for part in name_words(word).split()]
    source: set[str] = set()
    target: set[str] = set()
    side = before = set[str]()  # what stands before the first "to" or "from" is the other side of that
    for place, part in enumerate(said):
        if part in _TO and place:
            side = target
        elif part == _FROM:
            side = source
        elif part not in STOP_WORDS:
            side.add(stem(part))
    (source if target else target).update(before)
    return Direction(frozenset(source), frozenset(target)) if source and target else None
