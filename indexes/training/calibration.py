"""Fits the constants of `toolsearch_indexes/calibration.py`, and writes what it has found beside the other data.

PYTHONPATH=.:indexes python -m training.calibration [--sets ../shared/eval] [--left-out FOLDER] [--only requests]

There are two fits. The scales are logistic regressions over catalogs without example requests. The terms for example
requests are fitted on catalogs that have them. Each request that no tool serves is asked with and without the examples.
The term is the amount of log odds that makes the mean scores equal. So such requests are answered as rarely with
examples as without, and served requests keep the rest of their gain. All tools of these catalogs have examples: others
are left out.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Ranking
from toolsearch_indexes.scores import LEAST, SURE
from training.calibration_requests import Pair, pairs, request_terms
from training.calibration_samples import ALL_TOOLS, FEW_TOOLS, NOTHING, STRATEGIES, Sample, cases, samples
from training.calibration_scales import FEATURES, scale_terms, thresholds

RECORD: Final = Path(__file__).parent / "data" / "calibration.json"
WITH_REQUESTS: Final = ("aws-core", "github", "google-workspace", "mcp-servers")  # names of `benchmarks.agent_queries`
QUERIES: Final = 200  # the most queries of one labelled set
SEED: Final = 0
# The kinds of samples; large sets without the right tool are left out, since another tool often serves as well.
_KINDS = (ALL_TOOLS, FEW_TOOLS, NOTHING)

Terms: TypeAlias = Mapping[str, float]  # name of a term -> its coefficient


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    nothing = read_unanswerable(UNANSWERABLE_DEV)
    found: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    if options.only != "scales":
        makers = {name: partial(_with_requests, name, nothing) for name in WITH_REQUESTS}
        asked = [each for _, each in opened(makers, WITH_REQUESTS)]
        if len(asked) < len(WITH_REQUESTS):
            return 2
        asked_twice = [pair for each in asked for pair in pairs(each, open_encoder(BUILT_IN), seed=SEED)]
        found["requests"] = request_terms(asked_twice)
        print("What requests add to a tool, to be taken back:", json.dumps(found["requests"]))
        _print_outcomes(request_outcomes(asked_twice))
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
    """Samples of each set with train queries. If *left_out* has an encoder that has not learnt from the set, it is
    used.
    """
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


class Outcomes(NamedTuple):
    """Shares of unserved requests that get an answer, and one that is not weak; shares of others that get none, and
    none or a weak one.
    """

    catalog: str
    strategy: str
    constants: str
    answered: float
    sure: float
    refused: float
    unsure: float


def request_outcomes(asked: Sequence[Pair]) -> Iterator[Outcomes]:
    """Outcomes over all tools of each catalog: without example requests, and with them under the terms in use."""
    for catalog in dict.fromkeys(pair.having.catalog for pair in asked):
        here = [pair for pair in asked if pair.having.catalog == catalog and pair.having.kind in (ALL_TOOLS, NOTHING)]
        for strategy in STRATEGIES:
            for constants, of in (
                ("no requests", [each.without for each in here]),
                ("requests", [each.having for each in here]),
            ):
                yield _outcomes(of, strategy, constants, [sample.log_odds(strategy) for sample in of])


def scale_outcomes(of: Sequence[Sample], scales: Mapping[str, Terms]) -> Iterator[Outcomes]:
    """Outcomes over all tools of each catalog: under the constants in use, and under the fitted ones."""
    for catalog in dict.fromkeys(sample.catalog for sample in of):
        here = [sample for sample in of if sample.catalog == catalog and sample.kind in (ALL_TOOLS, NOTHING)]
        for strategy in STRATEGIES:
            terms = scales[strategy]
            fitted = [sum(terms[n] * x for n, x in FEATURES[strategy](sample).items()) for sample in here]
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
