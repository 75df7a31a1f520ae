"""Fits how a reader's log odds are combined with the score of a search, and writes the constants beside the others.

PYTHONPATH=.:indexes:indexes/transformer python -m training.calibration_reader --reader FOLDER [--encoder transformer]

A logistic regression over the tools that are read. The requests are those of the train parts of the labelled sets, with
all tools and without the right ones, and requests that no tool serves. Each set and each kind of request has the same
weight.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from benchmarks.abstention import read_unanswerable
from benchmarks.datasets import TRAIN, UNANSWERABLE_DEV, add_sets_option
from benchmarks.labelled import read_labelled, read_set
from benchmarks.recall import documents_of
from toolsearch_indexes.encoders.opening import AUTO, BUILT_IN, open_encoder
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.reader import Reader, open_reader
from toolsearch_indexes.reranking import READ
from toolsearch_indexes.scores import SURE, log_odds_of
from training.calibration import QUERIES, RECORD, SEED
from training.calibration_samples import ALL_TOOLS, NOTHING, REMOVED
from training.logistic import DoubleArray, fit_logistic

_MISSED_SHARE: Final = 0.01  # the share of correct answers that may become "no tool"
_FOLLOWING_DISTANCE: Final = 1.5  # log odds by which a later hit may be below the best


class Read(NamedTuple):
    """A tool of an answer: the log odds of the search and of the reader, and whether the tool is right.

    answer  the number of the request; *catalog* and *kind* belong to it, too
    """

    catalog: str
    kind: str
    answer: int
    found: float
    said: float
    is_right: bool


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    reader = open_reader(options.reader)
    if reader is None:
        print("no reader is installed: name its folder with --reader", file=sys.stderr)
        return 2
    read = [one for each in options.encoder.split(",") for one in reads(options.sets, open_encoder(each), reader)]
    if not read:
        print(f"no labelled sets with train queries in {options.sets}", file=sys.stderr)
        return 2
    fitted = reader_terms(read)
    print(json.dumps(fitted))
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    RECORD.write_text(json.dumps(record | {"reader": fitted}, indent=1) + "\n", encoding="utf-8")
    return 0


def reads(sets: Path, encoder: Encoder, reader: Reader) -> Iterator[Read]:
    """The read tools of the answers to all requests. Answers are numbered from 0."""
    nothing = read_unanswerable(UNANSWERABLE_DEV)
    answers = itertools.count()
    for folder in sorted(path.parent for path in sets.glob(f"*/{TRAIN}")):
        index = ToolSearchIndex(documents_of(read_set(folder).tools), encoder=encoder)
        names = set(index.names())
        queries = read_labelled(folder / TRAIN)
        drawn = random.Random(SEED).sample(queries, min(QUERIES, len(queries)))
        asked = [
            *((ALL_TOOLS, query.text, query.relevant, names) for query in drawn),
            *((REMOVED, query.text, query.relevant, names - query.relevant) for query in drawn),
            *((NOTHING, request.query, frozenset[str](), names) for request in nothing if request.set == folder.name),
        ]
        for kind, text, relevant, within in asked:
            answer = next(answers)
            hits = index.search(text, limit=READ, strategy="hybrid", within=within)
            said = reader.read(text, [index.state.shown(hit.name, text) for hit in hits])
            for hit, one in zip(hits, said.tolist(), strict=True):
                yield Read(folder.name, kind, answer, log_odds_of(hit.score), one, hit.name in relevant)


def reader_terms(of: Sequence[Read]) -> dict[str, float]:
    """A reader's constants in `toolsearch_indexes/calibration.py`: the weight of its log odds; an offset that keeps the
    share of served requests whose answer is not weak; and the limits for the best tool and for those after it.
    """
    found, said = np.array([each.found for each in of]), np.array([each.said for each in of])
    counts = Counter((each.catalog, each.kind) for each in of)
    weights = np.array([1 / counts[each.catalog, each.kind] for each in of])
    features = np.column_stack([np.ones(len(of)), found, said])
    _, of_found, of_said = fit_logistic(features, np.array([each.is_right for each in of]), weights).tolist()
    read = of_said / of_found
    before, after = _best_of_served(of, found), _best_of_served(of, found + read * said)
    offset = SURE - float(np.quantile(after, (before < SURE).mean()))
    least = offset + float(np.quantile(after, _MISSED_SHARE))
    terms = {"OFFSET": offset, "READ": read, "LEAST": least, "FOLLOWING": least - _FOLLOWING_DISTANCE}
    return {name: round(value, 2) for name, value in terms.items()}


def _best_of_served(of: Sequence[Read], log_odds: DoubleArray) -> DoubleArray:
    """The best tool of each request that some tool serves."""
    best: dict[int, float] = {}
    for each, odds in zip(of, log_odds.tolist(), strict=True):
        if each.kind == ALL_TOOLS:
            best[each.answer] = max(best.get(each.answer, -math.inf), odds)
    return np.array(list(best.values()))


def _parser() -> argparse.ArgumentParser:
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m training.calibration_reader", description=summary)
    add_sets_option(parser)
    parser.add_argument("--reader", default=AUTO, help="a folder; auto: what is installed")
    parser.add_argument(
        "--encoder", default=BUILT_IN, help="what tools and requests are embedded with; several by comma"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
