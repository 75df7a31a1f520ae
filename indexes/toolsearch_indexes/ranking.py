"""From an arm's scores to hits: over all segments, within what may be seen, best first, equal scores by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.calibration import SURE_SCORE
from toolsearch_indexes.documents import Confidence, Hit
from toolsearch_indexes.keyword import BoolArray, FloatArray
from toolsearch_indexes.regex import CompiledPattern
from toolsearch_indexes.request import Request
from toolsearch_indexes.segments import Segment
from toolsearch_indexes.selection import Selection, allowed_rows

RowArray = NDArray[np.int64]
_Scored: TypeAlias = tuple[RowArray, FloatArray]  # rows of one segment and a score for each

_NO_ROWS: RowArray = np.empty(0, np.int64)
_NO_SCORES: FloatArray = np.empty(0, np.float32)
_CANDIDATES = 100  # rows that each arm proposes to a fusion, at least
_MOVED = 4  # times the limit: from how far down favour may bring a tool up
_FAVOUR = 0.7  # log odds


class SearchSpace(NamedTuple):
    """The segments of one moment, with the rows of each that may be found; None means all of its rows."""

    segments: tuple[Segment, ...]
    allowed: tuple[BoolArray | None, ...]

    @classmethod
    def of(cls, segments: tuple[Segment, ...], selection: Selection | None) -> SearchSpace:
        return cls(segments, tuple(allowed_rows(segment, selection) for segment in segments))


def rank(space: SearchSpace, request: Request, limit: int, favour: Mapping[str, float]) -> list[Hit]:
    """The best *limit* rows, if the best fits; in a fusion also the best by words alone, if these make sure of it.

    *favour*, in [0, 1] by name, moves what fits among each other by a small step.
    """
    looked_at = _MOVED * limit if favour else limit
    # The best sum need not be the best of either arm, so for a fusion each proposes many.
    count = max(_CANDIDATES, looked_at) if request.is_fused else looked_at
    word_scores = [request.word_scores(segment) for segment in space.segments]
    by_word = _best_of_all(list(map(_by_word, word_scores, space.allowed, repeat(count))), count)
    near = [_by_meaning(*given, request, count) for given in zip(space.segments, space.allowed, strict=True)]
    found: list[_Scored] = []
    for segment, scores, (rows, _), (others, _) in zip(
        space.segments, word_scores, by_word, _best_of_all(near, count), strict=True
    ):
        candidates = np.union1d(rows, others)
        found.append((candidates, request.raw(segment, candidates, scores[candidates])))
    best = [(raw, name) for raw, name in _best(space, found, looked_at) if request.scale.follows(raw)]
    if best and not request.scale.fits(best[0][0]):
        best = []
    confidence: Confidence = "high" if best and request.scale.score(best[0][0]) >= SURE_SCORE else "low"
    if favour:
        step = _FAVOUR / request.scale.slope
        moved = [(raw + step * min(1.0, favour.get(name, 0.0)), name) for raw, name in best]
        best = sorted(moved, key=_by_score_and_name)[:limit]
    hits = [Hit(name, request.scale.score(raw), confidence) for raw, name in best]
    return with_places_for(hits, _sure(space, request, by_word), limit) if request.is_fused else hits


def sure_by_words(space: SearchSpace, request: Request) -> list[Hit]:
    """The tool that has a place in a fusion for its words alone, if there is one."""
    by_word = [_by_word(request.word_scores(s), allowed, 1) for s, allowed in zip(*space, strict=True)]
    return _sure(space, request, by_word) if request.is_fused else []


def _sure(space: SearchSpace, request: Request, by_word: Sequence[_Scored]) -> list[Hit]:
    alone = [Hit(name, request.word_scale.score(raw)) for raw, name in _best(space, by_word, 1)]
    return [hit for hit in alone if hit.score >= SURE_SCORE]


def _by_word(scores: FloatArray, allowed: BoolArray | None, count: int) -> _Scored:
    visible = scores if allowed is None else np.where(allowed, scores, np.float32(0))
    rows = _top_rows(visible, count)
    return rows, visible[rows]


def _by_meaning(segment: Segment, allowed: BoolArray | None, request: Request, count: int) -> _Scored:
    """The *count* rows nearest to the whole request or to a part of it, and how near these are."""
    if segment.vectors is None or request.nearness is None:
        return _NO_ROWS, _NO_SCORES
    meaning = request.nearness.meaning
    rows, cosines = segment.vectors.search(meaning.whole, count, allowed)
    if not len(meaning.parts):
        return rows, cosines
    rows = np.unique(
        np.concatenate([rows, *(segment.vectors.search(part, count, allowed)[0] for part in meaning.parts)])
    )
    return rows, meaning.cosines(segment.vectors, rows)


def _best_of_all(proposed: Sequence[_Scored], count: int) -> list[_Scored]:
    """Cut the rows that the segments propose to the best *count* together and all that tie."""
    scores = np.concatenate([_NO_SCORES, *(scores for _, scores in proposed)])
    if len(scores) <= count:
        return list(proposed)
    least = np.partition(scores, -count)[-count]
    return [(rows[scores >= least], scores[scores >= least]) for rows, scores in proposed]


def rank_regex(space: SearchSpace, pattern: CompiledPattern, limit: int) -> list[Hit]:
    found: list[_Scored] = []
    for segment, allowed in zip(space.segments, space.allowed, strict=True):
        rows, scores = segment.regex.scan(pattern, allowed, limit=limit)
        best = _top_rows(scores, limit)
        found.append((rows[best], scores[best]))
    return [Hit(name, score) for score, name in _best(space, found, limit)]


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


def _best(space: SearchSpace, found: Sequence[_Scored], count: int) -> list[tuple[float, str]]:
    """The best *count* rows of all segments, by name."""
    named: list[tuple[float, str]] = []
    for segment, (rows, scores) in zip(space.segments, _best_of_all(found, count), strict=True):
        names = segment.names.names
        named += [(score, names[row]) for row, score in zip(rows.tolist(), scores.tolist(), strict=True)]
    return sorted(named, key=_by_score_and_name)[:count]


def _by_score_and_name(scored: tuple[float, str]) -> tuple[float, str]:
    return -scored[0], scored[1]


def with_places_for(ranked: Sequence[Hit], sure: Sequence[Hit], limit: int) -> list[Hit]:
    """Return the best of *ranked*, with those of *sure* that are not among them in place of the last."""
    hits = list(ranked[:limit])
    names = {hit.name for hit in hits}
    missing = list({hit.name: hit for hit in sure if hit.name not in names}.values())[: limit - 1]
    if not missing:
        return hits
    return sorted([*hits[: limit - len(missing)], *missing], key=lambda hit: (-hit.score, hit.name))
