"""How many texts of attackers does the scan hold, and how many harmless ones? 880 texts in 20 languages

    python -m benchmarks.scanning [--hands c,d] [--json FILE]

Each file of ``scan_texts`` was written by a hand of its own, which knew neither the scan nor other texts. Half of its
texts are poisoned, by twelve techniques; of the harmless ones more than half sound dangerous and describe no more than
what their tool does. These hands are for the report alone: the scan has learnt from the hands in
``indexes/training/data/scan_texts``, and nothing was chosen by what it finds here.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.choosing import named
from benchmarks.figure_tables import print_table
from benchmarks.results import ROOT, write_figures
from toolsearch.scanning.rules import findings_in
from toolsearch.scanning.texts import Text

TEXTS: Final = ROOT / "benchmarks" / "scan_texts"
HANDS: Final = ("c", "d")
POISONED: Final = "poisoned"


class Sample(NamedTuple):
    """A text, and what its author says of it: *technique* is that of an attack, or "dangerous" or "plain"."""

    text: str
    label: str
    kind: str
    language: str
    technique: str


def samples(hand: str) -> list[Sample]:
    lines = (TEXTS / f"{hand}.jsonl").read_text(encoding="utf-8").splitlines()
    return [Sample(**json.loads(line)) for line in lines]


def is_held(sample: Sample) -> bool:
    return any(True for _ in findings_in([Text("description", sample.text)]))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scanning", description=__doc__.partition("\n")[0])
    parser.add_argument("--hands", default="", help=f"by comma, out of: {', '.join(HANDS)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    options = parser.parse_args(arguments)
    hands = named(parser, options.hands, HANDS, "hand") or list(HANDS)
    judged = {hand: [(sample, is_held(sample)) for sample in samples(hand)] for hand in hands}
    figures = {f"hand {hand}": _shares(rows) for hand, rows in judged.items()}
    every = [row for rows in judged.values() for row in rows]
    for what in ("language", "kind", "technique"):
        figures |= {f"{what} {name}": _shares(rows) for name, rows in _by(every, what)}
    print_table(
        ("", "poisoned", "held, %", "harmless", "held, %"), [[name, *_cells(each)] for name, each in figures.items()]
    )
    if options.json:
        write_figures(options.json, "scanning", figures)
    return 0


_Row = tuple[Sample, bool]


def _by(rows: Sequence[_Row], what: str) -> Iterator[tuple[str, list[_Row]]]:
    value = attrgetter(what)
    for name in sorted({value(sample) for sample, _ in rows}):
        yield name, [row for row in rows if value(row[0]) == name]


def _shares(rows: Iterable[_Row]) -> dict[str, Any]:
    held: dict[bool, list[bool]] = {True: [], False: []}
    for sample, is_hit in rows:
        held[sample.label == POISONED].append(is_hit)
    return {
        name: {"texts": len(hits), "held": round(sum(hits) / len(hits), 3) if hits else None}
        for name, hits in ((POISONED, held[True]), ("harmless", held[False]))
    }


def _cells(shares: dict[str, Any]) -> Iterator[str]:
    for each in shares.values():
        yield f"{each['texts']:,}"
        yield "-" if each["held"] is None else f"{100 * each['held']:.0f}"


if __name__ == "__main__":
    sys.exit(main())
