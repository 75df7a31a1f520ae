"""`evaluate`: search labelled queries with every strategy, and measure the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from toolsearch.access.reach import Reach
from toolsearch.engine import ToolSearch
from toolsearch.errors import BadQueryError
from toolsearch.evaluation.measures import DEPTH, Quality, interval_95, ndcg, quality, recall
from toolsearch.evaluation.queries import LabelledQuery
from toolsearch.option_values import name_list
from toolsearch_indexes.strategies import Ranking, Strategy


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """What one query found: at most ten names, best first."""

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
    answers: tuple[QueryAnswer, ...]
    quality: Quality | None
    recall_5_interval: tuple[float, float] | None
    answered_wrongly: float | None
    refused_wrongly: float | None

    def misses(self, limit: int = 10) -> list[QueryAnswer]:
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
    """Search each of *queries* with each of *strategies*, at most ten results each, and measure what is found.

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
) -> tuple[QueryAnswer, ...]:
    def found(text: str) -> tuple[str, ...]:
        return tuple(hit.name for hit in engine.search(text, limit=DEPTH, strategy=strategy, reach=reach))

    return tuple(QueryAnswer(query, found(query.text)) for query in queries)


def _result(strategy: Ranking, answers: tuple[QueryAnswer, ...]) -> StrategyResult:
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


def _share(answers: Sequence[QueryAnswer], is_so: Callable[[QueryAnswer], bool]) -> float | None:
    return sum(map(is_so, answers)) / len(answers) if answers else None
