"""A request as one moment of an index reads it: its words, its meaning, and what scores are worth for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from toolsearch_indexes.calibration import Scale, hybrid_scale, keyword_scale, semantic_scale
from toolsearch_indexes.directions import may_tell_direction
from toolsearch_indexes.distinct import distinct
from toolsearch_indexes.fusion import Unrelated, semantic_weight
from toolsearch_indexes.keyword import BoolArray, FloatArray, KeywordParameters
from toolsearch_indexes.keyword_query import KeywordQuery, keyword_scores, read_query
from toolsearch_indexes.lexicon import Lexicon
from toolsearch_indexes.segments import Segment
from toolsearch_indexes.semantic import Meaning, SemanticArm, SemanticStatistics
from toolsearch_indexes.sole_holders import SoleHolder, sole_holders
from toolsearch_indexes.space import SearchSpace
from toolsearch_indexes.vectors import IntArray, Near, VectorPart

_NO_ROWS: IntArray = np.empty(0, np.int64)
_NO_SCORES: FloatArray = np.empty(0, np.float32)


@dataclass(frozen=True, slots=True)
class Known:
    """What one search has found out, which looks for a request and for its parts by themselves, too.

    vectors  by text
    near     by the identity of vectors, a vector's bytes, and how many rows were wanted
    """

    vectors: dict[str, FloatArray] = field(default_factory=dict[str, FloatArray])
    near: dict[tuple[int, bytes, int], Near] = field(default_factory=dict[tuple[int, bytes, int], Near])


class Bounds(NamedTuple):
    """What the meaning of a request is worth in *rows* (n,) of a segment, at least and at most, in deviations; and what
    in any other row, at most.
    """

    rows: IntArray
    least: FloatArray
    most: FloatArray
    others: float


@dataclass(frozen=True, slots=True)
class Nearness:
    """What the semantic arm makes of a request: its vectors, and the yardstick for their cosines."""

    meaning: Meaning
    unrelated: Unrelated
    known: Known = field(default_factory=Known)

    def bounds(self, segment: Segment, allowed: BoolArray | None, wanted: int) -> Bounds:
        """About *wanted* rows near to the whole request, and as many near to each part of it, are told from others."""
        if segment.vectors is None:
            return Bounds(_NO_ROWS, _NO_SCORES, _NO_SCORES, 0.0)
        whole, *parts = self._near(segment.vectors, [self.meaning.whole, *self.meaning.parts], wanted, allowed)
        if not parts:
            rows, least, most, others = whole.rows, whole.least, whole.most, whole.others
        else:
            rows = distinct(np.concatenate([whole.rows, *(part.rows for part in parts)]))
            least_whole, most_whole = _spread(segment.size, [whole], rows)
            least_part, most_part = _spread(segment.size, parts, rows)
            least, most = (least_whole + least_part) / np.float32(2), (most_whole + most_part) / np.float32(2)
            others = (whole.others + max(part.others for part in parts)) / 2
        deviations = self.unrelated.deviations
        return Bounds(rows, deviations(least), deviations(most), max(0.0, self.unrelated.deviations_of(others)))

    def _near(
        self, vectors: VectorPart, queries: Sequence[FloatArray], wanted: int, allowed: BoolArray | None
    ) -> list[Near]:
        """As `VectorPart.near_each`."""
        known, keys = self.known.near, [(id(vectors), query.tobytes(), wanted) for query in queries]
        new = {key: query for key, query in zip(keys, queries, strict=True) if key not in known}
        if new:
            known.update(zip(new, vectors.near_each(list(new.values()), wanted, allowed), strict=True))
        return [known[key] for key in keys]

    def deviations(self, segment: Segment, rows: IntArray) -> FloatArray:
        """How near each of *rows* is, (n,), in deviations of unrelated cosines."""
        if segment.vectors is None:
            return np.zeros(len(rows), np.float32)
        return self.unrelated.deviations(self.meaning.cosines(segment.vectors, rows))


@dataclass(frozen=True, slots=True)
class Request:
    """A raw score is BM25F plus *weight* times deviations. Without *words* or *nearness* their part is left out.

    *scale* is of raw scores, *word_scale* of those by words alone. In a fusion, *sole* has the tools whose words are
    worth more than BM25F says. *conversion* is the text of what may ask for one.
    """

    words: KeywordQuery | None
    nearness: Nearness | None
    weight: float
    scale: Scale
    word_scale: Scale
    sole: tuple[SoleHolder, ...] = ()
    conversion: str = ""

    @property
    def is_fused(self) -> bool:
        return self.words is not None and self.nearness is not None

    def word_scores(self, space: SearchSpace, number: int) -> FloatArray:
        """The BM25F score of every row of segment *number*, (n,); 0 where no word matches, anything out of reach."""
        size = space.segments[number].size
        if self.words is None:
            return np.zeros(size, np.float32)
        return keyword_scores(size, self.words, space.terms.weights(number))

    def raw(self, segment: Segment, rows: IntArray, word_scores: FloatArray) -> FloatArray:
        """The raw scores of *rows*, whose word scores are given."""
        if self.nearness is None:
            return word_scores
        meaning = np.float32(self.weight) * self.nearness.deviations(segment, rows)
        raw: FloatArray = (word_scores + meaning).astype(np.float32)
        for holder in self.sole_in(segment):
            raw[rows == holder.row] += np.float32(self.weight * holder.worth)
        return raw

    def sole_in(self, segment: Segment) -> Iterator[SoleHolder]:
        return (holder for holder in self.sole if holder.segment is segment)


def _spread(size: int, near: Sequence[Near], rows: IntArray) -> tuple[FloatArray, FloatArray]:
    """The least and the most that the greatest cosine of *near* may be in *rows* of a segment of that *size*."""
    least = np.full(size, -1, np.float32)
    most = np.full(size, max(one.others for one in near), np.float32)
    for one in near:
        least[one.rows] = np.maximum(least[one.rows], one.least)
        most[one.rows] = np.maximum(most[one.rows], one.most)
    return least[rows], most[rows]


def read_request(
    text: str,
    strategy: str,
    space: SearchSpace,
    lexicon: Lexicon,
    parameters: KeywordParameters,
    arm: SemanticArm | None,
    known: Known | None = None,
) -> Request:
    """*strategy* is "keyword", or with an *arm* "semantic" or "hybrid"; *known* is of requests within the same *space*.

    Filler is read by its words alone: to an encoder, "the of a in" is near something by chance.
    """
    words = read_query(text, lexicon, space.terms, parameters)
    tools, requested = space.terms.documents, space.terms.requested
    conversion = text if may_tell_direction(text) else ""
    by_words = keyword_scale(words.ideal, tools, requested)
    if strategy == "keyword" or arm is None or space.semantic is None or words.filler:
        return Request(words, None, 0.0, by_words, by_words, conversion=conversion)
    known = known or Known()
    nearness = Nearness(arm.meaning(text, known.vectors), arm.unrelated, known)
    familiarity = familiarity_of(nearness, space.semantic)
    sense = sense_of(words, arm)
    if strategy == "semantic":
        scale = semantic_scale(familiarity, tools, sense, requested)
        return Request(None, nearness, 1.0, scale, by_words, conversion=conversion)
    scale = hybrid_scale(familiarity, tools, sense, requested)
    sole = sole_holders(words, space, parameters)
    return Request(words, nearness, semantic_weight(text), scale, by_words, sole, conversion)


def familiarity_of(nearness: Nearness, tools: SemanticStatistics) -> float:
    """How near all *tools* are to the request on average, in deviations of unrelated cosines."""
    return nearness.unrelated.deviations_of(tools.mean_cosine(nearness.meaning.whole))


def sense_of(words: KeywordQuery, arm: SemanticArm) -> float:
    """The share of the words that a tool holds or the encoder knows, in [0, 1]."""
    foreign = sum(not arm.knows(word) for word in words.unknown)
    return 1 - foreign / words.words if words.words else 0.0
