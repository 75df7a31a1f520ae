"""Segments: the immutable pieces an index is made of.

A segment holds every arm's share of some documents, numbered by row. Adding makes a new small segment, removing marks
rows dead, and small neighbours are merged, so that a change costs what it touches and a reader never sees half of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.keyword import BoolArray, KeywordPart
from toolsearch_indexes.lexicon import Lexicon
from toolsearch_indexes.lines import Lines
from toolsearch_indexes.names import Names
from toolsearch_indexes.regex import RegexPart
from toolsearch_indexes.vectors import FloatArray, VectorPart

_GROWTH = 4  # a segment is merged into the one before it until that one is this many times as large


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows 0 to size - 1 of every arm, and the requests of users; *alive* is None while all rows are."""

    names: Names
    keyword: KeywordPart
    regex: RegexPart
    requests: Lines
    vectors: VectorPart | None
    alive: BoolArray | None = None

    @property
    def size(self) -> int:
        return len(self.names)

    @property
    def living(self) -> int:
        return self.size if self.alive is None else int(self.alive.sum())

    def without(self, rows: Iterable[int]) -> Segment:
        alive = np.ones(self.size, np.bool_) if self.alive is None else self.alive.copy()
        alive[list(rows)] = False
        return replace(self, alive=alive)

    def kept(self) -> BoolArray:
        return np.ones(self.size, np.bool_) if self.alive is None else self.alive


def build_segment(documents: Sequence[ToolDocument], lexicon: Lexicon, vectors: FloatArray | None) -> Segment:
    return Segment(
        Names.of([d.name for d in documents], [d.own_name for d in documents]),
        KeywordPart.build(documents, lexicon),
        RegexPart.build(documents),
        Lines.build([document.requests for document in documents]),
        None if vectors is None else VectorPart.build(vectors),
    )


def merge_segments(segments: Sequence[Segment]) -> Segment:
    """Return one segment of the living rows, in order, as if built of them."""
    if len(segments) == 1 and segments[0].alive is None:
        return segments[0]
    keep = [segment.kept() for segment in segments]
    vectors = [segment.vectors for segment in segments if segment.vectors is not None]
    return Segment(
        Names.merge([s.names for s in segments], keep),
        KeywordPart.merge([s.keyword for s in segments], keep),
        RegexPart.merge([s.regex for s in segments], keep),
        Lines.merge([s.requests for s in segments], keep),
        VectorPart.merge(vectors, keep) if len(vectors) == len(segments) else None,
    )


def tidy(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Merge what is worth merging: empty segments go, half-dead ones shrink, small last ones join their neighbour.

    The first segment, the bulk, is spared until the others together reach a quarter of it, so that a single change
    next to a large catalog stays cheap and the merges cost a constant number of copies per tool over time.
    """
    kept = [s if s.living * 2 > s.size else merge_segments([s]) for s in segments if s.living]
    while len(kept) > 2 and kept[-2].size <= _GROWTH * kept[-1].size:
        kept[-2:] = [merge_segments(kept[-2:])]
    if len(kept) > 1 and sum(s.size for s in kept[1:]) * _GROWTH >= kept[0].size:
        kept = [merge_segments(kept)]
    return tuple(kept)
