"""About how many bytes of memory an index takes, without looking at each of its objects."""

from __future__ import annotations

from collections.abc import Iterable

from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.segments import Segment

_WORD = 450  # of a word in a lexicon: its text, its number, and its places in four tables
_NAME = 600  # of a tool's name in a segment: its text, its own name, and their places in two tables
_POSTING = 4  # what is remembered of a posting's weight once a search has needed it


def index_bytes(index: ToolSearchIndex) -> int:
    """An estimate that counts all arrays, also the parts of a stored index that no search has touched yet."""
    state, lexicon = index.state, index.lexicon
    words = _WORD * (len(lexicon.terms) + len(lexicon.surfaces)) // 2
    statistics = state.keyword.df.nbytes + state.keyword.surface_df.nbytes
    return words + statistics + sum(map(_segment_bytes, state.segments))


def _segment_bytes(segment: Segment) -> int:
    texts = _bytes(segment.regex.arrays().values())  # once more as the text that patterns are matched against
    vectors = _bytes(segment.vectors.arrays().values()) if segment.vectors else 0
    postings = _bytes(segment.keyword.arrays().values()) + _POSTING * len(segment.keyword.rows)
    return 2 * texts + vectors + postings + _NAME * segment.size


def _bytes(arrays: Iterable[object]) -> int:
    return sum(getattr(array, "nbytes", 0) for array in arrays)
