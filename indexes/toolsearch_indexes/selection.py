"""Which tools a search may see, as masks over segments: applied before ranking, made once and shared."""

from __future__ import annotations

from collections.abc import Callable, Collection
from weakref import WeakKeyDictionary

import numpy as np

from toolsearch_indexes.errors import BadQueryError
from toolsearch_indexes.keyword import BoolArray
from toolsearch_indexes.segments import Names, Segment


class Selection:
    """The tools whose names *allows* accepts.

    A mask is kept for each segment, so that a change of the index costs only its new rows; *allows* must therefore
    always answer the same for one version of a tool. Make one selection per reach and share it: it holds a byte per
    tool. Safe to share between threads.
    """

    def __init__(self, allows: Callable[[str], bool]) -> None:
        self._allows = allows
        self._masks: WeakKeyDictionary[Names, BoolArray] = WeakKeyDictionary()

    @classmethod
    def of(cls, names: Collection[str]) -> Selection:
        """Raises BadQueryError for a bare text, whose letters would be the names."""
        if isinstance(names, str | bytes):
            raise BadQueryError(f"within must be a collection of names, not one text; write [{names[:80]!r}]")
        return cls(frozenset(names).__contains__)

    def allows(self, name: str) -> bool:
        return self._allows(name)

    def mask(self, segment: Segment) -> BoolArray:
        """The allowed rows of *segment*, dead or alive, (n,) bool."""
        mask = self._masks.get(segment.names)
        if mask is None:
            mask = np.fromiter(map(self._allows, segment.names.names), np.bool_, segment.size)
            self._masks[segment.names] = mask
        return mask


def allowed_rows(segment: Segment, selection: Selection | None) -> BoolArray | None:
    """The rows of *segment* that may be found: alive and selected; None means all."""
    if selection is None:
        return segment.alive
    mask = selection.mask(segment)
    return mask if segment.alive is None else mask & segment.alive
