"""The index: documents in, ranked names out, by keyword, meaning, pattern, or the first two together."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.arrays import mapping_of
from toolsearch_indexes.documents import Explanation, Hit, ToolDocument
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.encoders.static import StaticEncoder
from toolsearch_indexes.errors import BadQueryError
from toolsearch_indexes.keyword import Counted, KeywordParameters
from toolsearch_indexes.keyword_query import gain_bytes
from toolsearch_indexes.queries import (
    RANKINGS,
    STRATEGIES,
    Ranking,
    Selection,
    Strategy,
    Words,
    read_form,
    require_limit,
    require_text,
    steps,
)
from toolsearch_indexes.reader import Reader
from toolsearch_indexes.search import Search
from toolsearch_indexes.segments import IndexState, Segment, build_segment, tidy
from toolsearch_indexes.semantic import SemanticArm, SemanticStatistics
from toolsearch_indexes.vector_cache import VectorCache
from toolsearch_indexes.vectors import FloatArray
from toolsearch_indexes.views import SearchSpace, SelectionView, SelectionViews
from toolsearch_indexes.word_forms import Lexicon

_QUICK_TOOLS = 10_000
_QUICK_QUERY = 120  # characters


class ToolSearchIndex:
    """A searchable set of tool documents. Changes update it instead of rebuilding it.

    Searches take no lock and may run on any number of threads while another thread changes the index. Each search sees
    the index at one moment.
    """

    def __init__(
        self,
        documents: Iterable[ToolDocument] = (),
        *,
        encoder: Encoder | None = None,
        cache: VectorCache | None = None,
        parameters: KeywordParameters | None = None,
        reader: Reader | None = None,
    ) -> None:
        """*reader* may be set at any time: searches that begin later use it."""
        self.lexicon = Lexicon()
        self.parameters = parameters or KeywordParameters()
        self.arm = SemanticArm(encoder, cache) if encoder else None
        self.reader = reader
        self._write_lock = threading.Lock()
        self.views = SelectionViews()
        empty = IndexState(semantic=SemanticStatistics.empty(encoder.dimensions) if encoder else None)
        self._moment = self._moment_of(empty)
        self.update(documents)

    @property
    def state(self) -> IndexState:
        return self._moment[0]

    def _moment_of(self, state: IndexState, before: SearchSpace | None = None) -> tuple[IndexState, SearchSpace]:
        """A state and its search space. Both are replaced together, so that a search gets a matching pair."""
        return state, SearchSpace.whole(state, self.parameters, before)

    def __len__(self) -> int:
        return self.state.keyword.documents

    def __bool__(self) -> bool:
        """True, also while the index is empty."""
        return True

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.state.place_of(name) is not None

    def names(self) -> Iterator[str]:
        for segment in self.state.segments:
            for name, alive in zip(segment.names.names, segment.kept().tolist(), strict=True):
                if alive:
                    yield name

    def update(self, add: Iterable[ToolDocument] = (), remove: Iterable[str] = ()) -> None:
        """Remove *remove*, then add *add*, which replace documents of the same names. Unknown names are ignored.

        If several documents have one name, the last counts. Embedding happens first and without a lock, so that a
        failing encoder changes nothing.
        """
        documents = list({document.name: document for document in add}.values())
        vectors = self.arm.document_vectors(documents) if self.arm and documents else None
        with self._write_lock:
            state = self._changed({*remove, *(document.name for document in documents)}, documents, vectors)
            self._moment = self._moment_of(replace(state, segments=tidy(state.segments)), self._moment[1])

    def adopt(self, lexicon: Lexicon, state: IndexState) -> None:
        """Take over a stored index; for the store."""
        with self._write_lock:
            self.lexicon, self._moment = lexicon, self._moment_of(state)

    def _changed(
        self, names: Collection[str], documents: Sequence[ToolDocument], vectors: FloatArray | None
    ) -> IndexState:
        """The state without the documents of these *names*, and with *documents* in a segment of their own."""
        state = self.state
        dead: dict[int, list[int]] = {}
        for name in names:
            place = state.place_of(name)
            if place is not None:
                dead.setdefault(place[0], []).append(place[1])
        segments = list(state.segments)
        changed = [(segments[number], np.array(gone), -1) for number, gone in dead.items()]
        for number, gone in dead.items():
            segments[number] = segments[number].without(gone)
        if documents:
            segments.append(build_segment(documents, self.lexicon, vectors))
            self.lexicon.forget_words()
            changed.append((segments[-1], np.arange(len(documents)), 1))
        keyword = state.keyword.with_rows(
            [Counted(segment.keyword, rows, sign) for segment, rows, sign in changed], self.lexicon
        )
        semantic = state.semantic
        for segment, rows, sign in changed:
            if semantic and segment.vectors:
                matrix = segment.vectors.matrix  # of a whole segment it would be large to copy
                semantic = semantic.with_vectors(matrix if len(rows) == len(matrix) else matrix[rows], sign=sign)
        return IndexState(tuple(segments), keyword, semantic)

    def search(
        self,
        query: str,
        *,
        limit: int = 5,
        strategy: Strategy = "auto",
        within: Selection | Collection[str] | None = None,
        favour: Mapping[str, float] | None = None,
    ) -> list[Hit]:
        """Return at most *limit* hits, best first; equal scores go by name. Scores lie in (0, 1].

        The hits for one limit are the first of those for any greater one.

        ``select:a,b`` gives these tools in this order, and ``/pattern/`` is a regex under any strategy. A tool whose
        whole name equals the query comes first; case and separators do not count (see `name_candidates`). Otherwise the
        strategy ranks. "auto" means "hybrid" if there is an encoder, else "keyword". A request for several things is
        also ranked by each of them (see `merged`). A tool gets at least the fifth place if a hybrid search is sure of
        it by its words alone. *within* restricts the search to these names; None means all. *favour*, in [0, 1] by
        name, moves fitting tools a small step up among the first 20, but not if they are found by name or pattern. A
        query that fits no tool gives ``[]``.

        Raises BadQueryError for a query that is empty or no text, an unknown strategy, a semantic one without an
        encoder, or a limit that is no whole number of 1 or more; BadPatternError for a pattern that RE2 cannot take.
        """
        limit = require_limit(limit)
        return self._search(strategy, within, favour).answer(read_form(query), limit).hits

    def is_quick(self, query: str, strategy: Strategy = "auto", within: Selection | None = None) -> bool:
        """Whether a search takes a few milliseconds at most, so that an event loop need not hand it to a thread. Raises
        BadQueryError.

        It is short and asks for one thing by words, over few tools whose view is made, and no model is asked.
        """
        return (
            len(self) <= _QUICK_TOOLS
            and len(query) <= _QUICK_QUERY
            and self.reader is None
            and (self.arm is None or isinstance(self.arm.encoder, StaticEncoder))
            and self.resolve_strategy(strategy) != "regex"
            and isinstance(read_form(query), Words)
            and not steps(query)
            and (within is None or self.views.has(self.state, within))
        )

    def explain(
        self,
        query: str,
        name: str,
        *,
        strategy: Strategy = "auto",
        within: Selection | Collection[str] | None = None,
        favour: Mapping[str, float] | None = None,
    ) -> Explanation:
        """Say where and why a search for *query* finds the tool *name*, or why not; see `Explanation`.

        Raises BadQueryError and BadPatternError as `search` does.
        """
        require_text(name, "the name of a tool")
        return self._search(strategy, within, favour).explain(read_form(query), name)

    @property
    def rankings(self) -> tuple[Ranking, ...]:
        """The strategies that this index can rank by, the default first."""
        return RANKINGS if self.arm else ("keyword", "regex")

    def resolve_strategy(self, strategy: str) -> Ranking:
        """Return what *strategy* means for this index. Raises BadQueryError."""
        if strategy == "auto":
            return self.rankings[0]
        for ranking in self.rankings:
            if ranking == strategy:
                return ranking
        if strategy not in STRATEGIES:
            raise BadQueryError(f"unknown strategy {strategy!r}; use one of {', '.join(STRATEGIES)}")
        raise BadQueryError(f"the strategy {strategy!r} needs an encoder, and this index has none; use 'keyword'")

    def _search(
        self, strategy: str, within: Selection | Collection[str] | None, favour: Mapping[str, float] | None
    ) -> Search:
        """A search of this moment."""
        chosen, (state, space) = self.resolve_strategy(strategy), self._moment
        selection = within if within is None or isinstance(within, Selection) else Selection.of(within)
        if selection is not None:
            space = self._space(state, selection, is_kept=selection is within)
        return Search(
            state, selection, space, self.lexicon, self.parameters, self.arm, chosen, favour or {}, self.reader
        )

    def _space(self, state: IndexState, selection: Selection, *, is_kept: bool) -> SearchSpace:
        """*is_kept*: the selection may come again, so that its view is worth keeping."""
        view = self.views.get(state, selection) if is_kept else SelectionView.of(state, selection)
        return SearchSpace.seen(state, view, self.lexicon, self.parameters, self.views if is_kept else None)


_BYTES_PER_WORD = 450  # bytes of a word in a lexicon: its text, its number, and its places in four tables
_BYTES_PER_WEIGHT = 4  # bytes of a posting's weight, which is remembered once a search has needed it


def index_bytes(index: ToolSearchIndex) -> int:
    """Estimate the memory in bytes that only this process uses.

    Mapped files of a stored index do not count, since the system can drop them from memory.
    """
    state, lexicon = index.state, index.lexicon
    words = sum(_BYTES_PER_WORD // 2 * each.added + each.nbytes for each in (lexicon.terms, lexicon.surfaces))
    statistics = _held({"df": state.keyword.df, "surface_df": state.keyword.surface_df})
    return words + statistics + sum(map(_segment_bytes, state.segments))


def _segment_bytes(segment: Segment) -> int:
    texts = _held(segment.regex.arrays())
    requests = _held(segment.requests.arrays())
    vectors = _held(segment.vectors.arrays()) if segment.vectors else 0
    keyword = segment.keyword
    weights = 0 if keyword.has_stored_impacts else _BYTES_PER_WEIGHT * len(keyword.rows)
    names = _held(segment.names.arrays())
    of_codes = segment.vectors.code_bytes if segment.vectors else 0
    # Patterns need a second copy of the texts.
    words = _held(keyword.arrays()) + weights + gain_bytes(segment.size)
    return 2 * texts + requests + vectors + of_codes + words + names


def _held(arrays: Mapping[str, NDArray[Any]]) -> int:
    return _bytes(array for array in arrays.values() if mapping_of(array) is None)


def _bytes(arrays: Iterable[NDArray[Any]]) -> int:
    return sum(array.nbytes for array in arrays)
