"""A request as an index reads it at one moment: its words, its meaning, and the scales of its scores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from toolsearch_indexes.analysis import STOP_WORDS, name_words, stem, words
from toolsearch_indexes.arrays import distinct
from toolsearch_indexes.keyword import BoolArray, FloatArray, KeywordParameters
from toolsearch_indexes.keyword_query import KeywordQuery, keyword_scores, read_query
from toolsearch_indexes.lexicon import Lexicon
from toolsearch_indexes.scores import Scale, Unrelated, hybrid_scale, keyword_scale, semantic_scale, semantic_weight
from toolsearch_indexes.segments import Segment
from toolsearch_indexes.semantic import Meaning, SemanticArm, SemanticStatistics
from toolsearch_indexes.vectors import IntArray, Near, VectorPart
from toolsearch_indexes.views import SearchSpace

_LEAST_SHARE = 0.5


class SoleHolder(NamedTuple):
    """A row that is the only one with a word of the request, and the worth of that, in deviations of a cosine."""

    segment: Segment
    row: int
    worth: float


def sole_holders(query: KeywordQuery, space: SearchSpace, parameters: KeywordParameters) -> tuple[SoleHolder, ...]:
    """The tools that are the only ones with a word of *query*. Guessed readings do not count."""
    said = [reading.alternatives[0] for reading in query.readings if reading.word not in query.unknown]
    total = query.ideal / (parameters.k1 + 1)  # the sum of the idf of all words
    places = dict.fromkeys(place for term, _ in said if space.terms.holders(term) == 1 for place in _rows(term, space))
    chance = math.sqrt(2 * math.log(max(1, space.terms.documents)))
    found: list[SoleHolder] = []
    for number, row in places:
        part = space.segments[number].keyword
        share = sum(idf for term, idf in said if part.posting(term, row) is not None) / total
        if share > _LEAST_SHARE:
            worth = chance * (min(1.0, share) - _LEAST_SHARE) / (1 - _LEAST_SHARE)
            found.append(SoleHolder(space.segments[number], row, worth))
    return tuple(found)


def _rows(term: int, space: SearchSpace) -> Iterator[tuple[int, int]]:
    """The rows that hold *term* and may be found: the number of the segment, and the row."""
    for number, (segment, allowed) in enumerate(zip(space.segments, space.allowed, strict=True)):
        where = segment.keyword.postings(term)
        if where is not None:
            rows = segment.keyword.rows[where].tolist()
            yield from ((number, row) for row in rows if allowed is None or allowed[row])


_TO = frozenset({"to", "into", "2"})
_FROM = "from"
_LONGEST = 80  # characters; in longer requests "to" mostly begins an infinitive


class Direction(NamedTuple):
    """The terms of the source and of the target of a conversion. Other words of the text may be among them."""

    source: frozenset[str]
    target: frozenset[str]

    def agreement(self, other: Direction) -> int:
        """1 if *other* has the same direction, -1 if it has the opposite one, 0 if that is unknown."""
        is_same = bool(self.source & other.source and self.target & other.target)
        is_reverse = bool(self.source & other.target and self.target & other.source)
        return is_same - is_reverse


def may_tell_direction(request: str) -> bool:
    """Whether a request may have a `direction`. This check is quick, since each search makes it."""
    return (" to " in request or " into " in request or " from " in request) and len(request) <= _LONGEST


def direction(text: str) -> Direction | None:
    """The direction of a conversion in a name or a request; None if there is none."""
    lower = text.lower()
    if "to" not in lower and "from" not in lower and "2" not in lower:
        return None
    said = [part for word in words(text) for part in name_words(word).split()]
    source: set[str] = set()
    target: set[str] = set()
    side = before = set[str]()  # words before the first "to" or "from" belong to its opposite side
    for place, part in enumerate(said):
        if part in _TO and place:
            side = target
        elif part == _FROM:
            side = source
        elif part not in STOP_WORDS:
            side.add(stem(part))
    (source if target else target).update(before)
    return Direction(frozenset(source), frozenset(target)) if source and target else None


_NO_ROWS: IntArray = np.empty(0, np.int64)
_NO_SCORES: FloatArray = np.empty(0, np.float32)


@dataclass(frozen=True, slots=True)
class Known:
    """Intermediate results of one search, which searches for a request and for each of its parts.

    vectors  by text
    near     by the identity of the vectors, the bytes of a query, and the number of wanted rows
    """

    vectors: dict[str, FloatArray] = field(default_factory=dict[str, FloatArray])
    near: dict[tuple[int, bytes, int], Near] = field(default_factory=dict[tuple[int, bytes, int], Near])


class Bounds(NamedTuple):
    """Bounds for the meaning's score of *rows* (n,) of a segment, in deviations, and an upper bound for all
    other rows.
    """

    rows: IntArray
    least: FloatArray
    most: FloatArray
    others: float


@dataclass(frozen=True, slots=True)
class Nearness:
    """The semantic side of a request: its vectors, and the scale of their cosines."""

    meaning: Meaning
    unrelated: Unrelated
    known: Known = field(default_factory=Known)

    def bounds(self, segment: Segment, allowed: BoolArray | None, wanted: int) -> Bounds:
        """Separate about *wanted* rows near the whole request, and as many near each of its parts, from all others."""
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
        """As `VectorPart.near_each`, with a cache."""
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
    """A raw score is BM25F plus *weight* times deviations. If *words* or *nearness* is missing, its part is left out.

    *scale* is for raw scores, *word_scale* for scores by words alone. In a hybrid search, *sole* has the tools whose
    words are worth more than BM25F gives. *conversion* is the text of a request that may ask for a conversion.
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
        """The raw scores of *rows* from their given word scores."""
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
