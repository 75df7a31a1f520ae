"""What others have published of tool search's savings, beside the same workloads as far as they are described.

    python -m benchmarks.published_savings [--only weather,cached] [--json FILE]

No model is asked, and all tokens are counted with o200k_base. Figures here are of requests, of what searches find, and
of prices; how well a model chooses, and how long it thinks, are the publishers' own figures and have none beside them.
Each workload tells what of it was not published, and what is in its place.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.choosing import named, opened, those_of
from benchmarks.figure_tables import print_table
from benchmarks.published.cached_prompts import cached_prompts
from benchmarks.published.everyday_tasks import everyday_tasks
from benchmarks.published.five_servers import five_servers
from benchmarks.published.side_by_side import SEED, Workload
from benchmarks.published.three_servers import three_servers
from benchmarks.published.weather import weather
from benchmarks.results import write_figures

WORKLOADS: Mapping[str, Callable[[], Workload]] = {
    "weather": weather,
    "five-servers": five_servers,
    "three-servers": three_servers,
    "everyday-tasks": everyday_tasks,
    "cached": cached_prompts,
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    only = named(parser, options.only, WORKLOADS, "workload")
    found = {name: asdict(workload) for name, workload in opened(WORKLOADS, those_of(only, WORKLOADS))}
    for workload in found.values():
        _print(workload)
    if options.json:
        write_figures(options.json, "published_savings", found, seed=SEED)
    return 0 if found else 2


def cells(line: Mapping[str, str]) -> list[str]:
    """A row of the table: what the page has, too."""
    return [line["what"], line["published"] or "-", line["here"] or "-"]


def page_tables(workloads: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """The rows of the page's tables, by their names."""
    tables: dict[str, list[str]] = {}
    for name, workload in workloads.items():
        tables[name] = [f"| {' | '.join(cells(line))} |" for line in workload["lines"]]
        tables[f"{name}, differences"] = [f"| {text} |" for text in (*workload["differences"], *workload["sources"])]
    return tables


def _print(workload: Mapping[str, Any]) -> None:
    print_table(("", "published", "here"), [cells(line) for line in workload["lines"]], title=workload["title"])
    for text in (*workload["sources"], *workload["differences"]):
        print(f"- {text}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.published_savings", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--only", default="", help=f"by comma, out of: {', '.join(WORKLOADS)}")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
