"""The index: documents in, ranked names out, by keyword, meaning, pattern, or the first two together."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from toolsearch_indexes.calibration import hybrid_scale, keyword_scale, semantic_scale
from toolsearch_indexes.documents import Hit, ToolDocument
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.errors import BadQueryError
from toolsearch_indexes.fusion import semantic_weight
from toolsearch_indexes.keyword import KeywordParameters, KeywordStatistics
from toolsearch_indexes.keyword_query import KeywordQuery, read_query
from toolsearch_indexes.lexicon import Lexicon
from toolsearch_indexes.query_forms import Pattern, Select, Words, name_candidates, read_form
from toolsearch_indexes.ranking import (
    KeywordArm,
    MeaningArm,
    SearchSpace,
    rank_hybrid,
    rank_keyword,
    rank_regex,
    rank_semantic,
)
from toolsearch_indexes.regex import compile_pattern
from toolsearch_indexes.segments import Segment, build_segment, tidy
from toolsearch_indexes.selection import Selection
from toolsearch_indexes.semantic import SemanticArm, SemanticStatistics
from toolsearch_indexes.vector_cache import VectorCache
from toolsearch_indexes.vectors import FloatArray

STRATEGIES = ("auto", "hybrid", "semantic", "keyword", "regex")


@dataclass(frozen=True, slots=True)
class IndexState:
    """One moment of an index; replaced as a whole, so that a search sees all of a change or nothing."""

    segments: tuple[Segment, ...] = ()
    keyword: KeywordStatistics = field(default_factory=KeywordStatistics)
    semantic: SemanticStatistics | None = None

    def place_of(self, name: str) -> tuple[int, int] | None:
        """Return (segment, row) of a living document."""
        for number, segment in enumerate(self.segments):
            row = segment.names.row_of.get(name)
            if row is not None and (segment.alive is None or segment.alive[row]):
                return number, row
        return None


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
    ) -> list[Hit]:
        """Return at most *limit* hits, best first; equal scores go by name. Scores lie in (0, 1].

        ``select:a,b`` gives these tools in this order, ``/pattern/`` is a regex under any strategy, and a tool whose
        whole name the query is comes first, in any case and with any separators (see `name_candidates`). Otherwise the
        strategy ranks; "auto" is "hybrid" where there is an encoder, else "keyword". *within* restricts the search to
        these names; None means all. What fits nothing gives ``[]``.

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
                ranked = self._rank(state, space, text, chosen, limit + len(exact))
                return _exact_first(exact, ranked)[:limit]

    def resolve_strategy(self, strategy: str) -> str:
        """Return what *strategy* means for this index. Raises BadQueryError."""
        if strategy not in STRATEGIES:
            raise BadQueryError(f"unknown strategy {strategy!r}; use one of {', '.join(STRATEGIES)}")
        if strategy == "auto":
            return "hybrid" if self.arm else "keyword"
        if strategy in ("hybrid", "semantic") and not self.arm:
            raise BadQueryError(f"the strategy {strategy!r} needs an encoder, and this index has none; use 'keyword'")
        return strategy

    def _rank(self, state: IndexState, space: SearchSpace, text: str, strategy: str, limit: int) -> list[Hit]:
        query = read_query(text, self.lexicon, state.keyword, self.parameters)
        tools = state.keyword.documents
        if strategy == "keyword" or self.arm is None or state.semantic is None:
            return rank_keyword(space, self._keyword_arm(state, space, query), keyword_scale(query.ideal, tools), limit)
        arm = MeaningArm(self.arm.meaning(text), self.arm.unrelated, semantic_weight(text))
        familiarity = arm.unrelated.deviations_of(state.semantic.mean_cosine(arm.meaning.whole))
        sense = self._sense(query)
        if strategy == "semantic":
            return rank_semantic(space, arm, semantic_scale(familiarity, tools, sense), limit)
        scale = hybrid_scale(familiarity, tools, sense)
        return rank_hybrid(space, self._keyword_arm(state, space, query), arm, scale, limit)

    def _sense(self, query: KeywordQuery) -> float:
        """The share of the query's words that a tool holds or the encoder knows."""
        foreign = sum(not (self.arm and self.arm.knows(word)) for word in query.unknown)
        return 1 - foreign / query.words if query.words else 0.0

    def _keyword_arm(self, state: IndexState, space: SearchSpace, query: KeywordQuery) -> KeywordArm:
        return KeywordArm.of(space, query, state.keyword.means, self.parameters)


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
