"""A request as one moment of an index reads it: its words, its meaning, and what scores are worth for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from toolsearch_indexes.calibration import Scale, hybrid_scale, keyword_scale, semantic_scale
from toolsearch_indexes.directions import may_tell_direction
from toolsearch_indexes.fusion import Unrelated, semantic_weight
from toolsearch_indexes.keyword import BoolArray, FloatArray, KeywordParameters
from toolsearch_indexes.keyword_query import KeywordQuery, keyword_scores, read_query
from toolsearch_indexes.lexicon import Lexicon
from toolsearch_indexes.segments import Segment
from toolsearch_indexes.semantic import Meaning, SemanticArm, SemanticStatistics
from toolsearch_indexes.sole_holders import SoleHolder, sole_holders
from toolsearch_indexes.space import SearchSpace
from toolsearch_indexes.vectors import IntArray, VectorPart

# The rows of a part of the index that are nearest to a vector, of those that may be found, and their cosines: by the
# part's identity, the vector's bytes, and how many were asked for.
Nearest: TypeAlias = dict[tuple[int, bytes, int], tuple[IntArray, FloatArray]]


@dataclass(frozen=True, slots=True)
class Nearness:
    """What the semantic arm makes of a request: its vectors, and the yardstick for their cosines.

    *known* is what was found before for other requests of one search, whose parts are looked for by themselves, too.
    """

    meaning: Meaning
    unrelated: Unrelated
    known: Nearest = field(default_factory=Nearest)

    def nearest(
        self, vectors: VectorPart, query: FloatArray, count: int, allowed: BoolArray | None
    ) -> tuple[IntArray, FloatArray]:
        """As `VectorPart.search`."""
        key = (id(vectors), query.tobytes(), count)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = vectors.search(query, count, allowed)
        return found

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


def read_request(
    text: str,
    strategy: str,
    space: SearchSpace,
    lexicon: Lexicon,
    parameters: KeywordParameters,
    arm: SemanticArm | None,
    known: Nearest | None = None,
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
    nearness = Nearness(arm.meaning(text), arm.unrelated, Nearest() if known is None else known)
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
