"""Does a search answer with nothing when nothing fits, and only then? On requests with a right tool and without one.

python -m benchmarks.abstention [--sets ../shared/eval] [--unanswerable FILE] [--encoder SPEC] [--left-out FOLDER]
                               [--reader SPEC] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from benchmarks.datasets import TEST, UNANSWERABLE, add_sets_option
from benchmarks.figure_tables import print_table
from benchmarks.labelled import LabelledSet, read_set
from benchmarks.recall import (
    READ,
    add_encoder_option,
    add_reader_option,
    add_systems_option,
    chosen_systems,
    encoder_without,
    encoders_to_measure,
    index_of,
    reader_to_measure,
)
from benchmarks.results import write_figures
from toolsearch_indexes.documents import Confidence, Hit
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.reader import Reader

Search = Callable[[str], Sequence[Hit]]

KINDS = ("no_tool", "other_domain", "smalltalk", "gibberish")
SAMPLE = 500  # answerable queries of a set at most
ALL = "all sets"
_BY_CONFIDENCE = ("fitting", "weak", "sure", "unsure")
_SEED = 0


@dataclass(frozen=True, slots=True)
class Unanswerable:
    """A request that no tool of the set serves.

    kind   "no_tool": the words or the field of the catalogue, yet no tool; "other_domain": a task for other tools;
           "smalltalk": no task; "gibberish": no words
    """

    set: str
    query: str
    kind: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """One query and the confidence of its best tool, None for no answer; *kind* is empty where a right tool exists."""

    kind: str
    confidence: Confidence | None = None

    @property
    def is_answered(self) -> bool:
        return self.confidence is not None

    @property
    def is_weak(self) -> bool:
        """Whether a model is told that probably no tool fits."""
        return self.confidence in (None, "low")

    @property
    def is_sure(self) -> bool:
        return self.confidence == "high"


@dataclass(frozen=True, slots=True)
class Abstention:
    """Shares in 0 to 1, best 0; None where there was no such query.

    answered   of the requests that nothing serves, those answered with a tool; by kind, too
    refused    of the requests that have a right tool, those answered with none
    fitting    of the requests that nothing serves, those whose answer is not weak
    weak       of the requests that have a right tool, those whose answer is weak, or none
    sure       of the requests that nothing serves, those answered with high confidence
    unsure     of the requests that have a right tool, those not answered with high confidence
    """

    answered: float | None
    answered_by_kind: Mapping[str, float | None]
    refused: float | None
    fitting: float | None
    weak: float | None
    sure: float | None
    unsure: float | None


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    unanswerable = read_unanswerable(options.unanswerable)
    folders = [options.sets / name for name in dict.fromkeys(request.set for request in unanswerable)]
    folders = [folder for folder in folders if (folder / TEST).exists()]
    if not folders:
        print(f"no labelled sets in {options.sets} that {options.unanswerable} has requests for", file=sys.stderr)
        return 2
    chosen = chosen_systems(options.systems)
    reader = reader_to_measure(options.reader)
    outcomes: dict[str, dict[str, list[Outcome]]] = {}
    for labelled in map(read_set, folders):
        here = [request for request in unanswerable if request.set == labelled.name]
        left_out = encoder_without(labelled.name, options.left_out)
        searches = searches_to_measure(labelled, encoders_to_measure(options.encoder, left_out=left_out), reader)
        outcomes[labelled.name] = {
            name: ask(search, labelled, here) for name, search in searches.items() if chosen is None or name in chosen
        }
    names = list(next(iter(outcomes.values())))
    outcomes[ALL] = {s: [outcome for by_system in outcomes.values() for outcome in by_system[s]] for s in names}
    results = {name: {s: judge(found) for s, found in by_system.items()} for name, by_system in outcomes.items()}
    _print_table(results)
    if options.json:
        write_figures(options.json, "abstention", _plain(results), seed=_SEED)
    return 0


def read_unanswerable(path: Path) -> list[Unanswerable]:
    """Read a JSON Lines file of set, query and kind."""
    return [Unanswerable(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def searches_to_measure(
    labelled: LabelledSet, encoders: Mapping[str, Encoder], reader: Reader | None = None
) -> dict[str, Search]:
    """If there is a *reader*, hybrid also with it."""
    searches: dict[str, Search] = {"keyword": partial(index_of(labelled.tools, None).search, limit=1)}
    for which, encoder in encoders.items():
        index = index_of(labelled.tools, encoder)
        for strategy in ("semantic", "hybrid"):
            searches[f"{strategy}{which}"] = partial(index.search, limit=1, strategy=strategy)
        if reader:
            read = index_of(labelled.tools, encoder, reader)
            searches[f"hybrid{which}{READ}"] = partial(read.search, limit=1, strategy="hybrid")
    return searches


def ask(search: Search, labelled: LabelledSet, unanswerable: Iterable[Unanswerable]) -> list[Outcome]:
    """Put the requests that nothing serves, then a fixed random sample of those that some tool does."""
    answerable = labelled.queries
    if len(answerable) > SAMPLE:
        answerable = random.Random(_SEED).sample(answerable, SAMPLE)
    asked = [(request.kind, request.query) for request in unanswerable] + [("", query.text) for query in answerable]
    return [outcome_of(kind, search(query)) for kind, query in asked]


def outcome_of(kind: str, hits: Sequence[Hit]) -> Outcome:
    return Outcome(kind, hits[0].confidence if hits else None)


def judge(outcomes: Sequence[Outcome]) -> Abstention:
    unanswerable = [outcome for outcome in outcomes if outcome.kind]
    answerable = [outcome for outcome in outcomes if not outcome.kind]
    return Abstention(
        answered=_share(outcome.is_answered for outcome in unanswerable),
        answered_by_kind={kind: _share(o.is_answered for o in unanswerable if o.kind == kind) for kind in KINDS},
        refused=_share(not outcome.is_answered for outcome in answerable),
        fitting=_share(not outcome.is_weak for outcome in unanswerable),
        weak=_share(outcome.is_weak for outcome in answerable),
        sure=_share(outcome.is_sure for outcome in unanswerable),
        unsure=_share(not outcome.is_sure for outcome in answerable),
    )


def _share(truths: Iterable[bool]) -> float | None:
    truths = list(truths)
    return round(sum(truths) / len(truths), 4) if truths else None


def _plain(results: Mapping[str, Mapping[str, Abstention]]) -> dict[str, dict[str, object]]:
    return {name: {s: asdict(judged) for s, judged in by_system.items()} for name, by_system in results.items()}


def _print_table(results: Mapping[str, Mapping[str, Abstention]]) -> None:
    columns = ("set", "system", "answered", *(f"- {kind}" for kind in KINDS), "refused", *_BY_CONFIDENCE)
    rows: list[Sequence[str]] = []
    for name, by_system in results.items():
        for system, judged in by_system.items():
            of_confidence = (getattr(judged, name) for name in _BY_CONFIDENCE)
            shares = (judged.answered, *judged.answered_by_kind.values(), judged.refused, *of_confidence)
            rows.append((name, system, *("" if share is None else f"{share:.1%}" for share in shares)))
    print_table(columns, rows, by_first=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.abstention", description=__doc__.partition("\n")[0])
    add_sets_option(parser)
    parser.add_argument("--unanswerable", type=Path, default=UNANSWERABLE, help="what nothing serves")
    add_encoder_option(parser)
    parser.add_argument("--left-out", type=Path, help="a folder of encoders' folders, each trained without some sets")
    add_reader_option(parser)
    add_systems_option(parser, "keyword,hybrid")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
