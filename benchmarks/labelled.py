"""Labelled sets, queries whose right tools are known, and how good a ranking is by them."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SAMPLE = 1_000  # test queries of a set at most
_SEED = 0


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A request and the ids of all tools that it takes; at least one."""

    text: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """A folder's ``tools.jsonl`` (ids are unique, names need not be) and the sample of its test queries."""

    name: str
    tools: Sequence[Mapping[str, Any]]
    queries: Sequence[LabelledQuery]


def read_set(folder: Path) -> LabelledSet:
    """Read the tools and the test queries; of more than SAMPLE queries, a fixed random sample."""
    queries = [LabelledQuery(row["query"], frozenset(row["relevant"])) for row in _rows(folder / "queries.test.jsonl")]
    if len(queries) > SAMPLE:
        queries = random.Random(_SEED).sample(queries, SAMPLE)
    return LabelledSet(folder.name, _rows(folder / "tools.jsonl"), queries)


@dataclass(frozen=True, slots=True)
class Quality:
    """Means over queries, each in 0 to 1."""

    recall_1: float
    recall_5: float
    recall_10: float
    ndcg_10: float
    mrr_10: float


def quality(rankings: Sequence[tuple[Sequence[str], frozenset[str]]]) -> Quality:
    """Judge rankings, ids best first, of which the first ten count, each with its right ids."""

    def mean(values: Sequence[float]) -> float:
        return sum(values) / len(values)

    return Quality(
        recall_1=mean([recall(ids, relevant, 1) for ids, relevant in rankings]),
        recall_5=mean([recall(ids, relevant, 5) for ids, relevant in rankings]),
        recall_10=mean([recall(ids, relevant, 10) for ids, relevant in rankings]),
        ndcg_10=mean([ndcg(ids, relevant, 10) for ids, relevant in rankings]),
        mrr_10=mean([reciprocal_rank(ids, relevant, 10) for ids, relevant in rankings]),
    )


def recall(ids: Sequence[str], relevant: frozenset[str], k: int) -> float:
    """The share of *relevant* among the first *k*; a query that takes three tools cannot reach 1 at k = 1."""
    return len(relevant.intersection(ids[:k])) / len(relevant)


def ndcg(ids: Sequence[str], relevant: frozenset[str], k: int) -> float:
    """Discounted gain of the first *k* over that of the best order; each right tool gains 1.

    Source: Järvelin and Kekäläinen, TOIS 2002.
    """
    gain = sum(1 / math.log2(rank + 2) for rank, found in enumerate(ids[:k]) if found in relevant)
    best = sum(1 / math.log2(rank + 2) for rank in range(min(k, len(relevant))))
    return gain / best


def reciprocal_rank(ids: Sequence[str], relevant: frozenset[str], k: int) -> float:
    """One over the rank, from 1, of the first right tool; 0 if none is among the first *k*."""
    return next((1 / rank for rank, found in enumerate(ids[:k], start=1) if found in relevant), 0.0)


def _rows(path: Path) -> list[Any]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
