"""The index: documents in, ranked names out, by keyword, meaning, pattern, or the first two together."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from toolsearch_indexes.clauses import clauses
from toolsearch_indexes.documents import Hit, ToolDocument
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.errors import BadQueryError
from toolsearch_indexes.explanation import Explanation, Outcome, explain_row
from toolsearch_indexes.keyword import KeywordParameters
from toolsearch_indexes.lexicon import Lexicon
from toolsearch_indexes.query_forms import Pattern, Select, Words, name_candidates, read_form
from toolsearch_indexes.ranking import SearchSpace, rank, rank_regex, with_places_for
from toolsearch_indexes.regex import compile_pattern
from toolsearch_indexes.request import read_request
from toolsearch_indexes.segments import build_segment, tidy
from toolsearch_indexes.selection import Selection
from toolsearch_indexes.semantic import SemanticArm, SemanticStatistics
from toolsearch_indexes.state import IndexState
from toolsearch_indexes.vector_cache import VectorCache
from toolsearch_indexes.vectors import FloatArray

_SHORT_REQUEST = 20  # words; in a longer one, parts are rather the circumstances of one task
_SURE_PART = 0.7  # the score from which a part's best tool is what the part asks for
STRATEGIES = ("auto", "hybrid", "semantic", "keyword", "regex")


class ToolSearchIndex:
    """A searchable set of tool documents, changed in place of rebuilt.

    Searches take no lock and may run on any number of threads while one changes the index; each sees one moment of it.
    """

    def __init__(
        self,
        documents: Iterable[ToolDocument] = (),
        *,
        encoder: Encoder | None = None,
        cache: VectorCache | None = None,
        parameters: KeywordParameters | None = None,
    ) -> None:
        self.lexicon = Lexicon()
        self.parameters = parameters or KeywordParameters()
        self.arm = SemanticArm(encoder, cache) if encoder else None
        self._write_lock = threading.Lock()
        self._state = IndexState(semantic=SemanticStatistics.empty(encoder.dimensions) if encoder else None)
        self.update(documents)

    @property
    def state(self) -> IndexState:
        return self._state

    def __len__(self) -> int:
        return self._state.keyword.documents

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._state.place_of(name) is not None

    def names(self) -> Iterator[str]:
        for segment in self._state.segments:
            for name, alive in zip(segment.names.names, segment.kept().tolist(), strict=True):
                if alive:
                    yield name

    def update(self, add: Iterable[ToolDocument] = (), remove: Iterable[str] = ()) -> None:
        """Take out *remove*, then put in *add*, in the place of what has the same name; unknown names are ignored.

        Of several documents of one name the last counts. Embedding happens first and under no lock, so that an encoder
        that fails leaves the index as it was.
        """
        documents = list({document.name: document for document in add}.values())
        vectors = self.arm.document_vectors(documents) if self.arm and documents else None
        with self._write_lock:
            state = self._without({*remove, *(document.name for document in documents)})
            if documents:
                state = self._with(state, documents, vectors)
            self._state = replace(state, segments=tidy(state.segments))

    def adopt(self, lexicon: Lexicon, state: IndexState) -> None:
        """Take over a stored index; for the store."""
        with self._write_lock:
            self.lexicon, self._state = lexicon, state

    def _without(self, names: Collection[str]) -> IndexState:
        state = self._state
        dead: dict[int, list[int]] = {}
        for name in names:
            place = state.place_of(name)
            if place is not None:
                dead.setdefault(place[0], []).append(place[1])
        segments, keyword, semantic = list(state.segments), state.keyword, state.semantic
        for number, rows in dead.items():
            segment = segments[number]
            segments[number] = segment.without(rows)
            keyword = keyword.with_rows(segment.keyword, np.asarray(rows), self.lexicon, sign=-1)
            if semantic and segment.vectors:
                semantic = semantic.with_vectors(segment.vectors.matrix[rows], sign=-1)
        return IndexState(tuple(segments), keyword, semantic)

    def _with(self, state: IndexState, documents: Sequence[ToolDocument], vectors: FloatArray | None) -> IndexState:
        segment = build_segment(documents, self.lexicon, vectors)
        self.lexicon.forget_words()
        keyword = state.keyword.with_rows(segment.keyword, np.arange(segment.size), self.lexicon, sign=1)
        semantic = state.semantic
        if semantic and vectors is not None:
            semantic = semantic.with_vectors(vectors, sign=1)
        return IndexState((*state.segments, segment), keyword, semantic)

    def search(
        self,
        query: str,
        *,
        limit: int = 5,
        strategy: str = "auto",
        within: Selection | Collection[str] | None = None,
        favour: Mapping[str, float] | None = None,
    ) -> list[Hit]:
        """Return at most *limit* hits, best first; equal scores go by name. Scores lie in (0, 1].

        ``select:a,b`` gives these tools in this order, ``/pattern/`` is a regex under any strategy, and a tool whose
        whole name the query is comes first, in any case and with any separators (see `name_candidates`). Otherwise the
        strategy ranks; "auto" is "hybrid" where there is an encoder, else "keyword". *within* restricts the search to
        these names; None means all. *favour*, in [0, 1] by name, moves tools that fit by themselves a small step
        up, except by name or pattern. What fits nothing gives ``[]``.

        Raises BadQueryError for an empty query, an unknown strategy, a semantic one without an encoder, or a limit
        below 1; BadPatternError for a pattern that RE2 cannot take.
        """
        if limit < 1:
            raise BadQueryError(f"limit must be at least 1, not {limit}")
        chosen = self.resolve_strategy(strategy)
        selection = within if within is None or isinstance(within, Selection) else Selection.of(within)
        state = self._state
        space = SearchSpace.of(state.segments, selection)
        match read_form(query):
            case Select(names):
                return [Hit(name, 1.0) for name in _by_name(state, space, names, selection)][:limit]
            case Pattern(pattern):
                return rank_regex(space, compile_pattern(pattern), limit)
            case Words(text) if chosen == "regex":
                return rank_regex(space, compile_pattern(text), limit)
            case Words(text):
                exact = _by_whole_name(space, text)
                ranked = self._rank(state, space, text, chosen, limit + len(exact), favour or {})
                return _exact_first(exact, ranked)[:limit]

    def explain(
        self,
        query: str,
        name: str,
        *,
        strategy: str = "auto",
        within: Selection | Collection[str] | None = None,
    ) -> Explanation:
        """Say why a search for *query* would find the tool *name*, or why not; see `Explanation`.

        Parts of a request, and favour, are left out. Raises BadQueryError and BadPatternError as `search` does.
        """
        chosen = self.resolve_strategy(strategy)
        selection = within if within is None or isinstance(within, Selection) else Selection.of(within)
        state = self._state
        place = state.place_of(name)
        if place is None:
            return Explanation(name, chosen, "no such tool")
        if selection is not None and not selection.allows(name):
            return Explanation(name, chosen, "out of reach")
        form = read_form(query)
        space = SearchSpace.of(state.segments, selection)
        if isinstance(form, Words) and chosen != "regex" and name not in _by_whole_name(space, form.text):
            request = read_request(form.text, chosen, state, self.lexicon, self.parameters, self.arm)
            return explain_row(space, request, self.lexicon, *place, tool=name, strategy=chosen)
        hits = self.search(query, limit=len(self), strategy=chosen, within=selection)
        found = [number for number, hit in enumerate(hits, 1) if hit.name == name]
        if not found:
            return Explanation(name, chosen, "no match")
        is_pattern = isinstance(form, Pattern) or (isinstance(form, Words) and chosen == "regex")
        outcome: Outcome = "by pattern" if is_pattern else "by name"
        return Explanation(name, chosen, outcome, found[0], hits[found[0] - 1].score)

    def resolve_strategy(self, strategy: str) -> str:
        """Return what *strategy* means for this index. Raises BadQueryError."""
        if strategy not in STRATEGIES:
            raise BadQueryError(f"unknown strategy {strategy!r}; use one of {', '.join(STRATEGIES)}")
        if strategy == "auto":
            return "hybrid" if self.arm else "keyword"
        if strategy in ("hybrid", "semantic") and not self.arm:
            raise BadQueryError(f"the strategy {strategy!r} needs an encoder, and this index has none; use 'keyword'")
        return strategy

    def _rank(
        self,
        state: IndexState,
        space: SearchSpace,
        text: str,
        strategy: str,
        limit: int,
        favour: Mapping[str, float],
    ) -> list[Hit]:
        """Rank by the whole of *text*. In a short one, what is sure to serve a part of it has a place as well."""

        def ranked(request: str, limit: int) -> list[Hit]:
            read = read_request(request, strategy, state, self.lexicon, self.parameters, self.arm)
            return rank(space, read, limit, favour)

        parts = clauses(text) if len(text.split()) <= _SHORT_REQUEST else ()
        sure = [hit for part in parts for hit in ranked(part, 1) if hit.score >= _SURE_PART]
        return with_places_for(ranked(text, limit), sure, limit)


def _by_name(state: IndexState, space: SearchSpace, names: Iterable[str], selection: Selection | None) -> list[str]:
    """The tools that *names* mean, in their order: by exact name, else as `_by_whole_name` reads them."""
    found: dict[str, None] = {}
    for name in names:
        if state.place_of(name) is not None and (selection is None or selection.allows(name)):
            found[name] = None
        else:
            found.update(dict.fromkeys(_by_whole_name(space, name)))
    return list(found)


def _by_whole_name(space: SearchSpace, name: str) -> list[str]:
    """The tools whose full or local name *name* is; of its readings the most literal one that exists."""
    for candidate in name_candidates(name):
        literal: list[str] = []
        similar: list[str] = []
        for segment, allowed in zip(space.segments, space.allowed, strict=True):
            for found, rows in zip((literal, similar), segment.names.rows_named(candidate), strict=True):
                found += [segment.names.names[row] for row in rows if allowed is None or allowed[row]]
        if literal or similar:
            return sorted(literal or similar)
    return []


def _exact_first(exact: Sequence[str], ranked: Sequence[Hit]) -> list[Hit]:
    if not exact:
        return list(ranked)
    return [Hit(name, 1.0) for name in exact] + [hit for hit in ranked if hit.name not in exact]
