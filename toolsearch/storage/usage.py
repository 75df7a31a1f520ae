"""Where what was learnt from use outlives the process: one number for each thing that is counted."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class UsageCell(NamedTuple):
    """What is counted: calls of a tool for a term. Without a tool, queries with the term; without a term, calls of the
    tool; without both, queries.
    """

    term: str
    tool: str


@dataclass(frozen=True, slots=True)
class StoredWeight:
    """What a cell counted at a moment, in seconds of the log's clock."""

    cell: UsageCell
    weight: float
    at_s: float

    def left(self, at_s: float, half_life_s: float) -> float:
        """What is left of it at another moment."""
        return self.weight * math.pow(0.5, (at_s - self.at_s) / half_life_s)


class UsageStore(Protocol):
    """Keeps weights by principal and cell; safe to share between threads. Each method may raise UsageStoreError."""

    def load(self, principal: str) -> list[StoredWeight]:
        """By term and tool."""
        ...

    def add(self, principal: str, weights: Mapping[UsageCell, float], *, at_s: float, half_life_s: float) -> None:
        """Add to what is there, once that has faded until *at_s*."""
        ...

    def drop(self, principal: str, cells: Collection[UsageCell]) -> None: ...

    def reset(self, principal: str | None) -> None:
        """Forget one principal, or all."""
        ...

    def principals(self) -> list[str]:
        """Sorted."""
        ...
