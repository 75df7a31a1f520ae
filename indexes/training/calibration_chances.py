"""Fits from which chance on a best tool has high confidence, and writes it beside the other constants.

PYTHONPATH=.:indexes python -m training.calibration_chances [--sets ../shared/eval]

A logistic regression of whether the best tool of an answer is right, on the log odds of its chance. The answers are to
requests that a tool serves: those of the train parts of the labelled sets, and those of agents. Weak answers are left
out. Each catalog has the same weight. The built-in encoder has learnt from the labelled sets.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from benchmarks.choosing import opened
from benchmarks.datasets import TRAIN, add_sets_option
from benchmarks.enrichment import Asked, asked_by_agents
from benchmarks.figure_tables import print_table
from benchmarks.labelled import read_labelled, read_set
from benchmarks.recall import documents_of
from toolsearch_indexes.confidence import MEANT, RIVALS, SHARPNESS, chances_of
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.scores import log_odds_of
from training.calibration import QUERIES, RECORD, SEED, WITH_REQUESTS
from training.logistic import DoubleArray, fit_logistic

_SHARPNESSES: Final = (0.5, 1.0, SHARPNESS, 4.0, 8.0)


class Best(NamedTuple):
    """An answer that is not weak: the scores of its first tools, and whether the best one is right."""

    catalog: str
    scores: Sequence[float]
    is_right: bool


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    encoder = open_encoder(BUILT_IN)
    found = [best for asked in _labelled(options.sets) for best in bests(asked, encoder)]
    makers = {name: partial(asked_by_agents, name) for name in WITH_REQUESTS}
    found += [best for _, asked in opened(makers, WITH_REQUESTS) for best in bests(asked, encoder)]
    if not found:
        print(f"no labelled sets with train queries in {options.sets}", file=sys.stderr)
        return 2
    fitted = {str(sharpness): chance_terms(found, sharpness) for sharpness in _SHARPNESSES}
    columns = ("sharpness", "MEANT", "loss")
    print_table(columns, [(each, *(f"{of[name]:.3f}" for name in columns[1:])) for each, of in fitted.items()])
    print_table(("catalog", "answers", "right", "right and high", "wrong and high"), list(_outcomes(found)))
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    RECORD.write_text(json.dumps(record | {"chances": fitted}, indent=1) + "\n", encoding="utf-8")
    return 0


def bests(asked: Asked, encoder: Encoder) -> Iterator[Best]:
    index = ToolSearchIndex(asked.documents, encoder=encoder)
    for text, relevant in asked.queries:
        hits = index.search(text, limit=RIVALS, strategy="hybrid")
        if hits and hits[0].confidence != "low":
            yield Best(asked.name, [hit.score for hit in hits], hits[0].name in relevant)


def chance_terms(of: Sequence[Best], sharpness: float) -> dict[str, float]:
    """*MEANT*: the chance with which as many best tools are right as wrong. *loss*: how far chances are from what is
    right, as the mean of negative log likelihoods.
    """
    chances = np.array([log_odds_of(chances_of(best.scores, sharpness=sharpness)[0]) for best in of])
    is_right, counts = np.array([best.is_right for best in of]), Counter(best.catalog for best in of)
    weights = np.array([1 / counts[best.catalog] for best in of])
    features = np.column_stack([np.ones(len(of)), chances])
    offset, slope = fit_logistic(features, is_right, weights)
    losses: DoubleArray = np.logaddexp(0, np.where(is_right, -1, 1) * (offset + slope * chances))
    meant = 1 / (1 + math.exp(offset / slope))
    return {"MEANT": round(meant, 3), "loss": round(float(np.average(losses, weights=weights)), 3)}


def _outcomes(of: Sequence[Best]) -> Iterator[Sequence[str]]:
    """How many answers are not weak, how many of them right, and how many of the right and of the wrong have high
    confidence, by catalog.
    """
    for catalog in dict.fromkeys(best.catalog for best in of):
        here = [best for best in of if best.catalog == catalog]
        is_right = np.array([best.is_right for best in here])
        is_high = np.array([chances_of(best.scores)[0] >= MEANT for best in here])
        shares = (is_right.mean(), is_high[is_right].mean(), is_high[~is_right].mean())
        yield catalog, str(len(here)), *(f"{share:.1%}" for share in shares)


def _labelled(sets: Path) -> Iterator[Asked]:
    for folder in sorted(path.parent for path in sets.glob(f"*/{TRAIN}")):
        queries = read_labelled(folder / TRAIN)
        drawn = random.Random(SEED).sample(queries, min(QUERIES, len(queries)))
        asked = [(query.text, query.relevant) for query in drawn]
        yield Asked(folder.name, documents_of(read_set(folder).tools), asked)


def _parser() -> argparse.ArgumentParser:
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m training.calibration_chances", description=summary)
    add_sets_option(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
