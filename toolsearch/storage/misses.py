"""Requests that were answered weakly or not at all, so that a team knows which tool to write or to describe better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

MissKind: TypeAlias = Literal["nothing found", "weak", "not right"]  # the last by feedback


@dataclass(frozen=True, slots=True)
class Miss:
    """One request, in the words of the last time. Times are in seconds since 1970.

    best, best_score  the tool that came nearest the last time, "" and 0 if none did
    """

    query: str
    kind: MissKind
    count: int
    first_s: float
    last_s: float
    best: str = ""
    best_score: float = 0.0


class MissLog(Protocol):
    """Safe to share between threads. Each method may raise MissStoreError."""

    def add(
        self, tenant: str, corpus: str, query: str, kind: MissKind, *, best: str, best_score: float, at_s: float
    ) -> None:
        """Count a request. Requests that differ only in case and white space are the same."""
        ...

    def page(self, tenant: str, corpus: str | None, *, offset: int = 0, limit: int) -> list[Miss]:
        """The most frequent first, then the latest, then by text."""
        ...

    def forget(self, tenant: str, corpus: str, query: str) -> bool: ...

    def prune(self, *, before_s: float, limit: int) -> int:
        """Delete at most *limit* of those that were asked last before that, the first ones first; return how many."""
        ...
