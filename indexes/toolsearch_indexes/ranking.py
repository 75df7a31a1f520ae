"""From an arm's scores to hits: over all segments, within what may be seen, best first, equal scores by name.

A ranking is that of all tools that may be seen, however many of them are asked for: the first few of many are the few.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.calibration import SURE_SCORE
from toolsearch_indexes.documents import Confidence, Hit
from toolsearch_indexes.keyword import BoolArray, FloatArray
from toolsearch_indexes.regex import CompiledPattern
from toolsearch_indexes.request import Request
from toolsearch_indexes.segments import Segment
from toolsearch_indexes.space import SearchSpace

RowArray = NDArray[np.int64]
Sureness: TypeAlias = Literal["by its words", "by a part"]
_Scored: TypeAlias = tuple[RowArray, FloatArray]  # rows of one segment and a score for each

_NO_ROWS: RowArray = np.empty(0, np.int64)
_NO_SCORES: FloatArray = np.empty(0, np.float32)
_NOTHING_UNSEEN = -math.inf
_ROUNDED_UP = 1 + 1e-6  # more than what a sum in float32 may be above one in float64
_CANDIDATES = 100  # rows that each arm proposes at first
_SPARE = 8  # rows beyond the limit that are proposed where nothing is fused, so that a tie at the limit is seen
_DEEPER = 8  # times as many, while a row that no arm has proposed might belong to the best
_MOVED = 20  # the first places, among which favour moves tools
_FAVOUR = 0.7  # log odds
SURE_PLACE = 5  # the last place that what is sure of itself gets


class _Near(NamedTuple):
    """Rows of one segment, and the greatest cosine that another of its rows may have."""

    rows: RowArray
    most: float


class Sure(NamedTuple):
    """A tool that has a place in an answer whatever its score for all of the request, and why."""

    hit: Hit
    why: Sureness


class Ranking(NamedTuple):
    """The best hits for a request, and what is *sure* whatever its place among them."""

    hits: list[Hit]
    sure: list[Sure]


def rank(space: SearchSpace, request: Request, limit: int, favour: Mapping[str, float]) -> Ranking:
    """The best *limit* rows, if the best fits; and in a fusion the best by words alone, if these make sure of it.

    *favour*, in [0, 1] by name, moves the first 20 among each other by a small step.
    """
    best, by_word = _best_rows(space, request, max(limit, _MOVED) if favour else limit)
    confidence: Confidence = "high" if best and request.scale.score(best[0][0]) >= SURE_SCORE else "low"
    if favour:
        moved = [(raw + favoured(request, favour, name), name) for raw, name in best[:_MOVED]]
        best[:_MOVED] = sorted(moved, key=_by_score_and_name)
    hits = [Hit(name, request.scale.score(raw), confidence) for raw, name in best[:limit]]
    return Ranking(hits, _sure_by_words(space, request, by_word) if request.is_fused else [])


def favoured(request: Request, favour: Mapping[str, float], name: str) -> float:
    """What *favour* adds to the raw score of *name*."""
    return _FAVOUR / request.scale.slope * min(1.0, favour.get(name, 0.0))


def _best_rows(space: SearchSpace, request: Request, count: int) -> tuple[list[tuple[float, str]], list[_Scored]]:
    """The best *count* rows that may stand in an answer, with their raw scores; none if the best is no answer. And the
    best by words alone.

    The best sum need not be the best of either arm. So each proposes many, and more of them until what none has
    proposed cannot be among the best.
    """
    word_scores = [request.word_scores(space, number) for number in range(len(space.segments))]
    proposals = _first_proposals(request, count)
    while True:
        by_word = _best_of_all(list(map(_by_word, word_scores, space.allowed, repeat(proposals))), proposals)
        if request.nearness is None:
            best, unseen = _best(space, by_word, count), _NOTHING_UNSEEN
        else:
            near = [_by_meaning(*of, request, proposals) for of in zip(space.segments, space.allowed, strict=True)]
            best = _best(space, _scored(space, request, word_scores, by_word, near), count)
            unseen = _most_unseen(request, by_word, near, proposals)
        if not request.scale.fits(max(unseen, best[0][0] if best else unseen)):
            return [], by_word
        if not request.scale.follows(unseen) or (len(best) == count and best[-1][0] > unseen):
            return [(raw, name) for raw, name in best if request.scale.follows(raw)], by_word
        proposals *= _DEEPER


def _first_proposals(request: Request, count: int) -> int:
    if request.nearness is None:
        return count
    is_sum = request.is_fused or len(request.nearness.meaning.parts) > 0
    return max(_CANDIDATES, count) if is_sum else count + _SPARE


def _scored(
    space: SearchSpace,
    request: Request,
    word_scores: Sequence[FloatArray],
    by_word: Sequence[_Scored],
    near: Sequence[_Near],
) -> list[_Scored]:
    """The raw scores of what either arm proposes."""
    found: list[_Scored] = []
    for segment, scores, (rows, _), (others, _) in zip(space.segments, word_scores, by_word, near, strict=True):
        candidates = np.union1d(rows, others)
        found.append((candidates, request.raw(segment, candidates, scores[candidates])))
    return found


def _most_unseen(request: Request, by_word: Sequence[_Scored], near: Sequence[_Near], proposals: int) -> float:
    """The most that the raw score of a row can be that is not proposed: of each arm at most the least of the others."""
    cosine = max([most for _, most in near], default=_NOTHING_UNSEEN)
    if request.nearness is None or cosine == _NOTHING_UNSEEN:
        return _NOTHING_UNSEEN
    is_cut = sum(len(rows) for rows, _ in by_word) >= proposals
    least = min(float(scores.min(initial=math.inf)) for _, scores in by_word) if is_cut else 0.0
    meaning = request.weight * max(0.0, request.nearness.unrelated.deviations_of(cosine))
    return (least + meaning) * _ROUNDED_UP


def _sure_by_words(space: SearchSpace, request: Request, by_word: Sequence[_Scored]) -> list[Sure]:
    alone = [Hit(name, request.word_scale.score(raw)) for raw, name in _best(space, by_word, 1)]
    return [Sure(hit, "by its words") for hit in alone if hit.score >= SURE_SCORE]


def _by_word(scores: FloatArray, allowed: BoolArray | None, count: int) -> _Scored:
    visible = scores if allowed is None else np.where(allowed, scores, np.float32(0))
    rows = _top_rows(visible, count)
    return rows, visible[rows]


def _by_meaning(segment: Segment, allowed: BoolArray | None, request: Request, count: int) -> _Near:
    """The *count* rows nearest to the whole request and to each part of it, and how near another row is at most."""
    if segment.vectors is None or request.nearness is None:
        return _Near(_NO_ROWS, _NOTHING_UNSEEN)
    meaning = request.nearness.meaning
    rows, cosines = segment.vectors.search(meaning.whole, count, allowed)
    if len(rows) < count:
        return _Near(rows, _NOTHING_UNSEEN)
    if not len(meaning.parts):
        return _Near(rows, float(cosines[-1]))
    of_parts = [segment.vectors.search(part, count, allowed) for part in meaning.parts]
    most = (cosines[-1] + max(nearness[-1] for _, nearness in of_parts)) / np.float32(2)
    return _Near(np.unique(np.concatenate([rows, *(found for found, _ in of_parts)])), float(most))


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


def with_places_for(ranked: Sequence[Hit], sure: Sequence[Sure]) -> tuple[list[Hit], dict[str, Sureness]]:
    """Move those of *sure* that are not among the first five of *ranked* up to the last of these places.

    The best of *ranked* stays the first. A score that would not fall from its neighbours' is brought between them, so
    that scores fall along an answer. Also says which were moved, and why. *ranked* has at least five hits, unless there
    are no more.
    """
    first = [hit.name for hit in ranked[:SURE_PLACE]]
    missing = {one.hit.name: one for one in reversed(sure) if one.hit.name not in first}
    if not missing:
        return list(ranked), {}
    best = sorted(missing.values(), key=lambda one: (-one.hit.score, one.hit.name))
    moved = best[: SURE_PLACE - 1] if ranked else best
    names: dict[str, Sureness] = {one.hit.name: one.why for one in moved}
    others = [hit for hit in ranked if hit.name not in names]
    place = max(0, min(SURE_PLACE, len(ranked) + len(moved)) - len(moved)) if ranked else 0
    before, behind = others[:place], others[place:]
    return [*before, *_between(before, [one.hit for one in moved], behind), *behind], names


def _between(before: Sequence[Hit], moved: Sequence[Hit], behind: Sequence[Hit]) -> list[Hit]:
    most = before[-1].score if before else 1.0
    least = behind[0].score if behind else 0.0
    confidence = before[0].confidence if before else "high"
    return [Hit(hit.name, max(least, min(most, hit.score)), confidence) for hit in moved]
