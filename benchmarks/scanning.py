"""How many texts of attackers does the scan hold, and how many harmless ones? 880 texts in 20 languages

    python -m benchmarks.scanning [--hands c,d] [--json FILE]
    python -m benchmarks.scanning --masking [--json FILE]

Each file of ``scan_texts`` was written by a hand of its own, which knew neither the scan nor other texts. Half of its
texts are poisoned, by twelve techniques; of the harmless ones more than half sound dangerous and describe no more than
what their tool does. These hands are for the report alone: the scan has learnt from the hands in
``indexes/training/data/scan_texts``, and nothing was chosen by what it finds here.

With ``--masking``: what does it cost to mask secrets and personal data in results, and what is masked of real texts?
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.choosing import named
from benchmarks.figure_tables import print_table
from benchmarks.results import ROOT, write_figures
from toolsearch.scanning.masking import ACCOUNT, ADDRESS, CARD, E_MAIL, PHONE, SECRET, masked_text
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
    parser.add_argument("--masking", action="store_true", help="measure the masking of results in place of the scan")
    options = parser.parse_args(arguments)
    if options.masking:
        return _measure_masking(options.json)
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


_LABELS: Final = (SECRET, E_MAIL, PHONE, ACCOUNT, CARD, ADDRESS)
_ROUNDS: Final = 20


def real_texts() -> dict[str, str]:
    """Texts as servers for files and for git answer with them."""
    patterns = {"code": "toolsearch/**/*.py", "docs": "docs/**/*.md", "JSON": "benchmarks/**/*.json"}
    texts = {name: "\n".join(map(_text, sorted(ROOT.glob(pattern)))) for name, pattern in patterns.items()}
    command = ["git", "log", "-500", "--stat"]
    log = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return {**texts, "git log": log.stdout.decode(errors="replace")}


def _text(path: Path) -> str:
    return path.read_text("utf-8", "replace")[:100_000] if "node_modules" not in path.parts and path.is_file() else ""


def _measure_masking(file: Path | None) -> int:
    figures: dict[str, dict[str, Any]] = {}
    for name, text in real_texts().items():
        masked = masked_text(text)
        labels = {label: masked.count(label) - text.count(label) for label in _LABELS}
        costs = {f"ms_{size}": _milliseconds(text, size) for size in (10_000, 100_000, 1_000_000)}
        figures[name] = {"characters": len(text), **labels, **costs}
    columns = ("", "characters", *_LABELS, "ms for 10 kB", "100 kB", "1 MB")
    print_table(columns, [[name, *(f"{value:,}" for value in each.values())] for name, each in figures.items()])
    if file:
        write_figures(file, "masking", figures)
    return 0


def _milliseconds(text: str, size: int) -> float:
    """CPU time to mask *size* characters of *text*, which is repeated if it is shorter: the least of some rounds."""
    part = (text * (size // len(text) + 1))[:size]
    spent: list[float] = []
    for _ in range(_ROUNDS):
        begun = time.process_time()
        masked_text(part)
        spent.append(time.process_time() - begun)
    return round(1_000 * min(spent), 3)


if __name__ == "__main__":
    sys.exit(main())
