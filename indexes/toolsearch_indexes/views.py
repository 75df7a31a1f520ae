"""The view of an index within a reach: its figures are those of an index with only these tools."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from functools import partial
from itertools import count
from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from toolsearch_indexes.keyword import (
    BoolArray,
    FloatArray,
    IntArray,
    KeywordParameters,
    KeywordPart,
    KeywordStatistics,
    TermCounts,
    Weighted,
    WeightsOf,
    WordReading,
    field_means,
)
from toolsearch_indexes.keyword_query import Gains
from toolsearch_indexes.queries import Selection
from toolsearch_indexes.segments import IndexState, Segment, SegmentShare
from toolsearch_indexes.semantic import SemanticStatistics
from toolsearch_indexes.word_forms import Lexicon

_MAX_BYTES = 56 << 20  # bytes of all views of an index together
_KEPT_SHARE = 0.75  # the share of _MAX_BYTES that is kept when it is exceeded
_ENTRY_BYTES = 400  # bytes of a remembered term beside its arrays, at most
_FEW_ROWS = 64  # rows whose surfaces are read at once


class _Term(NamedTuple):
    """The number of tools of a share with a term. *rows* None means the term's unchanged postings; likewise
    *impacts*.
    """

    holders: int
    rows: IntArray | None = None
    impacts: FloatArray | None = None


_NOWHERE = _Term(0)


class _Memory:
    """Cached figures of a share for the mean lengths of a view; filled by any number of threads."""

    __slots__ = ("nbytes", "surfaces", "terms")

    def __init__(self) -> None:
        self.terms: dict[int, _Term] = {}
        self.surfaces: dict[int, bool] = {}
        self.nbytes = 0


@dataclass(eq=False, slots=True)
class SelectionView:
    """Figures of the tools of one selection at one moment of an index.

    means     mean lengths of the fields; see KeywordStatistics
    is_usual  whether they equal those of the whole index, so that its impacts can be used
    used      the number of the last use, by the cache's clock
    """

    moment: int
    shares: tuple[SegmentShare, ...]
    documents: int
    means: tuple[float, ...]
    is_usual: bool
    semantic: SemanticStatistics | None
    memories: tuple[_Memory, ...]
    used: int = 0

    @classmethod
    def of(cls, state: IndexState, selection: Selection, before: SelectionView | None = None) -> SelectionView:
        """*before* is the view of another moment through the same selection."""
        known = {share.names(): share for share in before.shares} if before else {}
        shares: list[SegmentShare] = []
        for segment in state.segments:
            share = known.get(segment.names)
            shares.append(share.at(segment) if share else SegmentShare.of(segment, _mask(selection, segment)))
        nothing = np.zeros_like(state.keyword.lengths)
        lengths = sum((share.lengths for share in shares), start=nothing)
        filled = sum((share.filled for share in shares), start=nothing)
        documents = sum(share.documents for share in shares)
        semantic = state.semantic and SemanticStatistics(
            documents, sum((share.total for share in shares), start=np.zeros_like(state.semantic.total))
        )
        means = field_means(lengths, filled, state.keyword.mean_step)
        is_usual = means == state.keyword.means
        remembered: dict[int, _Memory] = {}
        if before and (before.means, before.is_usual) == (means, is_usual):
            remembered = {id(share): memory for share, memory in zip(before.shares, before.memories, strict=True)}
        memories = tuple(remembered.get(id(share)) or _Memory() for share in shares)
        return cls(state.moment, tuple(shares), documents, means, is_usual, semantic, memories)

    @property
    def nbytes(self) -> int:
        return sum(share.nbytes for share in self.shares) + sum(memory.nbytes for memory in self.memories)

    def forget(self) -> None:
        """Drop the cached terms. A search that is running keeps its own."""
        self.memories = tuple(_Memory() for _ in self.memories)


class SelectionViews:
    """The views of an index, by selection; together they take at most *max_bytes* for long.

    Over that, the views that were not used for longest forget their terms first, and are dropped if that is not enough.
    Getting a view that is there takes no lock.
    """

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._views: WeakKeyDictionary[Selection, SelectionView] = WeakKeyDictionary()
        self._nbytes = 0  # an upper bound; dropped selections are subtracted when room is made
        self._clock = count()
        self._lock = threading.Lock()

    def has(self, state: IndexState, selection: Selection) -> bool:
        """Whether the view of this moment is there already."""
        view = self._views.get(selection)
        return view is not None and view.moment == state.moment

    def get(self, state: IndexState, selection: Selection) -> SelectionView:
        view = self._views.get(selection)
        if view is None or view.moment != state.moment:
            view = SelectionView.of(state, selection, view)
            with self._lock:
                self._views[selection] = view
            view.used = next(self._clock)
            self.grown(view.nbytes)
        else:
            view.used = next(self._clock)
        return view

    def grown(self, nbytes: int) -> None:
        """Note that a view has *nbytes* more, and make room."""
        with self._lock:
            self._nbytes += nbytes
            if self._nbytes > self._max_bytes:
                self._make_room(list(self._views.items()))

    @property
    def nbytes(self) -> int:
        """Bytes of all views."""
        with self._lock:
            return sum(view.nbytes for view in self._views.values())

    def _make_room(self, views: list[tuple[Selection, SelectionView]]) -> None:
        views.sort(key=lambda item: item[1].used)
        self._nbytes = sum(view.nbytes for _, view in views)
        room = int(_KEPT_SHARE * self._max_bytes)
        for _, view in views:
            if self._nbytes > room:
                self._nbytes -= sum(memory.nbytes for memory in view.memories)
                view.forget()
        for selection, view in views[:-1]:  # the last view is in use
            if self._nbytes > room:
                self._nbytes -= view.nbytes
                self._views.pop(selection, None)


@dataclass(frozen=True, slots=True)
class TermsInView:
    """The words of the tools of a *view*; see TermCounts. A *cache* is told how much is remembered."""

    segments: Sequence[Segment]
    view: SelectionView
    lexicon: Lexicon
    parameters: KeywordParameters
    cache: SelectionViews | None
    readings: dict[str, WordReading] = field(init=False, default_factory=dict[str, WordReading])
    _memories: tuple[_Memory, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_memories", self.view.memories)

    @property
    def documents(self) -> int:
        return self.view.documents

    def holders(self, term: int) -> int:
        holders = 0
        for number, memory in enumerate(self._memories):
            holders += (memory.terms.get(term) or self._read_term(number, term)).holders
        return holders

    def has_surface(self, surface: int) -> bool:
        for number, memory in enumerate(self._memories):
            known = memory.surfaces.get(surface)
            if known or (known is None and self._read_surface(number, surface)):
                return True
        return False

    def weights(self, number: int) -> WeightsOf:
        return partial(self._weights_of, number)

    def gains(self, number: int) -> Gains:
        return Gains(self.segments[number].size, self.weights(number))

    def _weights_of(self, number: int, term: int) -> Weighted | None:
        """The rows of segment *number* with *term*. Rows that may not be seen can be among them."""
        known = self._memories[number].terms.get(term) or self._read_term(number, term)
        if not known.holders:
            return None
        part = self.segments[number].keyword
        where = part.postings(term)
        rows = part.rows[where] if known.rows is None else known.rows
        if known.impacts is None:
            return rows, part.impacts(self.view.means, self.parameters)[where]
        return rows, known.impacts

    def _read_term(self, number: int, term: int) -> _Term:
        found = self._find_term(self.segments[number].keyword, self.view.shares[number], term)
        self._memories[number].terms[term] = found
        self._grown(self._memories[number], sum(array.nbytes for array in found[1:] if array is not None))
        return found

    def _find_term(self, part: KeywordPart, share: SegmentShare, term: int) -> _Term:
        where = part.postings(term)
        if where is None:
            return _NOWHERE
        is_allowed = share.allowed[part.rows[where]]
        holders = int(np.count_nonzero(is_allowed))
        if not holders or self.view.is_usual:
            return _Term(holders)
        if holders == len(is_allowed):
            return _Term(holders, None, part.impacts_of(where, self.view.means, self.parameters))
        places = where.start + np.flatnonzero(is_allowed)
        return _Term(holders, part.rows[places], part.impacts_of(places, self.view.means, self.parameters))

    def _read_surface(self, number: int, surface: int) -> bool:
        found = self._memories[number].surfaces[surface] = self._find_surface(number, surface)
        self._grown(self._memories[number], 0)
        return found

    def _find_surface(self, number: int, surface: int) -> bool:
        """Look through the rows that contain the surface's term; mostly one of the first has it."""
        part = self.segments[number].keyword
        where = part.postings(self.lexicon.term_of_surface[surface])
        if where is None:
            return False
        rows = part.rows[where]
        rows = rows[self.view.shares[number].allowed[rows]]
        few = (rows[first : first + _FEW_ROWS] for first in range(0, len(rows), _FEW_ROWS))
        return any(bool((part.surfaces_of(some)[0] == surface).any()) for some in few)

    def _grown(self, memory: _Memory, nbytes: int) -> None:
        memory.nbytes += nbytes + _ENTRY_BYTES
        if self.cache:
            self.cache.grown(nbytes + _ENTRY_BYTES)


def _mask(selection: Selection, segment: Segment) -> BoolArray:
    """The allowed rows of *segment*, dead or alive, (n,) bool. Every name is checked."""
    return np.fromiter(map(selection.allows, segment.names.names), np.bool_, segment.size)


class Terms(TermCounts, Protocol):
    """The words of the tools that may be found."""

    def weights(self, number: int) -> WeightsOf:
        """The rows of segment *number* with a term, and its weight in each. Rows that may not be seen can be among
        them.
        """
        ...

    def gains(self, number: int) -> Gains:
        """The gains of words in segment *number*, by the same weights."""
        ...


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Segments, the rows of each that may be found (None means all), and their statistics."""

    segments: tuple[Segment, ...]
    allowed: tuple[BoolArray | None, ...]
    terms: Terms
    semantic: SemanticStatistics | None

    @classmethod
    def whole(cls, state: IndexState, parameters: KeywordParameters, before: SearchSpace | None = None) -> SearchSpace:
        """*before* is that of another moment of the same index."""
        parts = tuple([segment.keyword for segment in state.segments])
        known = before.terms if before and isinstance(before.terms, AllTerms) else None
        terms = AllTerms(state.keyword, parts, parameters, known)
        return cls(state.segments, tuple([segment.alive for segment in state.segments]), terms, state.semantic)

    @classmethod
    def seen(
        cls,
        state: IndexState,
        view: SelectionView,
        lexicon: Lexicon,
        parameters: KeywordParameters,
        cache: SelectionViews | None,
    ) -> SearchSpace:
        """*view* belongs to *state*, and is in *cache* unless that is None."""
        allowed = tuple(share.allowed for share in view.shares)
        terms = TermsInView(state.segments, view, lexicon, parameters, cache)
        return cls(state.segments, allowed, terms, view.semantic)


@dataclass(frozen=True, slots=True)
class AllTerms:
    """The words of all tools of an index. What was remembered *before*, at another moment, is kept where it holds."""

    keyword: KeywordStatistics
    parts: tuple[KeywordPart, ...]
    parameters: KeywordParameters
    before: InitVar[AllTerms | None] = None
    readings: dict[str, WordReading] = field(init=False, default_factory=dict[str, WordReading])
    _gains: tuple[Gains, ...] = field(init=False)

    def __post_init__(self, before: AllTerms | None) -> None:
        known: dict[int, Gains] = {}
        if before and before.keyword.means == self.keyword.means:
            known = dict(zip(map(id, before.parts), before._gains, strict=True))
        gains = [
            known.get(id(part)) or Gains(part.size, self.weights(number)) for number, part in enumerate(self.parts)
        ]
        object.__setattr__(self, "_gains", tuple(gains))

    @property
    def documents(self) -> int:
        return self.keyword.documents

    def holders(self, term: int) -> int:
        return self.keyword.holders(term)

    def has_surface(self, surface: int) -> bool:
        return self.keyword.has_surface(surface)

    def weights(self, number: int) -> WeightsOf:
        return partial(self.parts[number].weighted, self.keyword.means, self.parameters)

    def gains(self, number: int) -> Gains:
        return self._gains[number]
