"""Keyword search: BM25F over numpy postings.

A term's weight in a tool is gathered over the fields before it saturates (Robertson, Zaragoza, Taylor, CIKM 2004):

    tf = sum over fields f of  weight_f * count_f / (1 - b_f + b_f * length_f / mean length_f)
    score = sum over terms of  idf * tf * (k1 + 1) / (tf + k1)

The saturated part (the *impact*) is kept for every posting; a search adds up idf * impact. Mean lengths move with every
tool that comes or goes, so the impacts use means rounded to steps of 2^(1/4): they depend on the indexed tools and not
on the order of changes, and are recomputed only when a mean crosses a step. Document frequencies are exact at any time.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.arrays import distinct, mapping_of, sizes_of, starts_of
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.word_forms import Lexicon

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int32]
LongArray = NDArray[np.int64]
FloatArray = NDArray[np.float32]
Weighted: TypeAlias = tuple[NDArray[np.integer], FloatArray]  # distinct rows, and a term's saturated weight in each
WeightsOf: TypeAlias = Callable[[int], Weighted | None]  # term -> its rows and weights; None if no row contains it

FIELDS = ("name", "title", "description", "parameters", "tags", "server", "requests")
_REQUESTS = FIELDS.index("requests")


def field_texts(document: ToolDocument) -> tuple[str, ...]:
    """The text of *document* by field, in the order of FIELDS."""
    return (
        document.own_name,
        document.title,
        document.description,
        "\n".join((*document.parameter_names, document.parameter_text)),
        "\n".join(document.tags),
        document.server,
        "\n".join(document.searched_requests),
    )


def lucene_idf(documents: int, df: int) -> float:
    """Positive for every df. Okapi's idf is negative for terms in more than half of the documents."""
    return math.log1p((documents - df + 0.5) / (df + 0.5))


@dataclass(frozen=True, slots=True)
class KeywordParameters:
    """Weights and shape of the score.

    weights  by field, in the order of FIELDS
    b        length normalisation by field, from 0 (none) to 1 (full)
    """

    weights: tuple[float, ...] = (3.0, 1.5, 1.5, 0.8, 1.0, 1.0, 1.5)
    b: tuple[float, ...] = (0.75, 0.5, 0.75, 0.75, 0.3, 0.3, 0.75)
    k1: float = 1.5
    idf: Callable[[int, int], float] = lucene_idf  # (number of documents, number of them with the term) -> idf


class WordReading(NamedTuple):
    """One query word: the terms it may stand for, each with its weight (idf times how sure the reading is)."""

    word: str
    alternatives: tuple[tuple[int, float], ...]


class TermCounts(Protocol):
    """Counts, over all tools that may be found, that reading a query needs."""

    @property
    def documents(self) -> int: ...

    @property
    def readings(self) -> dict[str, WordReading]:
        """Words of these tools, as they were read before; filled by any number of threads."""
        ...

    def holders(self, term: int) -> int:
        """How many of these tools contain *term*."""
        ...

    def has_surface(self, surface: int) -> bool:
        """Whether one of these tools contains *surface*."""
        ...


@dataclass(frozen=True, slots=True)
class KeywordStatistics:
    """Figures of all live documents together; replaced, never changed.

    df           by term number, how many documents hold it
    surface_df   by surface number, how many documents hold it
    lengths      by field, the number of terms in all documents
    filled       by field, how many documents have any
    mean_step    ratio of the steps that *means* are rounded to; 1 leaves them exact
    means        by field, the mean length over the documents that have the field
    """

    documents: int = 0
    df: IntArray = field(default_factory=lambda: np.zeros(0, np.int32))
    surface_df: IntArray = field(default_factory=lambda: np.zeros(0, np.int32))
    lengths: LongArray = field(default_factory=lambda: np.zeros(len(FIELDS), np.int64))
    filled: LongArray = field(default_factory=lambda: np.zeros(len(FIELDS), np.int64))
    mean_step: float = 2**0.25
    means: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "means", field_means(self.lengths, self.filled, self.mean_step))

    def holders(self, term: int) -> int:
        return int(self.df[term]) if term < len(self.df) else 0

    def has_surface(self, surface: int) -> bool:
        return surface < len(self.surface_df) and bool(self.surface_df[surface])

    def with_rows(self, changed: Iterable[Counted], lexicon: Lexicon) -> KeywordStatistics:
        """Return the statistics with the *changed* rows counted in or out. The large arrays are copied once for all."""
        df, surface_df = _grown(self.df, len(lexicon.terms)), _grown(self.surface_df, len(lexicon.surfaces))
        documents, lengths, filled = self.documents, self.lengths, self.filled
        for part, rows, sign in changed:
            _count_words(df, surface_df, part, rows, lexicon, sign=sign)
            documents += sign * len(rows)
            lengths = lengths + sign * part.lengths[rows].sum(axis=0, dtype=np.int64)
            filled = filled + sign * (part.lengths[rows] > 0).sum(axis=0, dtype=np.int64)
        return KeywordStatistics(documents, df, surface_df, lengths, filled, self.mean_step)


class Counted(NamedTuple):
    """Rows of a part that are counted in (*sign* 1) or out (*sign* -1)."""

    part: KeywordPart
    rows: LongArray
    sign: int


def _count_words(
    df: IntArray, surface_df: IntArray, part: KeywordPart, rows: LongArray, lexicon: Lexicon, *, sign: int
) -> None:
    if len(rows) == part.size:  # the whole part was added or removed
        df[part.terms] += sign * np.diff(part.offsets).astype(np.int32)
        np.add.at(surface_df, part.surface_ids, np.int32(sign))
    else:
        surfaces, row_of = part.surfaces_of(rows)
        np.add.at(surface_df, surfaces, np.int32(sign))
        terms = lexicon.terms_of(surfaces)
        once = distinct(row_of * len(lexicon.terms) + terms) % max(1, len(lexicon.terms))
        np.add.at(df, once, np.int32(sign))


def field_means(lengths: LongArray, filled: LongArray, step: float) -> tuple[float, ...]:
    """The mean length of each field where there is any, rounded to powers of *step*; see `KeywordStatistics`."""
    exact: list[float] = (lengths / np.maximum(1, filled)).tolist()
    return tuple(_round_to_power(mean, step) for mean in exact)


def _round_to_power(value: float, step: float) -> float:
    if step <= 1 or value <= 0:
        return value
    return float(step ** round(math.log(value) / math.log(step)))


def _grown(counts: IntArray, size: int) -> IntArray:
    if len(counts) == size:
        return counts.astype(np.int32)
    return np.concatenate([counts, np.zeros(size - len(counts), np.int32)])


@dataclass(slots=True)
class KeywordPart:
    """The postings of *n* documents, numbered by row; immutable except for a memory of searches.

    terms      (t,) the term numbers that occur, ascending
    offsets    (t + 1,) where each term's postings begin
    rows       (p,) the rows that hold the term, ascending within a term
    counts     (p, fields) how often, by field, at most 255
    lengths    (n, fields) terms in each field; of requests, those of one on average
    surface_offsets (n + 1,), surface_ids: the distinct surfaces of each row, for taking it out of the statistics again
    """

    terms: IntArray
    offsets: LongArray
    rows: IntArray
    counts: NDArray[np.uint8]
    lengths: IntArray
    surface_offsets: LongArray
    surface_ids: IntArray
    _impacts: tuple[tuple[float, ...], FloatArray] | None = None
    _requested: tuple[BoolArray, LongArray] | None = None
    _postings: _Postings = field(init=False)

    def __post_init__(self) -> None:
        self._postings = _Postings(self.terms, self.offsets)

    @property
    def size(self) -> int:
        return len(self.lengths)

    @property
    def has_requests(self) -> BoolArray:
        """(n,) whether a row has requests of users."""
        return self._with_requests()[0]

    @property
    def rows_with_requests(self) -> LongArray:
        return self._with_requests()[1]

    def _with_requests(self) -> tuple[BoolArray, LongArray]:
        if self._requested is None:
            has_requests = self.lengths[:, _REQUESTS] > 0
            self._requested = has_requests, np.flatnonzero(has_requests)
        return self._requested

    @classmethod
    def build(cls, documents: Sequence[ToolDocument], lexicon: Lexicon) -> KeywordPart:
        encode, encoded = lexicon.encode, array("i")
        found_lengths: list[int] = []
        for document in documents:
            for number, text in enumerate(field_texts(document)):
                found = encode(text, keep_stop_words=number == 0) if text else ()
                encoded.extend(found)
                found_lengths.append(len(found))
        lengths = np.array(found_lengths, np.int32).reshape(-1, len(FIELDS))
        surfaces = np.frombuffer(encoded, np.intc).astype(np.int64)
        row_of = np.repeat(np.arange(len(documents)), lengths.sum(axis=1))
        field_of = np.repeat(np.tile(np.arange(len(FIELDS)), len(documents)), lengths.ravel())
        lengths[:, _REQUESTS] = _length_of_one(lengths[:, _REQUESTS], documents)
        held = distinct(row_of * len(lexicon.surfaces) + surfaces)
        surface_rows, surface_ids = np.divmod(held, max(1, len(lexicon.surfaces)))
        terms = lexicon.terms_of(surfaces)
        keys, counts = _count_by_field(terms * max(1, len(documents)) + row_of, field_of)
        return cls._from_sorted(keys, counts, lengths, _offsets(surface_rows, len(documents)), surface_ids)

    @classmethod
    def merge(cls, parts: Sequence[KeywordPart], keep: Sequence[BoolArray]) -> KeywordPart:
        """Merge the rows that *keep* selects, in order. The result equals a part that was built from them."""
        lengths = np.concatenate([part.lengths[kept] for part, kept in zip(parts, keep, strict=True)])
        keys: list[LongArray] = []
        counts: list[NDArray[np.uint8]] = []
        surface_rows: list[LongArray] = []
        surface_ids: list[IntArray] = []
        first = 0
        for part, kept in zip(parts, keep, strict=True):
            new_row = np.cumsum(kept, dtype=np.int64) - 1 + first
            live = slice(None) if kept.all() else kept[part.rows]
            keys.append(part.posting_terms()[live] * len(lengths) + new_row[part.rows[live]])
            counts.append(part.counts[live])
            ids, row_of = part.surfaces_of(np.flatnonzero(kept))
            surface_rows.append(row_of + first)
            surface_ids.append(ids)
            first += int(kept.sum())
        all_keys = np.concatenate(keys)
        order = np.argsort(all_keys, kind="stable")
        offsets = _offsets(np.concatenate(surface_rows), len(lengths))
        return cls._from_sorted(
            all_keys[order], np.concatenate(counts)[order], lengths, offsets, np.concatenate(surface_ids)
        )

    @classmethod
    def _from_sorted(
        cls,
        keys: LongArray,
        counts: NDArray[np.uint8],
        lengths: IntArray,
        surface_offsets: LongArray,
        surface_ids: NDArray[np.integer],
    ) -> KeywordPart:
        """*keys* are term * n + row, ascending and distinct."""
        terms_of, rows = np.divmod(keys, max(1, len(lengths)))
        starts = starts_of(terms_of)
        return cls(
            terms_of[starts].astype(np.int32),
            np.append(starts, len(keys)).astype(np.int64),
            rows.astype(np.int32),
            counts,
            lengths,
            surface_offsets,
            surface_ids.astype(np.int32),
        )

    def posting_terms(self) -> LongArray:
        """The term number of each posting."""
        return np.repeat(self.terms.astype(np.int64), np.diff(self.offsets))

    def surfaces_of(self, rows: NDArray[np.integer]) -> tuple[IntArray, LongArray]:
        """Return the distinct surfaces of *rows*, and for each the place in *rows* of the row it belongs to."""
        starts, ends = self.surface_offsets[rows], self.surface_offsets[rows + 1]
        sizes = ends - starts
        place = np.repeat(np.arange(len(rows)), sizes)
        within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self.surface_ids[np.repeat(starts, sizes) + within], place

    def impacts(self, means: tuple[float, ...], parameters: KeywordParameters) -> FloatArray:
        """The saturated term weight of each posting, under these mean field lengths."""
        remembered = self._impacts
        if remembered is None or remembered[0] != means:
            remembered = (means, self._compute_impacts(means, parameters))
            self._impacts = remembered
        return remembered[1]

    def remember_impacts(self, means: tuple[float, ...], impacts: FloatArray) -> None:
        """Take over the result of `impacts` for these *means* and default parameters. Raises ValueError if it does not
        fit.
        """
        if impacts.shape != self.rows.shape or impacts.dtype != np.float32:
            raise ValueError("the impacts are not of these postings")
        self._impacts = (means, impacts)

    @property
    def has_stored_impacts(self) -> bool:
        """Whether the last used weights are mapped from a file."""
        return self._impacts is not None and mapping_of(self._impacts[1]) is not None

    def _compute_impacts(self, means: tuple[float, ...], parameters: KeywordParameters) -> FloatArray:
        tf = np.zeros(len(self.rows), np.float32)
        for number, (mean, weight, b) in enumerate(zip(means, parameters.weights, parameters.b, strict=True)):
            here = np.flatnonzero(self.counts[:, number])
            if len(here) and mean > 0:  # the mean is 0 if only deleted rows have the field
                norms = weight / (1 - b + b * self.lengths[:, number] / mean)
                tf[here] += self.counts[here, number] * norms[self.rows[here]]
        return _saturated(tf, parameters)

    def impacts_of(
        self, places: slice | LongArray, means: tuple[float, ...], parameters: KeywordParameters
    ) -> FloatArray:
        """As `impacts`, but only for the postings at *places*, and without keeping the result."""
        rows, counts = self.rows[places], self.counts[places]
        tf = np.zeros(len(rows), np.float32)
        for number, (mean, weight, b) in enumerate(zip(means, parameters.weights, parameters.b, strict=True)):
            here = np.flatnonzero(counts[:, number])
            if len(here) and mean > 0:
                tf[here] += counts[here, number] * (weight / (1 - b + b * self.lengths[rows[here], number] / mean))
        return _saturated(tf, parameters)

    def weighted(self, means: tuple[float, ...], parameters: KeywordParameters, term: int) -> Weighted | None:
        """The rows that hold *term*, dead or alive, and its weight in each, under these mean field lengths."""
        where = self._postings[term]
        return (self.rows[where], self.impacts(means, parameters)[where]) if where else None

    def postings(self, term: int) -> slice | None:
        """The range of the postings of *term*; None if no row contains it."""
        return self._postings[term]

    def posting(self, term: int, row: int) -> int | None:
        """The place of *term*'s posting for *row*, if there is one."""
        where = self.postings(term)
        if where is None:
            return None
        place = where.start + int(np.searchsorted(self.rows[where], row))
        return place if place < where.stop and self.rows[place] == row else None

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        return {name: getattr(self, name) for name in _ARRAYS}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> KeywordPart:
        """Raises KeyError where one is missing."""
        return cls(**{name: arrays[name] for name in _ARRAYS})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


class _Postings(dict[int, "slice | None"]):
    """The ranges of postings of the terms asked for so far; filled by any number of threads."""

    __slots__ = ("_offsets", "_terms")

    def __init__(self, terms: IntArray, offsets: LongArray) -> None:
        self._terms, self._offsets = terms, offsets

    def __missing__(self, term: int) -> slice | None:
        place = int(np.searchsorted(self._terms, term))
        is_here = place < len(self._terms) and self._terms[place] == term
        found = slice(int(self._offsets[place]), int(self._offsets[place + 1])) if is_here else None
        self[term] = found
        return found


_ARRAYS = ("terms", "offsets", "rows", "counts", "lengths", "surface_offsets", "surface_ids")


def _length_of_one(lengths: IntArray, documents: Sequence[ToolDocument]) -> IntArray:
    """The mean length of each tool's requests, rounded up, so that more requests do not lower a tool's score.

    lengths  (n,) terms in all requests of a tool
    """
    requests = np.array([max(1, len(document.requests)) for document in documents], np.int32)
    return -(-lengths // requests)


def _saturated(tf: FloatArray, parameters: KeywordParameters) -> FloatArray:
    return (tf * (parameters.k1 + 1) / (tf + parameters.k1)).astype(np.float32)


def _offsets(sorted_rows: NDArray[np.integer], size: int) -> LongArray:
    """The beginning of each of *size* rows in *sorted_rows*, and the end of the last."""
    return np.searchsorted(sorted_rows, np.arange(size + 1)).astype(np.int64)


def _count_by_field(keys: LongArray, fields: LongArray) -> tuple[LongArray, NDArray[np.uint8]]:
    """Return the distinct *keys*, ascending, and how often each came with each field."""
    both = np.sort(keys * len(FIELDS) + fields)
    firsts = starts_of(both)
    key_of, field_of = np.divmod(both[firsts], len(FIELDS))
    starts = starts_of(key_of)
    place = np.repeat(np.arange(len(starts)), sizes_of(starts, len(key_of)))
    counts = np.zeros((len(starts), len(FIELDS)), np.uint8)
    counts[place, field_of] = np.minimum(sizes_of(firsts, len(both)), 255)
    return key_of[starts], counts
