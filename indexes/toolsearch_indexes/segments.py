"""Segments: the immutable pieces an index is made of; a moment of an index is its segments and their sums."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any
from weakref import ref
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.analysis import terms
from toolsearch_indexes.arrays import PackedTexts
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.keyword import FIELDS, BoolArray, KeywordPart, KeywordStatistics, LongArray
from toolsearch_indexes.queries import name_key
from toolsearch_indexes.regex import Lines, RegexPart
from toolsearch_indexes.reranking import as_read
from toolsearch_indexes.semantic import DoubleArray, SemanticStatistics
from toolsearch_indexes.vectors import FloatArray, VectorPart
from toolsearch_indexes.word_forms import Lexicon

RowMask = NDArray[np.bool_]
HashArray = NDArray[np.uint32]
RowArray = NDArray[np.int32]


class SegmentNames:
    """Shared by all states of the segment.

    names, own_names    by row: the full name, and the one without the server's prefix
    key_hashes          of the `name_key` of each full name, and of each own name that has another; ascending
    key_rows            the row of each, ascending among equal hashes
    """

    __slots__ = ("__weakref__", "_hashes", "_rows", "key_hashes", "key_rows", "names", "own_names")

    def __init__(self, names: PackedTexts, own_names: PackedTexts, key_hashes: HashArray, key_rows: RowArray) -> None:
        self.names, self.own_names = names, own_names
        self.key_hashes, self.key_rows = key_hashes, key_rows
        # A memoryview reads single places faster than an array.
        self._hashes, self._rows = key_hashes.data, key_rows.data

    @classmethod
    def of(cls, names: Sequence[str], own_names: Sequence[str]) -> SegmentNames:
        hashes: list[int] = []
        rows: list[int] = []
        for row, (name, own_name) in enumerate(zip(names, own_names, strict=True)):
            found = {_key_hash(name), _key_hash(own_name)} if own_name != name else {_key_hash(name)}
            hashes += found
            rows += [row] * len(found)
        return cls(PackedTexts.of(names), PackedTexts.of(own_names), *_by_hash(np.array(hashes, np.uint32), rows))

    @classmethod
    def merge(cls, parts: Sequence[SegmentNames], keep: Sequence[RowMask]) -> SegmentNames:
        """Merge the rows that *keep* (one mask for each part) selects, in order."""
        hashes: list[HashArray] = []
        rows: list[RowArray] = []
        first = 0
        for part, mask in zip(parts, keep, strict=True):
            new_row = np.cumsum(mask) - 1 + first
            kept = mask[part.key_rows]
            hashes.append(part.key_hashes[kept])
            rows.append(new_row[part.key_rows[kept]].astype(np.int32))
            first += int(np.count_nonzero(mask))
        return cls(
            PackedTexts.merge([part.names for part in parts], keep),
            PackedTexts.merge([part.own_names for part in parts], keep),
            *_by_hash(np.concatenate(hashes), np.concatenate(rows)),
        )

    def __len__(self) -> int:
        return len(self.names)

    def row_of(self, name: str) -> int | None:
        """The row whose full name is *name*."""
        return next((row for row in self._rows_like(name) if self.names[row] == name), None)

    def rows_named(self, name: str) -> tuple[list[int], list[int]]:
        """The rows whose full or local name equals *name* without case, and those that equal it without case and
        separators.

        *name* is case-folded.
        """
        rows = self._rows_like(name)
        if not rows:
            return [], []
        literal: list[int] = []
        similar: list[int] = []
        for row in rows:
            full, own = self.names[row], self.own_names[row]
            if name in (full.casefold(), own.casefold()):
                literal.append(row)
            elif name_key(name) in (name_key(full), name_key(own)):
                similar.append(row)
        return literal, similar

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return arrays for `from_arrays`. Their names are a storage format."""
        texts = {"full": self.names, "own": self.own_names}
        packed = {f"{kind}.{part}": getattr(text, part) for kind, text in texts.items() for part in ("blob", "ends")}
        return packed | {"key_hashes": self.key_hashes, "key_rows": self.key_rows}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> SegmentNames:
        """Raises KeyError where one is missing."""
        full, own = (PackedTexts(arrays[f"{kind}.blob"], arrays[f"{kind}.ends"]) for kind in ("full", "own"))
        return cls(full, own, arrays["key_hashes"], arrays["key_rows"])

    def _rows_like(self, name: str) -> Sequence[int]:
        """The rows that have a name with the key of *name*, ascending; rarely also another row."""
        hashes, wanted = self._hashes, _key_hash(name)
        first = last = bisect_left(hashes, wanted)
        while last < len(hashes) and hashes[last] == wanted:
            last += 1
        return self._rows[first:last].tolist() if first < last else ()


def _key_hash(name: str) -> int:
    return crc32(name_key(name).encode(errors="surrogatepass"))


def _by_hash(hashes: HashArray, rows: Sequence[int] | RowArray) -> tuple[HashArray, RowArray]:
    order = np.argsort(hashes, kind="stable")
    return hashes[order], np.asarray(rows, np.int32)[order]


_SMALL = 64  # tools; merging so few takes no longer than merging two, and each segment more slows all searches
_GROWTH = 4  # a segment is merged into the previous one unless that one is at least this many times as large


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows 0 to size - 1 of every arm, and the requests of users. *alive* is None if all rows are alive."""

    names: SegmentNames
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
        return self.size if self.alive is None else int(np.count_nonzero(self.alive))

    def without(self, rows: Iterable[int]) -> Segment:
        alive = np.ones(self.size, np.bool_) if self.alive is None else self.alive.copy()
        alive[list(rows)] = False
        return replace(self, alive=alive)

    def kept(self) -> BoolArray:
        return np.ones(self.size, np.bool_) if self.alive is None else self.alive


def build_segment(documents: Sequence[ToolDocument], lexicon: Lexicon, vectors: FloatArray | None) -> Segment:
    return Segment(
        SegmentNames.of([d.name for d in documents], [d.own_name for d in documents]),
        KeywordPart.build(documents, lexicon),
        RegexPart.build(documents),
        Lines.build([document.requests for document in documents]),
        None if vectors is None else VectorPart.build(vectors),
    )


def merge_segments(segments: Sequence[Segment]) -> Segment:
    """Merge the living rows into one segment, in order. It equals a segment that was built from them."""
    if len(segments) == 1 and segments[0].alive is None:
        return segments[0]
    keep = [segment.kept() for segment in segments]
    vectors = [segment.vectors for segment in segments if segment.vectors is not None]
    return Segment(
        SegmentNames.merge([s.names for s in segments], keep),
        KeywordPart.merge([s.keyword for s in segments], keep),
        RegexPart.merge([s.regex for s in segments], keep),
        Lines.merge([s.requests for s in segments], keep),
        VectorPart.merge(vectors, keep) if len(vectors) == len(segments) else None,
    )


def tidy(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Remove empty segments, shrink half-dead ones, and merge small last ones into their neighbours.

    The large first segment is left alone until the others together reach a quarter of its size. So a single change to a
    large catalog stays cheap, and each tool is copied a constant number of times in all.
    """
    kept = [s if s.living * 2 > s.size else merge_segments([s]) for s in segments if s.living]
    while len(kept) > 2 and kept[-2].size <= max(_SMALL, _GROWTH * kept[-1].size):
        kept[-2:] = [merge_segments(kept[-2:])]
    if len(kept) > 1 and sum(s.size for s in kept[1:]) * _GROWTH >= kept[0].size:
        kept = [merge_segments(kept)]
    return tuple(kept)


@dataclass(frozen=True, slots=True)
class IndexState:
    """One moment of an index; replaced as a whole, so that a search sees all of a change or nothing."""

    segments: tuple[Segment, ...] = ()
    keyword: KeywordStatistics = field(default_factory=KeywordStatistics)
    semantic: SemanticStatistics | None = None
    moment: int = field(init=False, default_factory=count().__next__)  # a new number for each state, even a copied one

    def place_of(self, name: str) -> tuple[int, int] | None:
        """Return (segment, row) of a living document."""
        for number, segment in enumerate(self.segments):
            row = segment.names.row_of(name)
            if row is not None and (segment.alive is None or segment.alive[row]):
                return number, row
        return None

    def shown(self, name: str, request: str) -> str:
        """Return the text of a living document for a reader: its own name, title and description, and its requests that
        share most words with *request*. Raises KeyError if there is no such document.
        """
        place = self.place_of(name)
        if place is None:
            raise KeyError(name)
        segment, row = self.segments[place[0]], place[1]
        asked = set(terms(request))
        nearest = sorted(segment.requests.of_row(row), key=lambda one: -len(asked.intersection(terms(one))))
        return as_read(segment.names.own_names[row], segment.regex.description(row), nearest)


_BLOCK = 1024  # rows whose vectors are summed in float32; the block sums are then added in float64


@dataclass(frozen=True, slots=True)
class SegmentShare:
    """The rows of a segment within a selection. It does not refer to the segment, so that a merged one can be freed.

    names      the names of the segment, which identify it
    mask       the rows that the selection allows, dead or alive; *alive* as of the segment
    allowed    the rows of *mask* that are alive
    lengths, filled  by field, as of KeywordStatistics
    total      the sum of their vectors (d,), empty without vectors
    """

    names: ref[SegmentNames]
    mask: BoolArray
    alive: BoolArray | None
    allowed: BoolArray
    documents: int
    lengths: LongArray
    filled: LongArray
    total: DoubleArray

    @classmethod
    def of(cls, segment: Segment, mask: BoolArray) -> SegmentShare:
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

    def at(self, segment: Segment) -> SegmentShare:
        """The share of another state of the same segment."""
        if segment.alive is self.alive:
            return self
        return self._with(segment, self.mask if segment.alive is None else self.mask & segment.alive)

    @property
    def nbytes(self) -> int:
        arrays = {id(array): array for array in (self.mask, self.alive, self.allowed) if array is not None}
        return sum(array.nbytes for array in arrays.values())

    def _with(self, segment: Segment, allowed: BoolArray) -> SegmentShare:
        """Add or remove the rows in which *allowed* differs."""
        rows = np.flatnonzero(allowed != self.allowed)
        signs: NDArray[np.int64] = np.where(allowed[rows], 1, -1)
        lengths = segment.keyword.lengths[rows]
        return SegmentShare(
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
