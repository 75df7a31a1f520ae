"""One moment of an index: its segments, and what is true of all their living documents together."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from toolsearch_indexes.keyword import KeywordStatistics
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
