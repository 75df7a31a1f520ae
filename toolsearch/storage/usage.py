"""Where what was learnt from use outlives the process: one weight for each pair of a term and a tool."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class UsageCell(NamedTuple):
    """What a weight counts: calls of *tool* after a query with *term*.

    With an empty tool: queries with the term. With an empty term: calls of the tool. With both empty: all queries.
    """

    term: str
    tool: str


@dataclass(frozen=True, slots=True)
class StoredWeight:
    """The weight of a cell at the moment *at_s*, in seconds of the log's clock."""

    cell: UsageCell
    weight: float
    at_s: float

    def left(self, at_s: float, half_life_s: float) -> float:
        """Return what is left of the weight at a later moment."""
        return self.weight * math.pow(0.5, (at_s - self.at_s) / half_life_s)


class UsageStore(Protocol):
    """Keeps weights by principal and cell; safe to share between threads. Each method may raise UsageStoreError."""

    def load(self, principal: str) -> list[StoredWeight]:
        """By term and tool."""
        ...

    def add(self, principal: str, weights: Mapping[UsageCell, float], *, at_s: float, half_life_s: float) -> None:
        """Add to the stored weights, after these have faded until *at_s*."""
        ...

    def drop(self, principal: str, cells: Collection[UsageCell]) -> None: ...

    def reset(self, principal: str | None) -> None:
        """Forget one principal, or all."""
        ...

    def principals(self) -> list[str]:
        """Sorted."""
        ...
