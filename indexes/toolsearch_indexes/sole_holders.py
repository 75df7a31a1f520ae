"""A word that only one tool holds speaks for that tool, wherever it holds it.

BM25F gives little for a word deep in a schema. Chance gives more: of n tools that have nothing to do with a request,
the nearest is about sqrt(2 ln n) deviations nearer than the average one. So in a fusion a tool that alone holds a word
of the request is given as much, if it holds the rest of the request, too; less in proportion, if it lacks some of it;
and nothing, if it holds half of it or less: then such a word is mostly a circumstance of the task.

Of 51 requests to the labelled sets that one tool holds all words of, one of them as the only tool, 50 ask for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from toolsearch_indexes.keyword import KeywordParameters
from toolsearch_indexes.keyword_query import KeywordQuery
from toolsearch_indexes.segments import Segment
from toolsearch_indexes.space import SearchSpace

_LEAST_SHARE = 0.5


class SoleHolder(NamedTuple):
    """A row that alone holds a word of a request, and what that is worth, in deviations of a cosine."""

    segment: Segment
    row: int
    worth: float


def sole_holders(query: KeywordQuery, space: SearchSpace, parameters: KeywordParameters) -> tuple[SoleHolder, ...]:
    """The tools for which a word of *query* speaks; guessed readings of a word count for nothing."""
    said = [reading.alternatives[0] for reading in query.readings if reading.word not in query.unknown]
    total = query.ideal / (parameters.k1 + 1)  # the idf of all words together
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
