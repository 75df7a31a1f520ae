"""An evaluation as JSON, for programs that compare one run with the next. Keys are added, never renamed."""

from __future__ import annotations

from dataclasses import asdict, fields

from toolsearch.evaluation.evaluation import Evaluation, QueryAnswer, StrategyResult
from toolsearch.evaluation.measures import Quality
from toolsearch.tools.json_types import Json

FORMAT = 1
_DIGITS = 4


def as_json(evaluation: Evaluation, *, misses: int = 10) -> dict[str, Json]:
    """Return the figures, at most *misses* of the main strategy's misses, and every answer; shares have four digits.

    A measure of queries that there are none of is null. Names that were found are best first, expected ones sorted.
    """
    return {
        "format": FORMAT,
        "queries": {
            "all": len(evaluation.queries),
            "answerable": evaluation.answerable,
            "proposed": evaluation.proposed,
        },
        "strategies": [_figures(result) for result in evaluation.strategies],
        "misses": [_answer(miss) for miss in evaluation.main.misses(misses)],
        "answers": {
            result.strategy: [_answer(answer) for answer in result.answers] for result in evaluation.strategies
        },
    }


def _figures(result: StrategyResult) -> dict[str, Json]:
    measured = asdict(result.quality) if result.quality else dict.fromkeys(field.name for field in fields(Quality))
    interval = result.recall_5_interval
    return {
        "strategy": result.strategy,
        **{measure: _rounded(value) for measure, value in measured.items()},
        "recall_5_interval": [_rounded(end) for end in interval] if interval else None,
        "answered_wrongly": _rounded(result.answered_wrongly),
        "refused_wrongly": _rounded(result.refused_wrongly),
    }


def _answer(answer: QueryAnswer) -> dict[str, Json]:
    query = answer.query
    return {
        "query": query.text,
        "expected": sorted(query.relevant),
        "found": list(answer.found),
        "ndcg_10": _rounded(answer.ndcg_10),
        "proposed": query.is_proposed,
    }


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, _DIGITS)
