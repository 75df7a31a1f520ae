"""What conversations cost: tokens, money, rounds, and the turns that failed for want of a tool."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from toolsearch.bench.caching import CacheUse, cache_uses
from toolsearch.bench.playing import Played
from toolsearch.bench.prices import Prices, cost_of

Caching: TypeAlias = Literal["none", "cold", "warm"]
"""What of prompts is cached: nothing; what the conversation itself has sent; also its front, by other conversations."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Of one or more conversations. Tokens are of all requests together.

    turns        what users have asked for
    failed       turns in which the model lacked a tool that it needed
    requests     to the model; *search_rounds* of them did nothing but search
    searches     queries
    output       tokens that the model has written
    dollars      by the prices that were asked for
    """

    turns: int = 0
    failed: int = 0
    requests: int = 0
    search_rounds: int = 0
    searches: int = 0
    prompt: int = 0
    read: int = 0
    written: int = 0
    output: int = 0
    dollars: float = 0.0

    @property
    def uncached(self) -> int:
        return self.prompt - self.read - self.written

    @property
    def dollars_per_done(self) -> float | None:
        """For each turn that did not fail; None if all did."""
        done = self.turns - self.failed
        return self.dollars / done if done else None

    def __add__(self, other: Costs) -> Costs:
        both: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in Costs.__slots__}
        return Costs(**both)


def costs_by_turn(played: Played, prices: Prices, caching: Caching) -> list[Costs]:
    """What *played* has cost up to the end of each turn."""
    uses = cache_uses(played.prompts, None if caching == "none" else prices.cache, is_warm=caching == "warm")
    failed = {turn for turn, _ in played.missed}
    totals: list[Costs] = []
    for number in range(1 + max((prompt.turn for prompt in played.prompts), default=-1)):
        requests = [(prompt, use) for prompt, use in zip(played.prompts, uses, strict=True) if prompt.turn == number]
        of_turn = Costs(
            turns=1,
            failed=int(number in failed),
            requests=len(requests),
            search_rounds=sum(prompt.is_search for prompt, _ in requests),
            searches=sum(prompt.queries for prompt, _ in requests),
            prompt=sum(use.prompt for _, use in requests),
            read=sum(use.read for _, use in requests),
            written=sum(use.written for _, use in requests),
            output=sum(prompt.written for prompt, _ in requests),
            dollars=sum(_dollars(prices, use, prompt.written) for prompt, use in requests),
        )
        totals.append(totals[-1] + of_turn if totals else of_turn)
    return totals


def total(costs: Iterable[Costs]) -> Costs:
    return sum(costs, Costs())


def cheaper_from(ours: Sequence[float], theirs: Sequence[float]) -> int | None:
    """The place from which on *ours* stays below *theirs*; None if it does not, or is not at the end."""
    place: int | None = None
    for at, (mine, their) in enumerate(zip(ours, theirs, strict=True)):
        if mine >= their:
            place = None
        elif place is None:
            place = at
    return place


def share_where_equal(ours: tuple[float, float], theirs: tuple[float, float]) -> float | None:
    """At which share of conversations with a warm front both cost the same; each is its cost cold, and warm.

    None if one of them is the cheaper at every share.
    """
    cold, warm = ours[0] - theirs[0], ours[1] - theirs[1]
    return cold / (cold - warm) if cold * warm < 0 else None


def _dollars(prices: Prices, use: CacheUse, output: int) -> float:
    return cost_of(prices, uncached=use.uncached, read=use.read, written=use.written, output=output)
