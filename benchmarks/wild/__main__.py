"""The command; see the package."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import benchmarks.wild as described
from benchmarks.choosing import named
from benchmarks.environments import NotInstalledError
from benchmarks.figure_tables import print_table
from benchmarks.results import write_figures
from benchmarks.wild.installing import PLACE, command_of, path_of
from benchmarks.wild.lists import LISTS, UNSEEN, Wild, WildDocument, listed
from benchmarks.wild.measuring import Outcome, installed_outcome
from toolsearch.wire.formats import TOOL_FORMATS

_AT_A_TIME: Final = 4  # packages that are installed side by side
_COLUMNS: Final = (
    *("", "tools", "refused", "cut names"),
    *(wire.removeprefix("openai-") for wire in TOOL_FORMATS),
    *("tokens", "held", "requests", "s"),
)
_TITLE: Final = "{}; by API, how many tools it takes as they are listed / as they are sent"
_COUNTED: Final = ("tools", "cut", "tokens", "held", "found")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    lists = {name: listed(name) for name in named(parser, options.lists, LISTS, "list")}
    known = {wild.name: wild for wilds in lists.values() for wild in wilds}
    chosen = named(parser, options.only, known, "server or document") or list(known)
    options.place.mkdir(parents=True, exist_ok=True)
    _install([known[name] for name in chosen], options.place)
    figures: dict[str, Any] = {}
    for name, wilds in lists.items():
        outcomes = [_measured(wild, options.place) for wild in wilds if wild.name in chosen]
        print_table(_COLUMNS, [*map(_row, outcomes), _row(_sum(outcomes))], title=_TITLE.format(name))
        figures[name] = {"sum": _figures(_sum(outcomes))}
        if name != UNSEEN:
            _tell_reasons(outcomes)
            figures[name]["each"] = list(map(_figures, outcomes))
    if options.json:
        write_figures(options.json, "wild", figures)
    return 0


def _install(wilds: Sequence[Wild], place: Path) -> None:
    """Some at a time; who cannot be installed is told by its row."""

    def install(wild: Wild) -> None:
        try:
            path_of(wild, place) if isinstance(wild, WildDocument) else command_of(wild, place)
        except NotInstalledError as error:
            print(f"{wild.name}: {error}", file=sys.stderr)

    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        list(pool.map(install, wilds))


def _measured(wild: Wild, place: Path) -> Outcome:
    print(f"{wild.name} ...", file=sys.stderr)
    return installed_outcome(wild, place)


def _sum(outcomes: Sequence[Outcome]) -> Outcome:
    loaded = [each for each in outcomes if not each.failed]
    total = Outcome(f"{len(loaded)} of {len(outcomes)}", seconds=round(sum(each.seconds for each in loaded), 2))
    for name in _COUNTED:
        setattr(total, name, sum(getattr(each, name) for each in loaded))
    total.refused = {"": sum(sum(each.refused.values()) for each in loaded)}
    for wire in TOOL_FORMATS:
        total.listed[wire] = sum(each.listed[wire] for each in loaded)
        total.sent[wire] = sum(each.sent[wire] for each in loaded)
    return total


def _row(outcome: Outcome) -> list[str]:
    if outcome.failed:
        return [outcome.name.removeprefix("@"), "failed", *[""] * (len(_COLUMNS) - 2)]
    return [
        outcome.name.removeprefix("@"),
        f"{outcome.tools:,}",
        f"{sum(outcome.refused.values()):,}",
        f"{outcome.cut:,}",
        *(f"{outcome.listed[wire]:,} / {outcome.sent[wire]:,}" for wire in TOOL_FORMATS),
        f"{outcome.tokens:,}",
        f"{outcome.held:,}",
        f"{outcome.found:,}",
        f"{outcome.seconds:.1f}",
    ]


def _tell_reasons(outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        for line in _reasons(outcome):
            print(f"{outcome.name}: {line}")


def _reasons(outcome: Outcome) -> Iterator[str]:
    if outcome.failed:
        yield outcome.failed
    for reason, count in outcome.refused.items():
        yield f"refused {count}: {reason}"
    for wire, tools in outcome.wrong.items():
        for tool, problems in tools.items():
            yield f"{tool} is not taken by {wire}: {problems[0]}"


def _figures(outcome: Outcome) -> dict[str, Any]:
    """Counts alone: what servers say of themselves is not ours to keep."""
    counts = {name: value for name, value in asdict(outcome).items() if name not in ("wrong", "failed", "refused")}
    return counts | {"refused": sum(outcome.refused.values()), "is_loaded": not outcome.failed}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.wild",
        description=described.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--lists", default="servers,documents", help=f"by comma, out of: {', '.join(LISTS)}")
    parser.add_argument("--only", default="", help="some of their servers or documents, by comma")
    parser.add_argument("--place", type=Path, default=PLACE, metavar="FOLDER", help="where packages are installed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
