"""Reads the tools of a catalog from the store: the more at once, the longer they are asked for one after another.

An index that has to be built asks for all tools, each by itself. A database on another machine would take a round trip
for each.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from typing import Final

from toolsearch.storage.contents import StoredTool

_MOST: Final = 500  # at once


class ReadAhead:
    """*names* are those of all tools, sorted, and *get* reads those of some. Safe to share between threads."""

    def __init__(self, names: Sequence[str], get: Callable[[Collection[str]], list[StoredTool]]) -> None:
        self._names = names
        self._get = get
        self._ahead: dict[str, StoredTool] = {}  # read, and not asked for yet
        self._next = -1  # the place of the name that would be asked for in turn
        self._count = 1

    def read(self, name: str) -> StoredTool | None:
        """None if it is gone."""
        if (row := self._ahead.pop(name, None)) is not None:
            return row
        place = bisect_left(self._names, name)
        self._count = min(2 * self._count, _MOST) if place == self._next else 1
        self._next = place + self._count
        rows = {row.name: row for row in self._get(self._names[place : self._next] if self._count > 1 else [name])}
        row = rows.pop(name, None)
        self._ahead = rows
        return row
