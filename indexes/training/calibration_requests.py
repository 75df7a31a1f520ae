"""Fits how much example requests raise the scores of tools that do not serve: a scale subtracts these terms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.enrichment import Asked
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Ranking
from training.calibration_samples import STRATEGIES, Sample, cases, samples, without_requests
from training.logistic import DoubleArray

_MOST_SUBTRACTED = 10.0  # log odds, far above any sensible term
_EXACT = 1e-6


class Pair(NamedTuple):
    """The same request over the same tools, once with example requests and once without."""

    without: Sample
    having: Sample


def pairs(asked: Asked, encoder: Encoder, *, seed: int) -> list[Pair]:
    both = [
        samples(asked.name, ToolSearchIndex(each.documents, encoder=encoder), list(cases(asked, seed=seed)))
        for each in (without_requests(asked), asked)
    ]
    return [Pair(*pair) for pair in zip(*both, strict=True)]


def request_terms(asked: Iterable[Pair]) -> dict[str, float]:
    """The log odds to subtract for each strategy if all tools have example requests; if a share of them has, that
    share.

    Each catalog and each kind of unserved request has the same weight. Mean scores are compared rather than mean log
    odds, since these depend mostly on requests far from any answer.
    """
    groups: defaultdict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in asked:
        if not pair.having.is_served and pair.having.sense > 0:
            groups[pair.having.catalog, pair.having.kind].append(pair)
    return {strategy: round(_subtracted(list(groups.values()), strategy), 2) for strategy in STRATEGIES}


def _subtracted(groups: Sequence[Sequence[Pair]], strategy: Ranking) -> float:
    """The term under which the mean scores are equal, by bisection: the scores fall as the term rises."""
    least, most = -_MOST_SUBTRACTED, _MOST_SUBTRACTED
    while most - least > _EXACT:
        term = (least + most) / 2
        more = sum(_more(group, strategy, term) for group in groups)
        least, most = (term, most) if more > 0 else (least, term)
    return (least + most) / 2


def _more(group: Sequence[Pair], strategy: Ranking, term: float) -> float:
    """By how much the mean score is higher with requests, if *term* is taken back."""
    without = _matched([pair.without for pair in group], strategy)
    having = _matched([pair.having for pair in group], strategy)
    share = np.array([pair.having.requested for pair in group])
    return float((_scores(having - term * share) - _scores(without)).mean())


def _matched(of: Sequence[Sample], strategy: Ranking) -> DoubleArray:
    """Log odds as if no tool had example requests, without requests that match nothing."""
    matches = [sample.raw[strategy] > 0 for sample in of]
    return np.where(matches, [sample.log_odds(strategy, requests=False) for sample in of], -np.inf)


def _scores(log_odds: DoubleArray) -> DoubleArray:
    scores: DoubleArray = 1 / (1 + np.exp(-log_odds))
    return scores
