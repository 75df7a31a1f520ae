"""What was used and saved, summed up by hour, key and session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

By: TypeAlias = Literal["hour", "day", "key", "session"]


class FigureCell(NamedTuple):
    """What an amount counts. *hour_s* is the beginning of the hour, in seconds since 1970.

    *name* is one of those in `toolsearch.service.activity`, such as ``searches`` or ``sent_tokens``.
    """

    hour_s: int
    key: str
    session: str
    name: str


@dataclass(frozen=True, slots=True)
class FigureSum:
    """*group* is the beginning of an hour or a day in seconds since 1970, or the id of a key or a session."""

    group: str
    name: str
    amount: float


class FigureLog(Protocol):
    """Safe to share between threads. Each method may raise FigureStoreError."""

    def add(self, tenant: str, amounts: Mapping[FigureCell, float]) -> None: ...

    def sums(
        self,
        tenant: str,
        *,
        by: By,
        since_s: float,
        until_s: float,
        key: str | None = None,
        session: str | None = None,
    ) -> list[FigureSum]:
        """Sums of the hours that begin in [since_s, until_s), by group and name."""
        ...

    def prune(self, *, before_s: float, limit: int) -> int:
        """Delete at most *limit* sums of hours that began before that, the first ones first; return how many."""
        ...
