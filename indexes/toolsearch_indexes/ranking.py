"""From an arm's scores to hits: over all segments, within what may be seen, best first, equal scores by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.calibration import SURE_SCORE, Scale
from toolsearch_indexes.documents import Confidence, Hit
from toolsearch_indexes.fusion import Unrelated, fuse
from toolsearch_indexes.keyword import BoolArray, FloatArray, KeywordParameters
from toolsearch_indexes.keyword_query import KeywordQuery, keyword_scores
from toolsearch_indexes.regex import CompiledPattern
from toolsearch_indexes.segments import Segment
from toolsearch_indexes.selection import Selection, allowed_rows
from toolsearch_indexes.semantic import Meaning

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


class MeaningArm(NamedTuple):
    """One query's vectors, what unrelated cosines are, and the weight of one deviation of them next to the words."""

    meaning: Meaning
    unrelated: Unrelated
    weight: float


def rank_keyword(space: SearchSpace, arm: KeywordArm, scale: Scale, limit: int) -> list[Hit]:
    found: list[tuple[float, str]] = []
    for segment, scores, allowed in zip(space.segments, arm.scores, space.allowed, strict=True):
        visible = scores if allowed is None else np.where(allowed, scores, np.float32(0))
        rows = _top_rows(visible, limit)
        found += _named(segment, rows, visible[rows])
    return _judged(found, scale, limit)


def rank_semantic(space: SearchSpace, arm: MeaningArm, scale: Scale, limit: int) -> list[Hit]:
    found: list[tuple[float, str]] = []
    for segment, allowed in zip(space.segments, space.allowed, strict=True):
        rows = _near_rows(segment, arm.meaning, limit, allowed)[0]
        found += _named(segment, rows, arm.unrelated.deviations(_cosines(segment, arm.meaning, rows)))
    return _judged(found, scale, limit)


def rank_hybrid(space: SearchSpace, words: KeywordArm, arm: MeaningArm, scale: Scale, limit: int) -> list[Hit]:
    """Add both arms' scores for the best rows of each."""
    found: list[tuple[float, str]] = []
    candidates = _candidates(space, words, arm.meaning, max(_CANDIDATES, 4 * limit))
    for segment, scores, rows in zip(space.segments, words.scores, candidates, strict=True):
        nearness = arm.unrelated.deviations(_cosines(segment, arm.meaning, rows))
        found += _named(segment, rows, fuse(scores[rows], nearness, arm.weight))
    return _judged(found, scale, limit)


def _candidates(space: SearchSpace, words: KeywordArm, meaning: Meaning, count: int) -> list[RowArray]:
    """Return, for each segment, its rows among the best *count* allowed ones of either arm in the whole index."""
    by_word: list[tuple[RowArray, FloatArray]] = []
    by_meaning: list[tuple[RowArray, FloatArray]] = []
    for segment, scores, allowed in zip(space.segments, words.scores, space.allowed, strict=True):
        visible = scores if allowed is None else np.where(allowed, scores, np.float32(0))
        rows = _top_rows(visible, count)
        by_word.append((rows, visible[rows]))
        by_meaning.append(_near_rows(segment, meaning, count, allowed))
    return list(map(np.union1d, _best_of_all(by_word, count), _best_of_all(by_meaning, count)))


def _near_rows(
    segment: Segment, meaning: Meaning, count: int, allowed: BoolArray | None
) -> tuple[RowArray, FloatArray]:
    """The *count* rows nearest to the whole request or to a part of it, and how near the nearest of these is."""
    if segment.vectors is None:
        return _NO_ROWS, _NO_SCORES
    rows, cosines = segment.vectors.search(meaning.whole, count, allowed)
    if not len(meaning.parts):
        return rows, cosines
    found = [rows, *(segment.vectors.search(part, count, allowed)[0] for part in meaning.parts)]
    rows = np.unique(np.concatenate(found))
    return rows, _cosines(segment, meaning, rows)


def _best_of_all(proposed: Sequence[tuple[RowArray, FloatArray]], count: int) -> list[RowArray]:
    """Cut the rows that the segments propose, with their scores, to the best *count* together and all that tie."""
    scores = np.concatenate([_NO_SCORES, *(scores for _, scores in proposed)])
    least = np.partition(scores, -count)[-count] if len(scores) > count else -np.inf
    return [rows[scores >= least] for rows, scores in proposed]


def _cosines(segment: Segment, meaning: Meaning, rows: RowArray) -> FloatArray:
    return meaning.cosines(segment.vectors, rows) if segment.vectors else np.zeros(len(rows), np.float32)


def rank_regex(space: SearchSpace, pattern: CompiledPattern, limit: int) -> list[Hit]:
    found: list[tuple[float, str]] = []
    for segment, allowed in zip(space.segments, space.allowed, strict=True):
        rows, scores = segment.regex.scan(pattern, allowed, limit=limit)
        best = _top_rows(scores, limit)
        found += _named(segment, rows[best], scores[best])
    return [Hit(name, score) for score, name in _best(found, limit)]


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


def _named(segment: Segment, rows: RowArray, scores: FloatArray) -> list[tuple[float, str]]:
    names = segment.names.names
    return [(score, names[row]) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)]


def _judged(found: Sequence[tuple[float, str]], scale: Scale, limit: int) -> list[Hit]:
    """The best *limit*, if the best of them fits at all: what comes after it may be what was meant."""
    best = _best(found, limit)
    if not best or not scale.fits(best[0][0]):
        return []
    confidence: Confidence = "high" if scale.score(best[0][0]) >= SURE_SCORE else "low"
    return [Hit(name, scale.score(raw), confidence) for raw, name in best]


def _best(found: Sequence[tuple[float, str]], limit: int) -> list[tuple[float, str]]:
    return sorted(found, key=lambda scored: (-scored[0], scored[1]))[:limit]
