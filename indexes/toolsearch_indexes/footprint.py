"""About how many bytes of memory an index takes, without looking at each of its objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numpy.typing import NDArray

from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.mapped import mapping_of
from toolsearch_indexes.segments import Segment

_WORD = 450  # of a word in a lexicon: its text, its number, and its places in four tables
_POSTING = 4  # what is remembered of a posting's weight once a search has needed it


def index_bytes(index: ToolSearchIndex) -> int:
    """An estimate of what the process holds for itself.

    What is mapped from the files of a stored index does not count: it is in memory as long as there is room for it.
    """
    state, lexicon = index.state, index.lexicon
    words = sum(_WORD // 2 * each.added + each.nbytes for each in (lexicon.terms, lexicon.surfaces))
    statistics = _held({"df": state.keyword.df, "surface_df": state.keyword.surface_df})
    return words + statistics + sum(map(_segment_bytes, state.segments))


def _segment_bytes(segment: Segment) -> int:
    texts = _held(segment.regex.arrays())
    requests = _held(segment.requests.arrays())
    vectors = _held(segment.vectors.arrays()) if segment.vectors else 0
    keyword = segment.keyword
    weights = 0 if keyword.has_stored_impacts else _POSTING * len(keyword.rows)
    names = _held(segment.names.arrays())
    of_codes = segment.vectors.code_bytes if segment.vectors else 0
    # Texts are held again for patterns.
    return 2 * texts + requests + vectors + of_codes + _held(keyword.arrays()) + weights + names


def _held(arrays: Mapping[str, NDArray[Any]]) -> int:
    return _bytes(array for array in arrays.values() if mapping_of(array) is None)


def _bytes(arrays: Iterable[NDArray[Any]]) -> int:
    return sum(array.nbytes for array in arrays)
