"""How do other tool searches do, each as released, in an environment of its own, with its recommended settings?

    python -m benchmarks.peers [--only keyword,ratel] [--catalogues 100,livemcp] [--requests] [--environments FOLDER]
        [--json FILE]

Speed and quality over 100, 1,000 and 10,000 tools and LiveMCPBench, all in one run, judged by the same code. FILE keeps
its figures of what is not measured anew. Where ours is not ahead of a peer, the row says why not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.datasets import add_sets_option, set_folders
from benchmarks.figure_tables import print_table
from benchmarks.labelled import LabelledSet, read_set
from benchmarks.peers.asking import Means, Row, ask
from benchmarks.peers.catalogues import LIVEMCP, SEED, catalogues, with_requests
from benchmarks.peers.environments import ENVIRONMENTS
from benchmarks.peers.published import PUBLISHED
from benchmarks.peers.systems import SYSTEMS, System
from benchmarks.peers.tables import COLUMNS, with_published
from benchmarks.results import ROOT, read_figures, write_figures

_CACHE = ROOT / "benchmarks" / ".cache"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    sets = list(map(read_set, set_folders(options.sets)))
    if not sets:
        print(f"no labelled sets in {options.sets}: folders with tools.jsonl and queries.test.jsonl", file=sys.stderr)
        return 2
    try:
        chosen = chosen_systems(options.only)
    except ValueError as error:
        parser.error(str(error))
    options.environments.mkdir(parents=True, exist_ok=True)
    means = Means(options.environments, options.environments / "vectors.sqlite", options.minutes * 60)
    report = _stored(options.json)
    wanted = [each for each in catalogues(sets) if not options.catalogues or each.name in options.catalogues.split(",")]
    if options.requests:
        wanted = [with_requests(each) for each in wanted if each.name == LIVEMCP]
    for name, system in chosen.items():
        _note(name, ask(system, [each for each in wanted if system.only in ("", each.name)], means), wanted, report)
        if options.json:
            write_figures(options.json, "peers", report, seed=SEED)
    for name, measured in report["catalogues"].items():
        title = f"{name}: {measured['tools']:,} tools, {measured['queries']} queries"
        print_table(COLUMNS, with_published(name, measured), title=title)
    return 0


def chosen_systems(only: str) -> dict[str, System]:
    """By the names of systems or of their files, with a comma between them; all if there is none.

    Raises ValueError if there is no such system.
    """
    wanted = {part for part in only.split(",") if part}
    known = set(SYSTEMS) | {system.file for system in SYSTEMS.values()}
    if unknown := wanted - known:
        raise ValueError(f"no system {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    return {name: each for name, each in SYSTEMS.items() if not wanted or wanted & {name, each.file}}


def _note(name: str, rows: Mapping[str, Row], asked: Sequence[LabelledSet], report: dict[str, Any]) -> None:
    """Put the rows of the system *name* into the report, where catalogues and systems keep their order."""
    for catalogue in asked:
        known = report["catalogues"].get(catalogue.name, {"systems": {}})["systems"]
        if catalogue.name in rows:
            known[name] = rows[catalogue.name]
        report["catalogues"][catalogue.name] = {
            "tools": len(catalogue.tools),
            "queries": len(catalogue.queries),
            "systems": _in_order(known, SYSTEMS),
        }


def _in_order(rows: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: rows[name] for name in names if name in rows}


def _stored(path: Path | None) -> dict[str, Any]:
    """What the file has of catalogues; the rest is of today."""
    stored = read_figures(path) if path and path.exists() else {}
    return {
        "environments": {name: asdict(each) for name, each in ENVIRONMENTS.items()},
        "catalogues": stored.get("catalogues", {}),
        "published": [asdict(row) for row in PUBLISHED],
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=(__doc__ or "").partition("\n")[0])
    add_sets_option(parser)
    parser.add_argument("--only", default="", help="these systems, or files of them, by comma: 'keyword,ratel'")
    parser.add_argument("--catalogues", default="", help="only these, by comma: '100,livemcp'")
    parser.add_argument(
        "--requests", action="store_true", help="only LiveMCPBench, with requests of users in its tools' descriptions"
    )
    parser.add_argument(
        "--environments", type=Path, default=_CACHE / "peers", help="a folder for the peers' environments, some 7 GB"
    )
    parser.add_argument("--minutes", type=int, default=60, help="after which a system is given up")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too; others' in it are kept")
    return parser


if __name__ == "__main__":
    sys.exit(main())
