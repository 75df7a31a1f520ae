"""From an arm's scores to hits: over all segments, within what may be seen, best first, equal scores by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    """The best *limit* rows that fit. *favour*, in [0, 1] by name, moves them among each other by a small step."""
    scale = request.scale
    looked_at = _MOVED * limit if favour else limit
    found: list[tuple[float, str]] = []
    scored = _best_of_all(list(_scored(space, request, looked_at)), looked_at)
    for segment, (rows, raws) in zip(space.segments, scored, strict=True):
        found += _named(segment, rows, raws)
    best = [(raw, name) for raw, name in _best(found, looked_at) if scale.fits(raw)]
    confidence: Confidence = "high" if best and scale.score(best[0][0]) >= SURE_SCORE else "low"
    if favour:
        step = _FAVOUR / scale.slope
        best = _best([(raw + step * min(1.0, favour.get(name, 0.0)), name) for raw, name in best], limit)
    return [Hit(name, scale.score(raw), confidence) for raw, name in best]


def _scored(space: SearchSpace, request: Request, looked_at: int) -> Iterator[_Scored]:
    """Give, for each segment, its rows among the best of either arm in the whole index, and their raw scores.

    Both arms propose many rows where they are fused, for the best sum need not be the best of either.
    """
    is_fused = request.words is not None and request.nearness is not None
    count = max(_CANDIDATES, looked_at) if is_fused else looked_at
    scores = [request.word_scores(segment) for segment in space.segments]
    by_word = [_by_word(*given, count) for given in zip(scores, space.allowed, strict=True)]
    by_meaning = [_by_meaning(*given, request, count) for given in zip(space.segments, space.allowed, strict=True)]
    proposed = zip(_best_of_all(by_word, count), _best_of_all(by_meaning, count), strict=True)
    for segment, of_segment, ((one, _), (other, _)) in zip(space.segments, scores, proposed, strict=True):
        rows = np.union1d(one, other)
        yield rows, request.raw(segment, rows, of_segment[rows])


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


def _best(found: Sequence[tuple[float, str]], limit: int) -> list[tuple[float, str]]:
    return sorted(found, key=lambda scored: (-scored[0], scored[1]))[:limit]


def with_places_for(ranked: Sequence[Hit], sure: Sequence[Hit], limit: int) -> list[Hit]:
    """Return the best of *ranked*, with those of *sure* that are not among them in place of the last."""
    hits = list(ranked[:limit])
    names = {hit.name for hit in hits}
    missing = list({hit.name: hit for hit in sure if hit.name not in names}.values())[: limit - 1]
    if not missing:
        return hits
    return sorted([*hits[: limit - len(missing)], *missing], key=lambda hit: (-hit.score, hit.name))
