"""What a search sees of one moment of an index: the rows that may be found, and what is true of them all together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from toolsearch_indexes.keyword import (
    BoolArray,
    KeywordParameters,
    KeywordPart,
    KeywordStatistics,
    TermCounts,
    WeightsOf,
    WordReading,
)
from toolsearch_indexes.lexicon import Lexicon
from toolsearch_indexes.segments import Segment
from toolsearch_indexes.semantic import SemanticStatistics
from toolsearch_indexes.state import IndexState
from toolsearch_indexes.views import TermsInView, View, ViewCache


class Terms(TermCounts, Protocol):
    """The words of what may be found."""

    @property
    def requested(self) -> float:
        """The share of these tools that have requests, in [0, 1]."""
        ...

    def weights(self, number: int) -> WeightsOf:
        """The rows of segment *number* that hold a term, and what it weighs in each; other rows may be among them."""
        ...


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Segments, with the rows of each that may be found (None means all of them), and their statistics."""

    segments: tuple[Segment, ...]
    allowed: tuple[BoolArray | None, ...]
    terms: Terms
    semantic: SemanticStatistics | None

    @classmethod
    def whole(cls, state: IndexState, parameters: KeywordParameters) -> SearchSpace:
        terms = AllTerms(state.keyword, tuple([segment.keyword for segment in state.segments]), parameters)
        return cls(state.segments, tuple([segment.alive for segment in state.segments]), terms, state.semantic)

    @classmethod
    def seen(
        cls, state: IndexState, view: View, lexicon: Lexicon, parameters: KeywordParameters, cache: ViewCache | None
    ) -> SearchSpace:
        """*view* is of *state*, and in *cache* unless that is None."""
        allowed = tuple(share.allowed for share in view.shares)
        terms = TermsInView(state.segments, view, lexicon, parameters, cache)
        return cls(state.segments, allowed, terms, view.semantic)


@dataclass(frozen=True, slots=True)
class AllTerms:
    """The words of all tools of an index."""

    keyword: KeywordStatistics
    parts: tuple[KeywordPart, ...]
    parameters: KeywordParameters
    readings: dict[str, WordReading] = field(init=False, default_factory=dict[str, WordReading])

    @property
    def documents(self) -> int:
        return self.keyword.documents

    @property
    def requested(self) -> float:
        return self.keyword.requested

    def holders(self, term: int) -> int:
        return self.keyword.holders(term)

    def has_surface(self, surface: int) -> bool:
        return self.keyword.has_surface(surface)

    def weights(self, number: int) -> WeightsOf:
        return self.parts[number].weights(self.keyword.means, self.parameters)
