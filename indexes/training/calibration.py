"""Fits the constants of `toolsearch_indexes/calibration.py`, and writes what it has found beside the other data.

PYTHONPATH=.:indexes python -m training.calibration [--sets ../shared/eval] [--left-out FOLDER] [--only requests]

Two fits. The scales are logistic regressions over catalogs without requests. The terms for requests are fitted on
catalogs whose tools have some: each request that nothing serves is asked with them and without, and so much is taken
from its log odds that the mean score is the same. So these are answered as seldom and as surely as without, and what
a tool serves keeps what it gains beyond that.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from benchmarks.abstention import Unanswerable, read_unanswerable
from benchmarks.choosing import opened
from benchmarks.datasets import TRAIN, UNANSWERABLE_DEV, add_sets_option
from benchmarks.enrichment import Asked, asked_by_agents
from benchmarks.figure_tables import print_table
from benchmarks.labelled import read_labelled, read_set
from benchmarks.recall import documents_of, encoder_without
from toolsearch_indexes.calibration import LEAST, SURE, shrunk, size_of
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.strategies import Ranking
from training.calibration_samples import (
    ALL_TOOLS,
    FEW_TOOLS,
    NOTHING,
    STRATEGIES,
    Sample,
    cases,
    samples,
    without_requests,
)
from training.logistic import DoubleArray, fit_logistic

RECORD: Final = Path(__file__).parent / "data" / "calibration.json"
WITH_REQUESTS: Final = ("aws-core", "github", "google-workspace", "mcp-servers")  # of `benchmarks.agent_queries`
QUERIES: Final = 200  # of a labelled set at most
SEED: Final = 0

_MISSED = 0.015  # of the best hits for requests with a right tool, those that make no answer
_SURE_OF_NOTHING = 0.06  # of the best hits for requests without one, those of high confidence
_MOST_TAKEN = 10.0  # in log odds, far from any sensible term
_EXACT = 1e-6
_FOLLOWS = 0.7  # in log odds: a hit after the best may be half as likely as the least of those

Terms: TypeAlias = Mapping[str, float]  # coefficients by what they are of


class Pair(NamedTuple):
    """One request of the same tools, which have requests or not."""

    without: Sample
    having: Sample


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    nothing = read_unanswerable(UNANSWERABLE_DEV)
    found: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    if options.only != "scales":
        makers = {name: partial(_with_requests, name, nothing) for name in WITH_REQUESTS}
        asked = [each for _, each in opened(makers, WITH_REQUESTS)]
        if len(asked) < len(WITH_REQUESTS):
            return 2
        asked_twice = [pair for each in asked for pair in pairs(each, open_encoder(BUILT_IN))]
        found["requests"] = request_terms(asked_twice)
        print("What requests of all tools add, to be taken back:", json.dumps(found["requests"]))
        _print_outcomes(request_outcomes(asked_twice, found["requests"]))
    if options.only != "requests":
        catalogs = list(labelled_samples(options.sets, nothing, options.left_out))
        if not catalogs:
            print(f"no labelled sets with train queries in {options.sets}", file=sys.stderr)
            return 2
        fitted_on = [sample for each in catalogs for sample in each]
        found["is_left_out"] = options.left_out is not None
        found["scales"] = {strategy: scale_terms(fitted_on, strategy) for strategy in STRATEGIES}
        found["thresholds"] = {strategy: thresholds(fitted_on, strategy) for strategy in STRATEGIES}
        for strategy in STRATEGIES:
            print(f"{strategy}: log odds", json.dumps(found["scales"][strategy]))
            print(f"{strategy}: under the constants in use,", json.dumps(found["thresholds"][strategy]))
        _print_outcomes(scale_outcomes(fitted_on, found["scales"]))
    RECORD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


def labelled_samples(sets: Path, nothing: Sequence[Unanswerable], left_out: Path | None) -> Iterator[list[Sample]]:
    """Of each set with train queries, asked with an encoder that has not learnt from it where *left_out* has one."""
    for folder in sorted(path.parent for path in sets.glob(f"*/{TRAIN}")):
        queries = read_labelled(folder / TRAIN)
        drawn = random.Random(SEED).sample(queries, min(QUERIES, len(queries)))
        asked = Asked(
            folder.name,
            documents_of(read_set(folder).tools),
            [(query.text, query.relevant) for query in drawn],
            [request.query for request in nothing if request.set == folder.name],
        )
        encoder = encoder_without(folder.name, left_out)
        if encoder is None:
            print(f"{folder.name}: asked with the built-in encoder, which has learnt from it", file=sys.stderr)
        index = ToolSearchIndex(asked.documents, encoder=encoder or open_encoder(BUILT_IN))
        yield samples(folder.name, index, [case for case in cases(asked, seed=SEED) if case.kind in _KINDS])


_KINDS = (ALL_TOOLS, FEW_TOOLS, NOTHING)  # what is left of large sets without the right tool often serves as well


def pairs(asked: Asked, encoder: Encoder) -> list[Pair]:
    both = [
        samples(asked.name, ToolSearchIndex(each.documents, encoder=encoder), list(cases(asked, seed=SEED)))
        for each in (without_requests(asked), asked)
    ]
    return [Pair(*pair) for pair in zip(*both, strict=True)]


def request_terms(asked: Iterable[Pair]) -> dict[str, float]:
    """By strategy, what to take from log odds where all tools have requests, and where a share has, that share of it.

    Each catalog and each kind of request that nothing serves counts alike. Mean scores are compared and not mean log
    odds, which hang on those that are far from any answer.
    """
    groups: defaultdict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in asked:
        if not pair.having.is_served and pair.having.sense > 0:
            groups[pair.having.catalog, pair.having.kind].append(pair)
    return {strategy: round(_taken_back(list(groups.values()), strategy), 2) for strategy in STRATEGIES}


def _taken_back(groups: Sequence[Sequence[Pair]], strategy: Ranking) -> float:
    """The term under which the mean scores are the same, by bisection: they fall as it rises."""
    least, most = -_MOST_TAKEN, _MOST_TAKEN
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
    """Log odds, as if no tool had requests; where nothing matches, none."""
    matches = [sample.raw[strategy] > 0 for sample in of]
    return np.where(matches, [sample.log_odds(strategy, requests=False) for sample in of], -np.inf)


def _scores(log_odds: DoubleArray) -> DoubleArray:
    scores: DoubleArray = 1 / (1 + np.exp(-log_odds))
    return scores


_Features: TypeAlias = Callable[[Sample], Mapping[str, float]]


def _of_keyword(sample: Sample) -> Mapping[str, float]:
    raw = sample.raw["keyword"]
    over_ideal = raw / sample.ideal if sample.ideal else 0.0
    return {"raw": raw, "raw / ideal": over_ideal, "size": size_of(sample.tools), "1": 1.0}


def _of_semantic(sample: Sample) -> Mapping[str, float]:
    return {"raw": sample.raw["semantic"], **_of_request(sample)}


def _of_hybrid(sample: Sample) -> Mapping[str, float]:
    raw = sample.raw["hybrid"]
    return {"raw": raw, "raw / size": raw / size_of(sample.tools), **_of_request(sample)}


def _of_request(sample: Sample) -> Mapping[str, float]:
    familiarity = shrunk(sample.familiarity, sample.tools)
    return {"familiarity": familiarity, "size": size_of(sample.tools), "sense": sample.sense, "1": 1.0}


_FEATURES: Final[Mapping[Ranking, _Features]] = {
    "keyword": _of_keyword,
    "semantic": _of_semantic,
    "hybrid": _of_hybrid,
}


def scale_terms(of: Sequence[Sample], strategy: Ranking) -> dict[str, float]:
    """The scale of *strategy*. Each kind of request counts alike in each catalog, with and without a right tool.

    What nothing is found for tells nothing of raw scores, and what makes no sense has a constant of its own.
    """
    used = [sample for sample in of if sample.raw[strategy] > 0 and sample.sense > 0]
    rows = [_FEATURES[strategy](sample) for sample in used]
    served = np.array([sample.is_served for sample in used])
    coefficients = fit_logistic(np.array([list(row.values()) for row in rows]), served, _weights(used))
    return {name: round(float(value), 3) for name, value in zip(rows[0], coefficients, strict=True)}


def _weights(used: Sequence[Sample]) -> DoubleArray:
    counts = Counter((sample.catalog, sample.kind, sample.is_served) for sample in used)
    return np.array([1 / counts[sample.catalog, sample.kind, sample.is_served] for sample in used])


def thresholds(of: Iterable[Sample], strategy: Ranking) -> dict[str, float]:
    """The thresholds that the constants in use would have by their rules, where all tools are asked."""
    best = [(each.is_served, each.log_odds(strategy)) for each in of if each.kind != FEW_TOOLS and each.raw[strategy]]
    least = float(np.quantile([log_odds for is_served, log_odds in best if is_served], _MISSED))
    sure = float(np.quantile([log_odds for is_served, log_odds in best if not is_served], 1 - _SURE_OF_NOTHING))
    return {"LEAST": round(least, 2), "FOLLOWING": round(least - _FOLLOWS, 2), "SURE": round(sure, 2)}


class Outcomes(NamedTuple):
    """Shares: of requests that nothing serves, answered and with high confidence; of others, neither or not sure."""

    catalog: str
    strategy: str
    constants: str
    answered: float
    sure: float
    refused: float
    unsure: float


def request_outcomes(asked: Sequence[Pair], terms: Terms) -> Iterator[Outcomes]:
    """Of all tools of each catalog: without requests, with them as if they had none, and with *terms* taken back."""
    for catalog in dict.fromkeys(pair.having.catalog for pair in asked):
        here = [pair for pair in asked if pair.having.catalog == catalog and pair.having.kind in (ALL_TOOLS, NOTHING)]
        for strategy in STRATEGIES:
            having = [pair.having for pair in here]
            usual = [sample.log_odds(strategy, requests=False) for sample in having]
            taken = [odds - terms[strategy] * each.requested for odds, each in zip(usual, having, strict=True)]
            before = [pair.without.log_odds(strategy, requests=False) for pair in here]
            yield _outcomes([pair.without for pair in here], strategy, "no requests", before)
            yield _outcomes(having, strategy, "requests, no term", usual)
            yield _outcomes(having, strategy, "requests, this term", taken)


def scale_outcomes(of: Sequence[Sample], scales: Mapping[str, Terms]) -> Iterator[Outcomes]:
    """Of all tools of each catalog: under the constants in use, and under those that were fitted."""
    for catalog in dict.fromkeys(sample.catalog for sample in of):
        here = [sample for sample in of if sample.catalog == catalog and sample.kind in (ALL_TOOLS, NOTHING)]
        for strategy in STRATEGIES:
            terms = scales[strategy]
            fitted = [sum(terms[n] * x for n, x in _FEATURES[strategy](sample).items()) for sample in here]
            yield _outcomes(here, strategy, "in use", [sample.log_odds(strategy) for sample in here])
            yield _outcomes(here, strategy, "fitted", fitted)


def _outcomes(of: Sequence[Sample], strategy: Ranking, constants: str, log_odds: Sequence[float]) -> Outcomes:
    matches = np.array([sample.raw[strategy] > 0 for sample in of])
    odds = np.where(matches, log_odds, -np.inf)
    served = np.array([sample.is_served for sample in of])
    others, right = odds[~served], odds[served]
    return Outcomes(
        of[0].catalog,
        strategy,
        constants,
        *(float((others >= bound).mean()) if len(others) else float("nan") for bound in (LEAST, SURE)),
        *(float((right < bound).mean()) for bound in (LEAST, SURE)),
    )


def _print_outcomes(outcomes: Iterable[Outcomes]) -> None:
    columns = ("catalog", "search", "constants", "answered", "sure", "refused", "unsure")
    rows = [(*each[:3], *("-" if np.isnan(share) else f"{share:.1%}" for share in each[3:])) for each in outcomes]
    print_table(columns, rows, by_first=True)


def _with_requests(name: str, nothing: Sequence[Unanswerable]) -> Asked:
    """Raises SourceError if a package that the tools come from is not installed."""
    asked = asked_by_agents(name)
    return Asked(name, asked.documents, asked.queries, [request.query for request in nothing])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m training.calibration", description=(__doc__ or "").partition("\n")[0]
    )
    add_sets_option(parser)
    parser.add_argument("--left-out", type=Path, help="a folder of encoders' folders, each trained without some sets")
    parser.add_argument("--only", choices=("requests", "scales"), help="one of the two fits")
    return parser


if __name__ == "__main__":
    sys.exit(main())
