"""A request as an index reads it at one moment: its words, its meaning, and the scales of its scores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from toolsearch_indexes.analysis import STOP_WORDS, name_words, stem, words
from toolsearch_indexes.keyword import BoolArray, FloatArray, KeywordParameters
from toolsearch_indexes.keyword_query import KeywordQuery, keyword_scores, read_query
from toolsearch_indexes.scores import (
    KEYWORD_REQUESTS,
    SEMANTIC_REQUESTS,
    SEMANTIC_SLOPE,
    Scale,
    Unrelated,
    hybrid_scale,
    keyword_scale,
    semantic_scale,
    semantic_weight,
)
from toolsearch_indexes.segments import Segment
from toolsearch_indexes.semantic import SemanticArm, SemanticStatistics
from toolsearch_indexes.vectors import IntArray, Near, VectorPart
from toolsearch_indexes.views import SearchSpace
from toolsearch_indexes.word_forms import Lexicon

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


_NEARER = np.float32(SEMANTIC_REQUESTS / SEMANTIC_SLOPE)  # deviations that requests of users bring a tool nearer
_NO_WORDS = KeywordQuery((), 0.0, 0, ())


class Bounds(NamedTuple):
    """Bounds for how near *rows* (n,) of a segment are to each of *m* requests, *least* and *most* (m, n), and upper
    bounds for all *others* (m, 1), in deviations.
    """

    rows: IntArray
    least: FloatArray
    most: FloatArray
    others: FloatArray


class Nearness(NamedTuple):
    """The semantic side of a request: the *places* of its vectors, of the whole and of each part, among the *vectors*
    (v, d) of all requests that were read with it, and the scale of their cosines.
    """

    vectors: FloatArray
    places: Sequence[int]
    unrelated: Unrelated


class Together:
    """The semantic sides of *m* requests that were read together: each of their *v* vectors is compared once."""

    def __init__(self, sides: Sequence[Nearness]) -> None:
        used = list(dict.fromkeys(chain.from_iterable(side.places for side in sides)))
        places = {place: number for number, place in enumerate(used)}
        self._vectors = sides[0].vectors[used]
        self._wholes = [places[side.places[0]] for side in sides]
        self._parts = [[places[place] for place in side.places[1:]] for side in sides]
        self._unrelated = sides[0].unrelated

    def bounds(self, segment: Segment, allowed: BoolArray | None, wanted: int, *, again: bool) -> Bounds:
        """Separate about *wanted* rows near each vector from all others; *again* says that fewer were not enough."""
        if segment.vectors is None:
            nothing = np.zeros((len(self._wholes), 1), np.float32)
            return Bounds(np.empty(0, np.int64), nothing[:, :0], nothing[:, :0], nothing)
        near = segment.vectors.near_each(self._vectors, wanted, allowed, again=again)
        rows, likely = _side_by_side(near, segment.size)
        if allowed is not None:
            here = allowed[rows]
            rows, likely = rows[here], likely[:, here]
        # Rows that are not known to be near a vector may be as near to it as all others.
        most = np.maximum(likely + near.margins, near.others)
        bounds = np.concatenate([likely - near.margins, most, near.others], axis=1)
        deviations, count = self._unrelated.deviations(self._of_requests(bounds)), len(rows)
        least, most = deviations[:, :count], deviations[:, count:-1]
        for each in (least, most):
            _take_back(each, segment.keyword.has_requests[rows])
        return Bounds(rows, least, most, deviations[:, -1:])

    def cosines(self, vectors: VectorPart, rows: IntArray) -> FloatArray:
        """How near each of *rows* is to each request, (m, n): half by the whole of it, half by the nearest part."""
        return self._of_requests(vectors.cosines_of(self._vectors, rows))

    def deviations(self, segment: Segment, rows: IntArray) -> FloatArray:
        """As `cosines`, in deviations of unrelated cosines, less what requests bring a tool nearer."""
        if segment.vectors is None:
            return np.zeros((len(self._wholes), len(rows)), np.float32)
        deviations = self._unrelated.deviations(self.cosines(segment.vectors, rows))
        _take_back(deviations, segment.keyword.has_requests[rows])
        return deviations

    def _of_requests(self, cosines: FloatArray) -> FloatArray:
        """(m, n), where *cosines* (v, n) are those of the vectors."""
        found: FloatArray = cosines[self._wholes]
        for number, parts in enumerate(self._parts):
            if parts:
                found[number] = (found[number] + cosines[parts].max(axis=0)) / np.float32(2)
        return found


def _side_by_side(near: Near, size: int) -> tuple[IntArray, FloatArray]:
    """All rows (n,) that are near a vector, of *size* rows, and their likely cosines (v, n); minus infinity for those
    that are not near this vector.
    """
    if len(near.rows) == 1:
        return near.rows[0], near.likely
    is_near = np.zeros(size, np.bool_)
    is_near[near.rows] = True
    rows = is_near.nonzero()[0]
    place = np.empty(size, np.intp)
    place[rows] = np.arange(len(rows))
    likely = np.full((len(near.rows), len(rows)), -np.inf, np.float32)
    likely[np.arange(len(near.rows))[:, np.newaxis], place[near.rows]] = near.likely
    return rows, likely


class Request(NamedTuple):
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

    def raw(self, segment: Segment, rows: IntArray, word_scores: FloatArray) -> FloatArray:
        """The raw scores of *rows* from their given word scores."""
        if self.nearness is None:
            return word_scores
        return self.raw_of(segment, rows, word_scores, Together([self.nearness]).deviations(segment, rows)[0])

    def raw_of(self, segment: Segment, rows: IntArray, word_scores: FloatArray, deviations: FloatArray) -> FloatArray:
        """The raw scores of *rows*, whose *deviations* are known, too."""
        raw: FloatArray = (word_scores + deviations * np.float32(self.weight)).astype(np.float32, copy=False)
        for holder in self.sole_in(segment):
            raw[rows == holder.row] += np.float32(self.weight * holder.worth)
        return raw

    def sole_in(self, segment: Segment) -> Iterator[SoleHolder]:
        return (holder for holder in self.sole if holder.segment is segment)


def word_scores(requests: Sequence[Request], space: SearchSpace, number: int) -> FloatArray:
    """The BM25F score of every row of segment *number* for each request, (m, n), less what requests of users add to
    it; 0 or less where no word matches, anything out of reach.
    """
    queries = [_NO_WORDS if request.words is None else request.words for request in requests]
    scores = keyword_scores(queries, space.terms.gains(number))
    added = [KEYWORD_REQUESTS / request.word_scale.slope if request.words else 0.0 for request in requests]
    # Few rows have requests, or the segment is small, so that their places take less time than a mask of all.
    scores[:, space.segments[number].keyword.rows_with_requests] -= np.array(added, np.float32)[:, np.newaxis]
    return scores


def _take_back(deviations: FloatArray, has_requests: BoolArray) -> None:
    """Subtract what requests of users bring a tool nearer from the *deviations* (m, n) of tools that have some."""
    if has_requests.any():
        np.subtract(deviations, _NEARER, out=deviations, where=has_requests)


def read_request(
    text: str,
    strategy: str,
    space: SearchSpace,
    lexicon: Lexicon,
    parameters: KeywordParameters,
    arm: SemanticArm | None,
) -> Request:
    """As `read_requests`."""
    return read_requests([text], strategy, space, lexicon, parameters, arm)[0]


def read_requests(
    texts: Sequence[str],
    strategy: str,
    space: SearchSpace,
    lexicon: Lexicon,
    parameters: KeywordParameters,
    arm: SemanticArm | None,
) -> list[Request]:
    """Read *texts* together. *strategy* is "keyword", or with an *arm* "semantic" or "hybrid".

    Filler is read by its words alone: to an encoder, "the of a in" is near something by chance.
    """
    queries = [read_query(text, lexicon, space.terms, parameters) for text in texts]
    requests = [_by_words(text, words, space) for text, words in zip(texts, queries, strict=True)]
    if strategy == "keyword" or arm is None or space.semantic is None:
        return requests
    told = [number for number, words in enumerate(queries) if not words.filler]
    vectors, places = arm.meanings([texts[number] for number in told])
    scale_of = semantic_scale if strategy == "semantic" else hybrid_scale
    for number, here in zip(told, places, strict=True):
        words = queries[number]
        familiarity = familiarity_of(vectors[here[0]], arm.unrelated, space.semantic)
        scale = scale_of(familiarity, space.terms.documents, sense_of(words, arm), arm.surplus)
        nearness, by_words = Nearness(vectors, here, arm.unrelated), requests[number]
        if strategy == "semantic":
            requests[number] = Request(None, nearness, 1.0, scale, by_words.word_scale, (), by_words.conversion)
        else:
            weight, sole = semantic_weight(texts[number]), sole_holders(words, space, parameters)
            requests[number] = Request(words, nearness, weight, scale, by_words.word_scale, sole, by_words.conversion)
    return requests


def _by_words(text: str, words: KeywordQuery, space: SearchSpace) -> Request:
    scale = keyword_scale(words.ideal, space.terms.documents)
    return Request(words, None, 0.0, scale, scale, conversion=text if may_tell_direction(text) else "")


def familiarity_of(request: FloatArray, unrelated: Unrelated, tools: SemanticStatistics) -> float:
    """How near all *tools* are to the vector of a *request* on average, in deviations of unrelated cosines."""
    return unrelated.deviations_of(tools.mean_cosine(request))


def sense_of(words: KeywordQuery, arm: SemanticArm) -> float:
    """The share of the words that a tool holds or the encoder knows, in [0, 1]."""
    foreign = sum(not arm.knows(word) for word in words.unknown)
    return 1 - foreign / words.words if words.words else 0.0
