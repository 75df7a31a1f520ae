"""Why a search finds a tool, or does not: every part of its score, and its place among all tools that may be seen."""

from __future__ import annotations

import numpy as np

from toolsearch_indexes.documents import Explanation, RankOutcome, WordMatch
from toolsearch_indexes.keyword import FIELDS, WordReading
from toolsearch_indexes.request import Request, Together, word_scores
from toolsearch_indexes.scores import FOLLOWING, LEAST
from toolsearch_indexes.vectors import IntArray
from toolsearch_indexes.views import SearchSpace
from toolsearch_indexes.word_forms import Lexicon


def explain_row(
    space: SearchSpace, request: Request, lexicon: Lexicon, number: int, row: int, *, tool: str, strategy: str
) -> Explanation:
    """Explain the score of a visible *row* of segment *number*, as for a tool that does not fit."""
    segment = space.segments[number]
    words = word_matches(space, request, lexicon, number, row)
    here = np.asarray([row])
    word_score = float(word_scores([request], space, number)[0, row])
    raw = float(request.raw(segment, here, np.asarray([word_score], np.float32))[0])
    word_score += sum(request.weight * holder.worth for holder in request.sole_in(segment) if holder.row == row)
    cosine = deviations = None
    if request.nearness and segment.vectors:
        together = Together([request.nearness])
        cosine = float(together.cosines(segment.vectors, here)[0, 0])
        deviations = float(together.deviations(segment, here)[0, 0])
    best = _best_raw(space, request, raw)
    outcome: RankOutcome = "no match"
    score = 0.0
    if word_score > 0 or request.nearness is not None:
        outcome, score = "does not fit", request.scale.score(raw)
    held = {match.word for match in words}
    return Explanation(
        tool,
        strategy,
        outcome,
        None,
        score,
        words,
        tuple(reading.word for reading in request.words.readings if reading.word not in held) if request.words else (),
        word_score,
        cosine,
        deviations or 0.0,
        request.weight if request.nearness else 0.0,
        raw,
        ((LEAST if raw == best else FOLLOWING) - request.scale.offset) / request.scale.slope,
    )


def word_matches(
    space: SearchSpace, request: Request, lexicon: Lexicon, number: int, row: int
) -> tuple[WordMatch, ...]:
    """The words of the request that *row* contains, ordered by worth and then by the word."""
    readings = request.words.readings if request.words else ()
    found = (_match(space, lexicon, number, row, reading) for reading in readings)
    return tuple(sorted(filter(None, found), key=lambda match: (-match.score, match.word)))


def _match(space: SearchSpace, lexicon: Lexicon, number: int, row: int, reading: WordReading) -> WordMatch | None:
    part, weights_of = space.segments[number].keyword, space.terms.weights(number)
    terms: list[str] = []
    fields: dict[str, None] = {}
    best = 0.0
    for term, weight in reading.alternatives:
        posting, weighted = part.posting(term, row), weights_of(term)
        if posting is not None and weighted is not None:
            terms.append(lexicon.terms[term])
            fields.update((FIELDS[field], None) for field in np.flatnonzero(part.counts[posting]).tolist())
            best = max(best, float(weighted[1][weighted[0] == row][0]) * weight)
    return WordMatch(reading.word, tuple(terms), tuple(fields), best) if terms else None


def _best_raw(space: SearchSpace, request: Request, raw: float) -> float:
    """The best raw score of all visible tools; *raw* is one of these scores."""
    for number, (segment, allowed) in enumerate(zip(space.segments, space.allowed, strict=True)):
        rows: IntArray = np.arange(segment.size) if allowed is None else np.flatnonzero(allowed)
        scores = request.raw(segment, rows, word_scores([request], space, number)[0, rows])
        raw = max(raw, float(scores.max(initial=raw)))
    return raw
