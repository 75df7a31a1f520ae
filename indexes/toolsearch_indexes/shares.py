"""The rows of one segment that may be seen within a reach, and the sums over these that statistics are made of."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.keyword import FIELDS, BoolArray, LongArray
from toolsearch_indexes.names import Names
from toolsearch_indexes.segments import Segment
from toolsearch_indexes.semantic import DoubleArray

_BLOCK = 1024  # rows whose vectors are added up in float32, before the sums are in float64


@dataclass(frozen=True, slots=True)
class Share:
    """Holds nothing of the segment itself, so that one that was merged away is not kept in memory.

    names      whose segment this is of
    mask       the rows that the selection allows, dead or alive; *alive* as of the segment
    allowed    those of *mask* that are alive
    lengths, filled  by field, as of KeywordStatistics
    total      the sum of their vectors (d,); of none where there are no vectors
    """

    names: ref[Names]
    mask: BoolArray
    alive: BoolArray | None
    allowed: BoolArray
    documents: int
    lengths: LongArray
    filled: LongArray
    total: DoubleArray

    @classmethod
    def of(cls, segment: Segment, mask: BoolArray) -> Share:
        dimensions = segment.vectors.dimensions if segment.vectors else 0
        nothing = cls(
            ref(segment.names),
            mask,
            None,
            np.zeros(segment.size, np.bool_),
            0,
            np.zeros(len(FIELDS), np.int64),
            np.zeros(len(FIELDS), np.int64),
            np.zeros(dimensions),
        )
        return nothing._with(segment, mask if segment.alive is None else mask & segment.alive)

    def at(self, segment: Segment) -> Share:
        """The share of another state of the same segment."""
        if segment.alive is self.alive:
            return self
        return self._with(segment, self.mask if segment.alive is None else self.mask & segment.alive)

    @property
    def nbytes(self) -> int:
        arrays = {id(array): array for array in (self.mask, self.alive, self.allowed) if array is not None}
        return sum(array.nbytes for array in arrays.values())

    def _with(self, segment: Segment, allowed: BoolArray) -> Share:
        """Count in and out the rows in which *allowed* differs."""
        rows = np.flatnonzero(allowed != self.allowed)
        signs: NDArray[np.int64] = np.where(allowed[rows], 1, -1)
        lengths = segment.keyword.lengths[rows]
        return Share(
            self.names,
            self.mask,
            segment.alive,
            allowed,
            self.documents + int(signs.sum()),
            self.lengths + signs @ lengths,
            self.filled + signs @ (lengths > 0),
            self.total + _sum_of_vectors(segment, rows, signs),
        )


def _sum_of_vectors(segment: Segment, rows: LongArray, signs: LongArray) -> DoubleArray:
    if segment.vectors is None:
        return np.zeros(0)
    matrix = segment.vectors.matrix
    total = np.zeros(segment.vectors.dimensions)
    for first in range(0, len(rows), _BLOCK):
        block = slice(first, first + _BLOCK)
        total += signs[block].astype(np.float32) @ matrix[rows[block]]
    return total
