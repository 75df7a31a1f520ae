"""Do other tool searches find the right tools? Their own code on the labelled sets of `benchmarks.recall`, beside ours.

    python -m benchmarks.peers --adapters ../shared/reference/peers/adapters.py [--encoder FOLDER_OR_NAME] [--json FILE]

The adapters file has ``make(name)``, which gives an object with ``index(tools)`` and ``search(query, k)``. Beside the
sets one by one, all their tools are measured as one catalogue. FILE keeps its figures of what is not measured anew.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.figure_tables import print_table
from benchmarks.labelled import LabelledQuery, LabelledSet, Quality, quality, read_set
from benchmarks.peer_adapters import load_adapters, peer_system, probe
from benchmarks.recall import System, encoder_without, systems_to_measure
from benchmarks.results import read_figures, write_figures
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder

PEERS = {  # an adapter, and the package whose code it calls
    "fastmcp-bm25": "fastmcp",
    "pydantic-ai-default": "pydantic-ai-slim",
    "haystack-searchable": "haystack-ai",
    "ratel-bm25": "ratel-ai",
    "ratel-hybrid": "ratel-ai",
    "langgraph-bigtool": "langgraph-bigtool",
}

WITHOUT_SCHEMAS = {"haystack-searchable"}  # searches none, and refuses those of real servers that are not valid

UNION = "union"
UNION_SAMPLE = 250  # queries of each set
OUTSIDE_AVERAGE = {UNION, "clinc"}  # clinc's tools are bare names

COMMAND = "python -m benchmarks.peers --adapters ADAPTERS --encoder FOLDER --probes PROBES --json FILE"
CPU_LIMIT_S = 15 * 60.0  # for a system on a set; who would take longer gets only the first FEW queries
FEW = 200
MOST_TOOLS = {"ratel-hybrid": 600, "langgraph-bigtool": 7_000}  # they embed; more takes many minutes

_SEED = 0

Row = dict[str, Any]  # figures of a system on a set, or {"missing": why}
Figures = dict[str, dict[str, Row]]  # by set, then by system


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    sets = [read_set(path.parent) for path in sorted(options.sets.glob("*/queries.test.jsonl"))]
    if not sets:
        print(f"no labelled sets in {options.sets}: folders with tools.jsonl and queries.test.jsonl", file=sys.stderr)
        return 2
    adapters = load_adapters(options.adapters)
    any_encoder = open_encoder(BUILT_IN) if options.left_out else None  # which ours are, whatever the set
    names = systems_to_measure(options.encoder, left_out=any_encoder)
    peers = {
        name: peer_system(partial(adapters.make, name), with_schemas=name not in WITHOUT_SCHEMAS) for name in PEERS
    }
    if options.systems:
        chosen = set(options.systems.split(","))
        if unknown := chosen - set(names | peers):
            print(f"no system {', '.join(sorted(unknown))}; there are {', '.join(names | peers)}", file=sys.stderr)
            return 2
        names, peers = ({name: each[name] for name in each if name in chosen} for each in (names, peers))
    report = _stored(options.json)
    report["versions"] |= {PEERS[name]: _version(PEERS[name]) for name in peers}
    for labelled in [*sets, union(sets)]:
        ours = systems_to_measure(options.encoder, left_out=encoder_without(labelled.name, options.left_out))
        for name, system in ({name: ours[name] for name in names if name in ours} | peers).items():
            row = _measured_or_missing(name, system, labelled)
            report["sets"].setdefault(labelled.name, {})[name] = row
            _store(report, options.json)
    if options.probes:
        report["probes"] |= probe(options.probes, adapters, names, peers)
        _store(report, options.json)
    _print_table(report["sets"])
    _print_probes(report["probes"])
    return 0


def union(sets: Sequence[LabelledSet]) -> LabelledSet:
    """One catalogue of all tools, with the first UNION_SAMPLE queries of each set (which are in random order where they
    are more), mixed, so that the first FEW are of all sets. An id that an earlier set has gets its set's name.
    """
    tools: dict[str, Mapping[str, Any]] = {}
    queries: list[LabelledQuery] = []
    for labelled in sets:
        new_id = {tool["id"]: _free_id(tool["id"], labelled.name, tools) for tool in labelled.tools}
        tools |= {new_id[tool["id"]]: {**tool, "id": new_id[tool["id"]]} for tool in labelled.tools}
        queries += [
            LabelledQuery(query.text, frozenset(new_id[right] for right in query.relevant))
            for query in labelled.queries[:UNION_SAMPLE]
        ]
    random.Random(_SEED).shuffle(queries)
    return LabelledSet(UNION, list(tools.values()), queries)


def _free_id(given: str, set_name: str, taken: Mapping[str, object]) -> str:
    return f"{given}@{set_name}" if given in taken else given


def _measured_or_missing(name: str, system: System, labelled: LabelledSet) -> Row:
    if len(labelled.tools) > MOST_TOOLS.get(name, math.inf):
        return {"missing": f"it takes too long to embed {len(labelled.tools):,} tools"}
    try:
        return measure(system, labelled)
    except ImportError as error:
        return {"missing": f"not installed: {error}"}


def measure(system: System, labelled: LabelledSet, cpu_s: Callable[[], float] = time.process_time) -> Row:
    """Index the set's tools, run its sample of queries, judge, and count CPU seconds of all threads.

    A system for which FEW queries foretell more than CPU_LIMIT_S for all is judged by these.
    """
    started_s = cpu_s()
    search = system(labelled.tools)
    index_s = cpu_s() - started_s
    rankings: list[tuple[list[str], frozenset[str]]] = []
    taken_s: list[float] = []
    for query in labelled.queries:
        if len(taken_s) == FEW and index_s + statistics.mean(taken_s) * len(labelled.queries) > CPU_LIMIT_S:
            break
        started_s = cpu_s()
        found = search(query.text)
        taken_s.append(cpu_s() - started_s)
        rankings.append((found, query.relevant))
    return {
        **{name: round(value, 4) for name, value in asdict(quality(rankings)).items()},
        "query_ms": round(statistics.median(taken_s) * 1e3, 3),
        "index_s": round(index_s, 2),
        "queries": len(rankings),
    }


def averages(figures: Figures) -> dict[str, Row]:
    """The mean quality by system over the sets, of systems that have figures for every one of them."""
    judged = [by_system for name, by_system in figures.items() if name not in OUTSIDE_AVERAGE]
    systems = [
        name
        for name in (judged[0] if judged else ())
        if all(name in by_system and "missing" not in by_system[name] for by_system in judged)
    ]
    return {
        system: {
            value.name: round(statistics.mean(by_system[system][value.name] for by_system in judged), 4)
            for value in fields(Quality)
        }
        for system in systems
    }


def _stored(path: Path | None) -> dict[str, Any]:
    stored = read_figures(path) if path and path.exists() else {}
    return {part: stored.get(part, {}) for part in ("versions", "sets", "probes")}


def _store(report: Mapping[str, Any], path: Path | None) -> None:
    if path:
        content = {"command": COMMAND, **report, "average": averages(report["sets"])}
        write_figures(path, "peers", content, seed=_SEED)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


_COLUMNS = ("recall@1", "@5", "@10", "nDCG@10", "CPU ms a query", "queries")


def _print_table(figures: Figures) -> None:
    rows = [
        (name, system, *_cells(row))
        for name, by_system in {**figures, "average": averages(figures)}.items()
        for system, row in by_system.items()
    ]
    print_table(("set", "system", *_COLUMNS), rows, by_first=True)
    for name, by_system in figures.items():
        for system, row in by_system.items():
            if "missing" in row:
                print(f"{system} has no figures for {name}: {row['missing']}")


def _cells(row: Row) -> list[str]:
    qualities = [
        f"{row[name]:.3f}" if name in row else "-" for name in ("recall_1", "recall_5", "recall_10", "ndcg_10")
    ]
    return [*qualities, *(f"{row[name]:,}" if name in row else "" for name in ("query_ms", "queries"))]


def _print_probes(probes: Mapping[str, Row]) -> None:
    for system, row in probes.items():
        missed = [probe for probe, result in row.items() if result == "-"]
        print(f"{system} finds no tool for: {', '.join(missed) or 'none, it passes all probes'}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__.partition("\n")[0])
    beside_the_checkout = Path(__file__).parents[2] / "shared" / "eval"
    parser.add_argument("--adapters", type=Path, required=True, help="the file with an adapter for each peer")
    parser.add_argument("--sets", type=Path, default=beside_the_checkout, help="a folder with a folder for each set")
    parser.add_argument("--encoder", help="also measure our semantic and hybrid with this model")
    parser.add_argument("--left-out", type=Path, help="a folder of encoders' folders, each trained without some sets")
    parser.add_argument("--systems", help="only these, ours and peers, by comma: 'keyword,ratel-bm25'")
    parser.add_argument("--probes", type=Path, help="run this script of probes, too")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too; others' in it are kept")
    return parser


if __name__ == "__main__":
    sys.exit(main())
