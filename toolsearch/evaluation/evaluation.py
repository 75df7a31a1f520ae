"""`evaluate`: search labelled queries with every strategy; how good are the rankings, and how sure is that?."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from toolsearch.access.reach import Reach
from toolsearch.engine import ToolSearch
from toolsearch.errors import BadQueryError
from toolsearch.evaluation.queries import LabelledQuery
from toolsearch.option_values import name_list
from toolsearch_indexes.queries import Ranking, Strategy

DEPTH = 10  # ranks that count
_Z_95 = 1.959964  # a normal distribution has 95 % within this many standard deviations of its mean


@dataclass(frozen=True, slots=True)
class Quality:
    """Means over queries, each in 0 to 1."""

    recall_1: float
    recall_5: float
    recall_10: float
    ndcg_10: float
    mrr_10: float


def quality(rankings: Sequence[tuple[Sequence[str], AbstractSet[str]]]) -> Quality:
    """Judge rankings. Each has names, best first, of which ten count, and its right names, at least one.

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
    """Return the 95 % confidence interval of the true mean, if *count* values in 0 to 1 have this *mean*.

    Wilson's interval stays within 0 to 1, and one right answer out of one does not prove perfection. It is meant for
    values of 0 or 1. Values between, from queries that take several tools, vary less, and the interval is too wide for
    them. Raises ValueError if *count* < 1.

    Source: Wilson, JASA 1927.
    """
    if count < 1:
        raise ValueError(f"an interval needs at least one value, not {count}")
    squared = _Z_95**2
    middle = mean + squared / (2 * count)
    spread = _Z_95 * math.sqrt((mean * (1 - mean) + squared / (4 * count)) / count)
    whole = 1 + squared / count
    return max(0.0, (middle - spread) / whole), min(1.0, (middle + spread) / whole)


@dataclass(frozen=True, slots=True)
class FoundNames:
    """The names that one query found: at most ten, best first."""

    query: LabelledQuery
    found: tuple[str, ...]

    @property
    def is_miss(self) -> bool:
        """Whether a right tool is missing from the first five, or something was found although no tool fits."""
        relevant = self.query.relevant
        return recall(self.found, relevant, 5) < 1 if relevant else bool(self.found)

    @property
    def ndcg_10(self) -> float:
        """From 0 to 1. For a query that no tool fits, finding nothing is 1."""
        relevant = self.query.relevant
        return ndcg(self.found, relevant, DEPTH) if relevant else float(not self.found)


@dataclass(frozen=True, slots=True)
class StrategyResult:
    """The results of one strategy. A measure is None if there are no queries of its kind.

    quality              of the queries that have a right tool
    recall_5_interval    the 95 % confidence interval of its recall@5
    answered_wrongly     share of the queries without a right tool that found something, from 0 to 1
    refused_wrongly      share of the queries with a right tool that found nothing, from 0 to 1
    """

    strategy: Ranking
    answers: tuple[FoundNames, ...]
    quality: Quality | None
    recall_5_interval: tuple[float, float] | None
    answered_wrongly: float | None
    refused_wrongly: float | None

    def misses(self, limit: int = 10) -> list[FoundNames]:
        """Return at most *limit* misses, lowest nDCG@10 first; ties stay in the order of the queries."""
        return sorted((answer for answer in self.answers if answer.is_miss), key=lambda miss: miss.ndcg_10)[:limit]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of the same queries for each strategy. The first strategy is the main one."""

    queries: tuple[LabelledQuery, ...]
    strategies: tuple[StrategyResult, ...]

    @property
    def main(self) -> StrategyResult:
        return self.strategies[0]

    @property
    def answerable(self) -> int:
        """How many of the queries have a right tool."""
        return sum(bool(query.relevant) for query in self.queries)

    @property
    def proposed(self) -> int:
        """How many of the queries were made from the tools' own words."""
        return sum(query.is_proposed for query in self.queries)


def evaluate(
    engine: ToolSearch,
    queries: Iterable[LabelledQuery],
    strategies: Sequence[Strategy] | None = None,
    *,
    reach: Reach | None = None,
) -> Evaluation:
    """Search for each of *queries* with each of *strategies*, at most ten results each, and measure the results.

    By default all strategies but regex are measured, the engine's default first. *reach* is as for a search. Raises
    BadQueryError if there are no queries, and for a strategy that cannot be measured.
    """
    asked = tuple(queries)
    if not asked:
        raise BadQueryError("there are no queries to evaluate with; give at least one")
    names = _measurable(engine, strategies)
    return Evaluation(asked, tuple(_result(name, _answers(engine, name, asked, reach)) for name in names))


def _measurable(engine: ToolSearch, strategies: Sequence[Strategy] | None) -> list[Ranking]:
    if strategies is None:
        return [strategy for strategy in engine.strategies if strategy != "regex"]
    given = name_list(strategies, "strategies", error=BadQueryError)
    once: dict[Ranking, None] = {engine.index.resolve_strategy(each): None for each in given}
    names = list(once)
    if "regex" in names or not names:
        raise BadQueryError("evaluate measures hybrid, keyword and semantic; regex takes patterns, and words are none")
    return names


def _answers(
    engine: ToolSearch, strategy: Ranking, queries: Sequence[LabelledQuery], reach: Reach | None
) -> tuple[FoundNames, ...]:
    def found(text: str) -> tuple[str, ...]:
        return tuple(hit.name for hit in engine.search(text, limit=DEPTH, strategy=strategy, reach=reach))

    return tuple(FoundNames(query, found(query.text)) for query in queries)


def _result(strategy: Ranking, answers: tuple[FoundNames, ...]) -> StrategyResult:
    answerable = [answer for answer in answers if answer.query.relevant]
    unanswerable = [answer for answer in answers if not answer.query.relevant]
    judged = quality([(answer.found, answer.query.relevant) for answer in answerable]) if answerable else None
    return StrategyResult(
        strategy,
        answers,
        quality=judged,
        recall_5_interval=interval_95(judged.recall_5, len(answerable)) if judged else None,
        answered_wrongly=_share(unanswerable, lambda answer: bool(answer.found)),
        refused_wrongly=_share(answerable, lambda answer: not answer.found),
    )


def _share(answers: Sequence[FoundNames], is_so: Callable[[FoundNames], bool]) -> float | None:
    return sum(map(is_so, answers)) / len(answers) if answers else None
