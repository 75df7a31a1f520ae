"""Tells a tool that a request is about from one whose name happens to be a word of the request."""

from __future__ import annotations

from toolsearch_indexes.keyword import FIELDS, WordReading
from toolsearch_indexes.request import Request
from toolsearch_indexes.segments import Segment

_NAME = FIELDS.index("name")


def is_namesake(segment: Segment, row: int, request: Request) -> bool:
    """Whether all that *row* has of a request of several words is the one word that it is called.

    ``fnmatch.translate`` is a namesake for "translate a text to French", not for "translate a glob pattern".

    In the sets of ``benchmarks.abstention`` this takes the high confidence of 3 in 33 answers to requests that no tool
    serves, and of 9 in 828 answers to others, of which 3 have the right tool first.
    """
    words, part = request.words, segment.keyword
    if words is None or words.words < 2 or part.lengths[row, _NAME] != 1:
        return False
    held = [posting for reading in words.readings for posting in _postings(segment, row, reading)]
    return len(held) == 1 and bool(part.counts[held[0], _NAME])


def _postings(segment: Segment, row: int, reading: WordReading) -> list[int]:
    """Where *row* holds a term of *reading*: the first of them, as one word counts once."""
    found = (segment.keyword.posting(term, row) for term, _ in reading.alternatives)
    return [posting for posting in found if posting is not None][:1]
