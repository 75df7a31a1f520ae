"""One moment of an index: its segments, and what is true of all their living documents together."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from toolsearch_indexes.analysis import terms
from toolsearch_indexes.keyword import KeywordStatistics
from toolsearch_indexes.reading import as_read
from toolsearch_indexes.segments import Segment
from toolsearch_indexes.semantic import SemanticStatistics


@dataclass(frozen=True, slots=True)
class IndexState:
    """One moment of an index; replaced as a whole, so that a search sees all of a change or nothing."""

    segments: tuple[Segment, ...] = ()
    keyword: KeywordStatistics = field(default_factory=KeywordStatistics)
    semantic: SemanticStatistics | None = None
    moment: int = field(init=False, default_factory=count().__next__)  # its own, also if made out of another

    def place_of(self, name: str) -> tuple[int, int] | None:
        """Return (segment, row) of a living document."""
        for number, segment in enumerate(self.segments):
            row = segment.names.row_of(name)
            if row is not None and (segment.alive is None or segment.alive[row]):
                return number, row
        return None

    def shown(self, name: str, request: str) -> str:
        """Return a living document as a reader is shown it beside *request*: with its own name, title and description,
        and those of its requests that share most words with *request*. Raises KeyError if there is no such document.
        """
        place = self.place_of(name)
        if place is None:
            raise KeyError(name)
        segment, row = self.segments[place[0]], place[1]
        asked = set(terms(request))
        nearest = sorted(segment.requests.of_row(row), key=lambda one: -len(asked.intersection(terms(one))))
        return as_read(segment.names.own_names[row], segment.regex.description(row), nearest)
