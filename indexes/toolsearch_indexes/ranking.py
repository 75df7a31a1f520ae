"""Turns scores into hits over the visible tools of all segments: best first, equal scores by name.

The order does not depend on the limit: a short answer is the beginning of a longer one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain, repeat
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.confidence import compared
from toolsearch_indexes.documents import Hit
from toolsearch_indexes.keyword import BoolArray, FloatArray
from toolsearch_indexes.regex import CompiledPattern
from toolsearch_indexes.request import Bounds, Direction, Request, Together, direction, word_scores
from toolsearch_indexes.scores import SURE_SCORE, Scale
from toolsearch_indexes.segments import Segment
from toolsearch_indexes.views import SearchSpace

RowArray = NDArray[np.int64]
_Scored: TypeAlias = tuple[RowArray, FloatArray]  # rows of one segment and a score for each

_NO_ROWS: RowArray = np.empty(0, np.int64)
_NO_SCORES: FloatArray = np.empty(0, np.float32)
_ROUNDING_ERROR = 1e-6  # an upper bound of the relative rounding error of a float32 sum
_FIRST_WANTED = 32  # nearest rows that each vector is asked for at first
_MOST_COMPARED = 1_000  # rows whose vectors may be compared, in addition to the wanted ones
_WANTED_FACTOR = 8  # the factor by which more nearest rows are asked for, while too many rows remain to be compared
_PLACES_FOR_FAVOUR = 20  # first places in which favour can move tools
_MOST_FAVOUR = 0.7  # log odds that favour adds at most
MERGED = 10  # hits for a request, and for each of its parts, that count in the order of an answer
_NEXT_OF_PART, _NEXT_OF_WHOLE = 0.4, 0.8  # what a hit is worth beside the one before it
_WHOLE = 1.5  # the worth of the whole of a request beside one of its two parts
SURE_PLACE = 5  # the worst place of a tool that is sure to belong in the answer


class RankedRow(NamedTuple):
    """A row of a segment, by its number. The raw score is *negated*: the best sorts first, equal ones by name."""

    negated: float
    name: str
    segment: int
    row: int

    @property
    def raw(self) -> float:
        return -self.negated


class RankedHits(NamedTuple):
    """The best hits for a request, the place of the *first*, and the tools whose words are *sure* to get a place."""

    hits: list[Hit]
    first: RankedRow | None
    sure: Callable[[], list[Hit]]


class Asked(NamedTuple):
    """A request for the best *limit* tools."""

    request: Request
    limit: int


def rank(space: SearchSpace, request: Request, limit: int, favour: Mapping[str, float]) -> RankedHits:
    """As `rank_each`."""
    return rank_each(space, [Asked(request, limit)], favour)[0]


def rank_each(space: SearchSpace, asked: Sequence[Asked], favour: Mapping[str, float]) -> list[RankedHits]:
    """The best rows for each request, if the best one fits. A hybrid search adds the best row by words if its words are
    a sure match. The requests were read together.

    Among the first five, a conversion in the requested direction swaps places with one in the opposite direction. Among
    the first 20, *favour*, in [0, 1] by name, moves tools by a small step.
    """
    if not space.segments:
        return [RankedHits([], None, list) for _ in asked]
    wanted = asked
    if favour:
        wanted = [one._replace(limit=max(one.limit, _PLACES_FOR_FAVOUR)) for one in asked]
    words = [word_scores([one.request for one in asked], space, number) for number in range(len(space.segments))]
    both = [number for number, one in enumerate(asked) if one.request.nearness is not None]
    best = _best_of_both(space, wanted, both, words, _FIRST_WANTED) if both else {}
    for number, one in enumerate(wanted):
        if number not in best:
            best[number] = _best_by_word(space, one, [each[number] for each in words])
    return [
        _ranking(space, one, best[number], favour, [each[number] for each in words]) for number, one in enumerate(asked)
    ]


def _ranking(
    space: SearchSpace, asked: Asked, best: list[RankedRow], favour: Mapping[str, float], words: Sequence[FloatArray]
) -> RankedHits:
    request = asked.request
    is_sure = bool(best) and request.scale.score(best[0].raw) >= SURE_SCORE
    if request.conversion:
        best[:SURE_PLACE] = _this_way_first(space, request.conversion, best[:SURE_PLACE])
    if favour:
        moved = [
            found._replace(negated=-found.raw - favoured(request, favour, found.name))
            for found in best[:_PLACES_FOR_FAVOUR]
        ]
        best[:_PLACES_FOR_FAVOUR] = sorted(moved)
    hits = _hits(best[: asked.limit], request.scale, is_sure=is_sure)
    return RankedHits(hits, best[0] if best else None, partial(_sure_by_words, space, request, words))


def _this_way_first(space: SearchSpace, request: str, best: Sequence[RankedRow]) -> list[RankedRow]:
    """Reorder conversions between the same two things: those in the requested direction take the first places and
    scores.

    Their words and meanings are nearly the same, so scores hardly distinguish them.
    """
    known = {place: of for place, found in enumerate(best) if (of := _direction_of(space, found))}
    asked = direction(request) if len(known) > 1 else None
    if asked is None:
        return list(best)
    way = {place: each for place, of in known.items() if (each := asked.agreement(of))}
    moved = list(best)
    for place, other in zip(way, sorted(way, key=lambda each: -way[each]), strict=True):
        moved[place] = best[other]._replace(negated=best[place].negated)
    return moved


def _direction_of(space: SearchSpace, found: RankedRow) -> Direction | None:
    return direction(space.segments[found.segment].names.own_names[found.row])


def _hits(found: Sequence[RankedRow], scale: Scale, *, is_sure: bool) -> list[Hit]:
    """Make a hit of each, whose confidence is not yet `compared`."""
    least = SURE_SCORE if is_sure else math.inf
    scores = scale.scores([-negated for negated, _, _, _ in found])
    return [Hit(each[1], score, "high" if score >= least else "low") for each, score in zip(found, scores, strict=True)]


def favoured(request: Request, favour: Mapping[str, float], name: str) -> float:
    """The addition of *favour* to the raw score of *name*."""
    return _MOST_FAVOUR / request.scale.slope * min(1.0, favour.get(name, 0.0))


def _best_by_word(space: SearchSpace, asked: Asked, words: Sequence[FloatArray]) -> list[RankedRow]:
    """The best rows for an answer by words alone; none if the best one makes no answer."""
    found = [_by_word(*of, asked.limit) for of in zip(words, space.allowed, strict=True)]
    return _in_answer(asked.request, _best(space, found, asked.limit))


def _best_of_both(
    space: SearchSpace, asked: Sequence[Asked], numbers: list[int], words: Sequence[FloatArray], wanted: int
) -> dict[int, list[RankedRow]]:
    """The best rows for the answers to the requests with these *numbers*; none if the best one makes no answer.

    The best sum need not be the best of either arm. The score of a row's words is known exactly. The score of its
    meaning is known within bounds, which are narrow for the nearest rows. So only rows that may be among the best are
    compared by their vectors. If these are many, more of the nearest rows are asked for.
    """
    some = [asked[number] for number in numbers]
    of_some = words if len(some) == len(asked) else [each[numbers] for each in words]
    together = Together([one.request.nearness for one in some if one.request.nearness])
    is_again, wanted = wanted > _FIRST_WANTED, max(wanted, *(one.limit for one in some))
    bounds = [together.bounds(*of, wanted, again=is_again) for of in zip(space.segments, space.allowed, strict=True)]
    possible = _possibly_best(space, some, of_some, bounds)
    counts = [sum(map(len, each)) for each in zip(*possible, strict=True)]
    again: list[int] = []
    if max(counts) > _MOST_COMPARED and any(of.others.any() for of in bounds):
        again = [
            number
            for number, one, count in zip(numbers, some, counts, strict=True)
            if count > _MOST_COMPARED + one.limit
        ]
        possible = [
            [_NO_ROWS if number in again else rows for number, rows in zip(numbers, each, strict=True)]
            for each in possible
        ]
    found = zip(*map(partial(_scored, some, together), space.segments, of_some, possible), strict=True)
    best = {
        number: _in_answer(one.request, _best(space, each, one.limit))
        for number, one, each in zip(numbers, some, found, strict=True)
    }
    return best | _best_of_both(space, asked, again, words, wanted * _WANTED_FACTOR) if again else best


def _in_answer(request: Request, best: Sequence[RankedRow]) -> list[RankedRow]:
    if not best or not request.scale.fits(best[0].raw):
        return []
    kept = len(best)
    # Hits are sorted, so that only the last ones need a look.
    while kept and not request.scale.follows(best[kept - 1].raw):
        kept -= 1
    return list(best[:kept])


def _possibly_best(
    space: SearchSpace, asked: Sequence[Asked], words: Sequence[FloatArray], bounds: Sequence[Bounds]
) -> list[list[RowArray]]:
    """The rows of each segment that may be among the best for an answer to each request."""
    weights = np.array([[one.request.weight] for one in asked], np.float32)
    near = [scores.take(of.rows, axis=1) for scores, of in zip(words, bounds, strict=True)]
    known = [each + weights * of.least for each, of in zip(near, bounds, strict=True)]
    enough = _enough(asked, np.concatenate(known, axis=1, dtype=np.float32))
    found: list[list[RowArray]] = []
    for segment, allowed, scores, near_scores, of in zip(
        space.segments, space.allowed, words, near, bounds, strict=True
    ):
        possible = scores >= enough - weights * of.others
        possible[:, of.rows] = near_scores + weights * of.most >= enough
        for line, one in zip(possible, asked, strict=True):
            for holder in one.request.sole_in(segment):
                line[holder.row] = True
        rows = [line.nonzero()[0] for line in possible]
        found.append(rows if allowed is None else [each[allowed[each]] for each in rows])
    return found


def _enough(asked: Sequence[Asked], known: FloatArray) -> FloatArray:
    """The raw scores that rows need to be among the best, (m, 1); *known* are lower bounds for some rows, (m, n)."""
    enough: list[float] = []
    for (request, limit), of_some in zip(asked, known, strict=True):
        of_best = float(_least_of_best(of_some, limit)) if len(of_some) >= limit else 0.0
        enough.append(max(of_best, request.scale.least_following))
    return np.array(enough, np.float32)[:, np.newaxis] * np.float32(1 - _ROUNDING_ERROR)


def _scored(
    asked: Sequence[Asked], together: Together, segment: Segment, words: FloatArray, rows: Sequence[RowArray]
) -> list[_Scored]:
    """The raw scores of *rows* of a segment, which belong to one request each."""
    if not any(map(len, rows)):
        return [(_NO_ROWS, _NO_SCORES) for _ in rows]
    all_near, end = together.deviations(segment, np.concatenate(rows)), 0
    found: list[_Scored] = []
    for one, scores, here, near in zip(asked, words, rows, all_near, strict=True):
        start, end = end, end + len(here)
        found.append((here, one.request.raw_of(segment, here, scores[here], near[start:end])))
    return found


def _sure_by_words(space: SearchSpace, request: Request, word_scores: Sequence[FloatArray]) -> list[Hit]:
    most = max((float(scores.max(initial=0)) for scores in word_scores), default=0.0)
    if not request.is_fused or request.word_scale.score(most) < SURE_SCORE:
        return []  # this check is quick, and most requests have no word that tells so much
    by_word = [_by_word(*of, 1) for of in zip(word_scores, space.allowed, strict=True)]
    alone = [Hit(found.name, request.word_scale.score(found.raw), "high") for found in _best(space, by_word, 1)]
    return [hit for hit in alone if hit.score >= SURE_SCORE]


def _by_word(scores: FloatArray, allowed: BoolArray | None, count: int) -> _Scored:
    visible = scores if allowed is None else scores * allowed  # twice as fast as np.where
    return _top_rows(visible, count)


def _best_of_all(proposed: Sequence[_Scored], count: int) -> list[_Scored]:
    """Cut the rows that the segments propose to the best *count* together and all that tie."""
    if sum(len(rows) for rows, _ in proposed) <= count:
        return list(proposed)
    least = _least_of_best(np.concatenate([scores for _, scores in proposed]), count)
    return [(rows[scores >= least], scores[scores >= least]) for rows, scores in proposed]


def rank_regex(space: SearchSpace, pattern: CompiledPattern, limit: int) -> list[Hit]:
    found: list[_Scored] = []
    for segment, allowed in zip(space.segments, space.allowed, strict=True):
        rows, scores = segment.regex.scan(pattern, allowed, limit=limit)
        best, best_scores = _top_rows(scores, limit)
        found.append((rows[best], best_scores))
    return [Hit(best.name, best.raw, "high") for best in _best(space, found, limit)]


def _top_rows(scores: FloatArray, limit: int) -> _Scored:
    """Return the places of the *limit* best scores above 0, in no order, with all that tie with the last of them."""
    best = float(scores[scores.argmax()]) if len(scores) else 0.0
    if best <= 0:
        return _NO_ROWS, _NO_SCORES
    places = (scores >= (best if limit == 1 else best / 2)).nonzero()[0]
    if len(places) < limit:  # rare, since the best scores are mostly near each other
        places = (scores >= best / 4).nonzero()[0]
    if len(places) < limit:
        places = (scores > 0).nonzero()[0]
    near = scores[places]
    if len(places) > limit:
        is_best = near >= _least_of_best(near, limit)
        return places[is_best], near[is_best]
    return places, near


def _least_of_best(scores: FloatArray, count: int) -> np.float32:
    """The last of the *count* best of at least as many scores."""
    if count == 1:
        return np.float32(scores.max())
    ordered = scores.copy()
    ordered.partition(len(ordered) - count)  # for short arrays twice as fast as np.partition
    return np.float32(ordered[-count])


def _best(space: SearchSpace, found: Sequence[_Scored], count: int) -> list[RankedRow]:
    """The best *count* rows of all segments, by name."""
    best: list[RankedRow] = []
    for number, (segment, (rows, scores)) in enumerate(zip(space.segments, _best_of_all(found, count), strict=True)):
        numbers = rows.tolist()
        best += map(RankedRow, (-scores).tolist(), segment.names.names.at(numbers), repeat(number), numbers)
    best.sort()
    return best[:count]


def with_places_for(ranked: Sequence[Hit], sure: Sequence[Hit]) -> tuple[list[Hit], list[str]]:
    """Move each tool of *sure* that is behind the first five of *ranked* up to the last of these places.

    The best of *ranked* stays the first. The score of a moved hit is put between its neighbours', so that scores fall
    along the answer. The hits are `compared`. The second result has the names of the moved. *ranked* has at least five
    hits, unless there are no more.
    """
    first = [hit.name for hit in ranked[:SURE_PLACE]]
    best = sorted((hit for hit in sure if hit.name not in first), key=lambda hit: (-hit.score, hit.name))
    moved = best[: SURE_PLACE - 1] if ranked else best
    names = [hit.name for hit in moved]
    others = [hit for hit in ranked if hit.name not in names]
    place = max(0, min(SURE_PLACE, len(ranked) + len(moved)) - len(moved)) if ranked else 0
    before, behind = others[:place], others[place:]
    return compared([*before, *_between(before, moved, behind), *behind]), names


def _between(before: Sequence[Hit], moved: Sequence[Hit], behind: Sequence[Hit]) -> list[Hit]:
    most = before[-1].score if before else 1.0
    least = behind[0].score if behind else 0.0
    is_weak = bool(before) and before[0].confidence == "low"
    return [_bounded(hit, max(least, min(most, hit.score)), is_weak=is_weak) for hit in moved]


def _bounded(hit: Hit, score: float, *, is_weak: bool) -> Hit:
    """*hit* with another score. *is_weak* says that no tool of the answer may fit."""
    return replace(hit, score=score, confidence="low" if is_weak or score < SURE_SCORE else hit.confidence)


def merged(
    whole: Sequence[Hit], parts: Sequence[Sequence[Hit]], limit: int | None = None
) -> tuple[list[Hit], list[str]]:
    """Merge the hits for a *whole* request and those for each of its *parts*, at least two, into *limit* at most.

    The best of the whole stays the first. Each of the first MERGED hits of a ranking is worth its squared score, times
    a factor for each place. So the best tools of all parts come before the second best of one. The more parts, the less
    the whole counts: two sentences are often a request and its reason. A hit's score is its best for a part, and the
    first hit's at most that for the whole. Its confidence is that for the part, since tools for other parts are no
    rivals. Scores fall along the answer. The second result has the names of the tools that are there for a part alone.
    """
    worth: defaultdict[str, float] = defaultdict(float)
    for place, hit in enumerate(whole[:MERGED]):
        worth[hit.name] += hit.score**2 * _NEXT_OF_WHOLE**place * _WHOLE / (len(parts) - 1)
    best = {hit.name: hit for hit in whole}
    best |= {hit.name: hit for hit in sorted(chain.from_iterable(parts), key=lambda hit: hit.score)}
    for part in parts:
        for place, hit in enumerate(part[:MERGED]):
            worth[hit.name] += hit.score**2 * _NEXT_OF_PART**place
    found = [hit.name for hit in whole[:MERGED]]
    order = sorted(worth, key=lambda name: (name not in found[:1], -worth[name], name))
    first = [_no_surer_than(hit, best[hit.name]) for hit in whole[:1]]
    hits = [*first, *(best[name] for name in order[len(first) :]), *(hit for hit in whole if hit.name not in worth)]
    return _falling(hits[:limit]), [name for name in order if name not in found]


def _no_surer_than(of_whole: Hit, of_part: Hit) -> Hit:
    """*of_part* with at most the score of *of_whole*, the same tool, and as weak as that."""
    return _bounded(of_part, min(of_whole.score, of_part.score), is_weak=of_whole.confidence == "low")


def _falling(hits: Sequence[Hit]) -> list[Hit]:
    """Lower scores to those of earlier hits. If the first is weak, all are."""
    scores = accumulate((hit.score for hit in hits), min)
    is_weak = bool(hits) and hits[0].confidence == "low"
    return [_bounded(hit, score, is_weak=is_weak) for hit, score in zip(hits, scores, strict=True)]
