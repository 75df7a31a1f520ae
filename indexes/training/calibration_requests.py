"""Fits how much example requests raise the scores of tools that do not serve: a search subtracts that from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from benchmarks.enrichment import Asked
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Ranking
from toolsearch_indexes.scores import KEYWORD_REQUESTS, SEMANTIC_REQUESTS
from training.calibration_samples import Sample, cases, samples, without_requests
from training.logistic import DoubleArray

IN_USE: Final[Mapping[Ranking, float]] = {"keyword": KEYWORD_REQUESTS, "semantic": SEMANTIC_REQUESTS}
_MOST_SUBTRACTED = 10.0  # log odds, far above any sensible term
_EXACT = 1e-6


class Pair(NamedTuple):
    """The same request over the same tools, once with example requests and once without."""

    without: Sample
    having: Sample


def pairs(asked: Asked, encoder: Encoder, *, seed: int) -> list[Pair]:
    """The samples of the tools that have example requests, and of the queries that one of them serves."""
    documents = [document for document in asked.documents if document.requests]
    names = {document.name for document in documents}
    asked = replace(asked, documents=documents, queries=[query for query in asked.queries if query[1] <= names])
    both = [
        samples(asked.name, ToolSearchIndex(each.documents, encoder=encoder), list(cases(asked, seed=seed)))
        for each in (without_requests(asked), asked)
    ]
    return [Pair(*pair) for pair in zip(*both, strict=True)]


def request_terms(asked: Iterable[Pair]) -> dict[str, float]:
    """The log odds to subtract from a tool with example requests, by words and by meaning.

    Each catalog and each kind of unserved request has the same weight. Mean scores are compared rather than mean log
    odds, since these depend mostly on requests far from any answer.
    """
    groups: defaultdict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in asked:
        if not pair.having.is_served and pair.having.sense > 0:
            groups[pair.having.catalog, pair.having.kind].append(pair)
    return {strategy: round(term + _missing(list(groups.values()), strategy), 2) for strategy, term in IN_USE.items()}


def _missing(groups: Sequence[Sequence[Pair]], strategy: Ranking) -> float:
    """What the term in use lacks for equal mean scores, by bisection: the scores fall as the term rises."""
    least, most = -_MOST_SUBTRACTED, _MOST_SUBTRACTED
    while most - least > _EXACT:
        term = (least + most) / 2
        more = sum(_more(group, strategy, term) for group in groups)
        least, most = (term, most) if more > 0 else (least, term)
    return (least + most) / 2


def _more(group: Sequence[Pair], strategy: Ranking, term: float) -> float:
    """By how much the mean score is higher with requests, if *term* is taken back, too."""
    without = _matched([pair.without for pair in group], strategy)
    having = _matched([pair.having for pair in group], strategy)
    return float((_scores(having - term) - _scores(without)).mean())


def _matched(of: Sequence[Sample], strategy: Ranking) -> DoubleArray:
    """Log odds, without those of requests that match nothing."""
    matches = [sample.raw[strategy] > 0 for sample in of]
    return np.where(matches, [sample.log_odds(strategy) for sample in of], -np.inf)


def _scores(log_odds: DoubleArray) -> DoubleArray:
    scores: DoubleArray = 1 / (1 + np.exp(-log_odds))
    return scores
