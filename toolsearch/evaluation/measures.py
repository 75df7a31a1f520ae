"""How good rankings are by what is known to be right, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

DEPTH = 10  # ranks that count

_Z_95 = 1.959964  # standard deviations of a normal distribution on either side of its mean that hold 95 %


@dataclass(frozen=True, slots=True)
class Quality:
    """Means over queries, each in 0 to 1."""

    recall_1: float
    recall_5: float
    recall_10: float
    ndcg_10: float
    mrr_10: float


def quality(rankings: Sequence[tuple[Sequence[str], AbstractSet[str]]]) -> Quality:
    """Judge rankings, names best first, of which the first ten count, each with its right names: at least one.

    Raises ValueError if there are no rankings.
    """
    if not rankings:
        raise ValueError("there is no ranking to judge")

    def mean(values: Sequence[float]) -> float:
        return sum(values) / len(values)

    return Quality(
        recall_1=mean([recall(ranked, relevant, 1) for ranked, relevant in rankings]),
        recall_5=mean([recall(ranked, relevant, 5) for ranked, relevant in rankings]),
        recall_10=mean([recall(ranked, relevant, DEPTH) for ranked, relevant in rankings]),
        ndcg_10=mean([ndcg(ranked, relevant, DEPTH) for ranked, relevant in rankings]),
        mrr_10=mean([reciprocal_rank(ranked, relevant, DEPTH) for ranked, relevant in rankings]),
    )


def recall(ranked: Sequence[str], relevant: AbstractSet[str], k: int) -> float:
    """The share of *relevant* among the first *k*; a query that takes three tools cannot reach 1 at k = 1."""
    return len(relevant & set(ranked[:k])) / len(relevant)


def ndcg(ranked: Sequence[str], relevant: AbstractSet[str], k: int) -> float:
    """Discounted gain of the first *k* over that of the best order; each right tool gains 1.

    Source: Järvelin and Kekäläinen, TOIS 2002.
    """
    gain = sum(1 / math.log2(rank + 2) for rank, found in enumerate(ranked[:k]) if found in relevant)
    best = sum(1 / math.log2(rank + 2) for rank in range(min(k, len(relevant))))
    return gain / best


def reciprocal_rank(ranked: Sequence[str], relevant: AbstractSet[str], k: int) -> float:
    """One over the rank, from 1, of the first right tool; 0 if none is among the first *k*."""
    return next((1 / rank for rank, found in enumerate(ranked[:k], start=1) if found in relevant), 0.0)


def interval_95(mean: float, count: int) -> tuple[float, float]:
    """Return where the true mean lies, at 95 % confidence, if *count* values in 0 to 1 have this *mean*.

    Wilson's interval: it stays within 0 to 1, and one right answer out of one is no proof of perfection. Meant for
    values of 0 or 1; those between, of a query that takes several tools, vary less: for them it is rather too wide.
    Raises ValueError if *count* < 1.

    Source: Wilson, JASA 1927.
    """
    if count < 1:
        raise ValueError(f"an interval needs at least one value, not {count}")
    squared = _Z_95**2
    middle = mean + squared / (2 * count)
    spread = _Z_95 * math.sqrt((mean * (1 - mean) + squared / (4 * count)) / count)
    whole = 1 + squared / count
    return max(0.0, (middle - spread) / whole), min(1.0, (middle + spread) / whole)
