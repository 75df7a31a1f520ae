"""From an arm's scores to hits: over all segments, within what may be seen, best first, equal scores by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.documents import Hit
from toolsearch_indexes.fusion import DoubleArray, fuse, spread, standardise
from toolsearch_indexes.keyword import BoolArray, FloatArray, KeywordParameters
from toolsearch_indexes.keyword_query import KeywordQuery, keyword_scores
from toolsearch_indexes.regex import CompiledPattern
from toolsearch_indexes.segments import Segment
from toolsearch_indexes.selection import Selection, allowed_rows
from toolsearch_indexes.semantic import SemanticStatistics

RowArray = NDArray[np.int64]

_NO_ROWS: RowArray = np.empty(0, np.int64)
_NO_SCORES: FloatArray = np.empty(0, np.float32)
_CANDIDATES = 100  # rows that each arm proposes to a fusion, at least


class SearchSpace(NamedTuple):
    """The segments of one moment, with the rows of each that may be found; None means all of its rows."""

    segments: tuple[Segment, ...]
    allowed: tuple[BoolArray | None, ...]

    @classmethod
    def of(cls, segments: tuple[Segment, ...], selection: Selection | None) -> SearchSpace:
        return cls(segments, tuple(allowed_rows(segment, selection) for segment in segments))


class KeywordArm(NamedTuple):
    """One query's keyword scores: an array (n,) float32 for each segment, 0 where nothing matches."""

    scores: tuple[FloatArray, ...]
    ideal: float

    @classmethod
    def of(
        cls, space: SearchSpace, query: KeywordQuery, means: tuple[float, ...], parameters: KeywordParameters
    ) -> KeywordArm:
        return cls(tuple(keyword_scores(s.keyword, query, means, parameters) for s in space.segments), query.ideal)


def rank_keyword(space: SearchSpace, arm: KeywordArm, limit: int) -> list[Hit]:
    """Scores are the share of what an ideal tool, full of all words of the query, would get."""
    found: list[tuple[float, str]] = []
    for segment, scores, allowed in zip(space.segments, arm.scores, space.allowed, strict=True):
        visible = scores if allowed is None else np.where(allowed, scores, np.float32(0))
        rows = _top_rows(visible, limit)
        found += _named(segment, rows, visible[rows])
    return _hits(found, limit, lambda score: min(1.0, score / arm.ideal))


def rank_semantic(space: SearchSpace, query: FloatArray, floor: float, limit: int) -> list[Hit]:
    """Scores are cosines; what does not exceed *floor* fits nothing."""
    found: list[tuple[float, str]] = []
    for segment, allowed in zip(space.segments, space.allowed, strict=True):
        if segment.vectors is not None:
            rows, cosines = segment.vectors.search(query, limit, allowed)
            above = cosines > max(floor, 0.0)
            found += _named(segment, rows[above], cosines[above])
    return _hits(found, limit, lambda score: min(1.0, score))


def rank_hybrid(
    space: SearchSpace,
    arm: KeywordArm,
    query: FloatArray,
    statistics: SemanticStatistics,
    floor: float,
    limit: int,
) -> list[Hit]:
    """Fuse both arms' scores of the best rows of each. A row that holds no word of the query must exceed *floor*."""
    keyword_mean, keyword_deviation = _keyword_spread(space, arm)
    semantic_mean, semantic_deviation = statistics.spread(query)
    found: list[tuple[float, str]] = []
    candidates = _candidates(space, arm, query, max(_CANDIDATES, 4 * limit))
    for segment, scores, rows in zip(space.segments, arm.scores, candidates, strict=True):
        words, cosines = scores[rows], _cosines(segment, query, rows)
        relevant = (words > 0) | (cosines > floor)
        fused = fuse(
            standardise(words[relevant], keyword_mean, keyword_deviation),
            standardise(cosines[relevant], semantic_mean, semantic_deviation),
        )
        found += _named(segment, rows[relevant], fused)
    return _hits(found, limit, float)


def _candidates(space: SearchSpace, arm: KeywordArm, query: FloatArray, count: int) -> list[RowArray]:
    """Return, for each segment, its rows among the best *count* allowed ones of either arm in the whole index."""
    by_word: list[tuple[RowArray, FloatArray]] = []
    by_meaning: list[tuple[RowArray, FloatArray]] = []
    for segment, scores, allowed in zip(space.segments, arm.scores, space.allowed, strict=True):
        visible = scores if allowed is None else np.where(allowed, scores, np.float32(0))
        rows = _top_rows(visible, count)
        by_word.append((rows, visible[rows]))
        by_meaning.append(segment.vectors.search(query, count, allowed) if segment.vectors else (_NO_ROWS, _NO_SCORES))
    return list(map(np.union1d, _best_of_all(by_word, count), _best_of_all(by_meaning, count)))


def _best_of_all(proposed: Sequence[tuple[RowArray, FloatArray]], count: int) -> list[RowArray]:
    """Cut the rows that the segments propose, with their scores, to the best *count* together and all that tie."""
    scores = np.concatenate([_NO_SCORES, *(scores for _, scores in proposed)])
    least = np.partition(scores, -count)[-count] if len(scores) > count else -np.inf
    return [rows[scores >= least] for rows, scores in proposed]


def _cosines(segment: Segment, query: FloatArray, rows: RowArray) -> FloatArray:
    return segment.vectors.cosines(query, rows) if segment.vectors else np.zeros(len(rows), np.float32)


def _keyword_spread(space: SearchSpace, arm: KeywordArm) -> tuple[float, float]:
    """Mean and deviation of the keyword scores over all living rows, seen or not."""
    total = squares = 0.0
    count = 0
    for segment, scores in zip(space.segments, arm.scores, strict=True):
        living = (scores if segment.alive is None else scores[segment.alive]).astype(np.float64)
        total += float(living.sum())
        squares += float(np.dot(living, living))
        count += len(living)
    return spread(total, squares, count)


def rank_regex(space: SearchSpace, pattern: CompiledPattern, limit: int) -> list[Hit]:
    found: list[tuple[float, str]] = []
    for segment, allowed in zip(space.segments, space.allowed, strict=True):
        rows, scores = segment.regex.scan(pattern, allowed, limit=limit)
        best = _top_rows(scores, limit)
        found += _named(segment, rows[best], scores[best])
    return _hits(found, limit, float)


def _top_rows(scores: FloatArray, limit: int) -> RowArray:
    """Return the places of the *limit* best scores above 0, and of all that tie with the last of them; in no order."""
    best = scores.max(initial=0)
    places: RowArray = (scores >= best / 2).nonzero()[0] if best > 0 else _NO_ROWS
    if len(places) < limit:  # mostly the best are near each other, and looking through all is not needed
        places = (scores > 0).nonzero()[0]
    if len(places) > limit:
        near = scores[places]
        places = places[near >= np.partition(near, -limit)[-limit]]
    return places


def _named(segment: Segment, rows: RowArray, scores: FloatArray | DoubleArray) -> list[tuple[float, str]]:
    names = segment.names.names
    return [(score, names[row]) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)]


def _hits(found: Sequence[tuple[float, str]], limit: int, public: Callable[[float], float]) -> list[Hit]:
    best = sorted(found, key=lambda scored: (-scored[0], scored[1]))
    return [Hit(name, public(score)) for score, name in best[:limit]]
