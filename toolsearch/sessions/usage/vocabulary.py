"""What learning from use keeps of a query: those of its words that the catalogue's own tools hold.

So nothing that a user typed is stored or shown as it was typed, and of a secret in a query nothing is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from toolsearch_indexes.analysis import terms
from toolsearch_indexes.errors import BadQueryError
from toolsearch_indexes.query_forms import Words, read_form

if TYPE_CHECKING:
    from toolsearch_indexes.index import ToolSearchIndex
    from toolsearch_indexes.tool_index import ToolIndex

Terms: TypeAlias = frozenset[str]

_MOST_TERMS = 16  # kept of one query; of a longer one the rarest words are kept


class Vocabulary(Protocol):
    """The words of one catalogue. Safe to share between threads."""

    def terms_of(self, query: str) -> Terms:
        """Return the known terms of *query*; none if nothing can be learnt of it."""
        ...


def vocabulary_of(index: ToolIndex) -> Vocabulary:
    """Return the words of *index*; of an index that is not the built-in one they are not known."""
    from toolsearch_indexes.index import ToolSearchIndex

    return IndexVocabulary(index) if isinstance(index, ToolSearchIndex) else _NoWords()


class _NoWords:
    def terms_of(self, query: str) -> Terms:  # noqa: ARG002  as `Vocabulary` has it
        return frozenset()


class IndexVocabulary:
    """The terms that the living tools of *index* hold."""

    def __init__(self, index: ToolSearchIndex) -> None:
        self._index = index

    def terms_of(self, query: str) -> Terms:
        """Names to fetch and patterns have no terms: they say which tool, and not what for."""
        try:
            form = read_form(query)
        except BadQueryError:
            return frozenset()
        if not isinstance(form, Words):
            return frozenset()
        holders = {term: self._holders(term) for term in terms(form.text)}
        known = sorted((term for term, count in holders.items() if count), key=lambda term: (holders[term], term))
        return frozenset(known[:_MOST_TERMS])

    def _holders(self, term: str) -> int:
        """How many tools hold *term*."""
        counts = self._index.state.keyword.df
        number = self._index.lexicon.term_id(term)
        return int(counts[number]) if number is not None and number < len(counts) else 0
