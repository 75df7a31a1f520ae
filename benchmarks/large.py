"""What does a large catalogue cost? Searching, memory, opening and changing at 38,000 to 1,000,000 real-sized tools.

    OMP_NUM_THREADS=1 python -m benchmarks.large [--sizes 37976,200000,1000000] [--folder FOLDER] [--json FILE]

The tools are those of `varied_documents`, the requests those of `agent_queries`. An index is built in one process, and
opened by another, which tells what memory it takes. *--folder* keeps the built indexes for another run.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.agent_queries import all_requests
from benchmarks.catalogues import real_catalogue, varied_documents
from benchmarks.figure_tables import print_table
from benchmarks.latency import misspelt
from benchmarks.memory import resident_kib
from benchmarks.results import write_figures
from toolsearch.catalog.indexing import document_of
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Selection
from toolsearch_indexes.semantic import SemanticArm
from toolsearch_indexes.store import load_index, save_index
from toolsearch_indexes.vectors import VectorPart

PATTERNS = ("create.*(user|account)", "^list_?users$", "get|list|describe")
REACHES = (0.01, 0.1, 0.5)
DEPTHS = (10, 100)

_BUILT, _SERVED = "built.json", "served.json"
_BATCH = 100_000  # tools that are indexed at a time, as a large import would
_CHANGES = 20
_SLOW = 60  # requests for what takes long
_REPEATS = 5
_SEED = 0

Milliseconds = dict[str, float]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.part:
        build(options.folder, options.sizes) if options.part == "build" else serve(options.folder)
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        root = options.folder or Path(temporary)
        if not all((root / str(size) / _BUILT).exists() for size in options.sizes):
            _in_another_process("build", root, options.sizes)
        measured: list[dict[str, Any]] = []
        for folder in (root / str(size) for size in options.sizes):
            _in_another_process("serve", folder, ())
            both = [json.loads((folder / file).read_text("utf-8")) for file in (_BUILT, _SERVED)]
            measured.append(both[0] | both[1])
    print_table(*table(measured))
    if options.json:
        write_figures(options.json, "large", measured, seed=_SEED)
    return 0


def _in_another_process(part: str, folder: Path, sizes: Sequence[int]) -> None:
    command = [sys.executable, "-m", "benchmarks.large", "--part", part, "--folder", str(folder)]
    subprocess.run([*command, "--sizes", ",".join(map(str, sizes))], check=True)


def build(root: Path, sizes: Sequence[int]) -> None:
    """Index as many tools as the largest of *sizes* has, and store the index in a folder at each size."""
    index = ToolSearchIndex(encoder=open_encoder(BUILT_IN))
    documents = varied_documents(max(sizes), [document_of(tool) for tool in real_catalogue()])
    build_s = 0.0
    for size in sorted(sizes):
        while batch := list(islice(documents, min(_BATCH, size - len(index)))):
            build_s += _cpu_s(partial(index.update, batch))
        folder = root / str(size)
        folder.mkdir(parents=True, exist_ok=True)
        save_s = _cpu_s(partial(save_index, index, folder))
        stored = {file.stem: file.stat().st_size / len(index) for file in sorted(folder.glob("*.npy"))}
        figures = {
            "tools": len(index),
            "build_s": round(build_s, 1),
            "build_peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
            "save_s": round(save_s, 2),
            "stored_bytes_per_tool": _by_group(stored),
        }
        (folder / _BUILT).write_text(json.dumps(figures), encoding="utf-8")


def _by_group(sizes: dict[str, float]) -> dict[str, int]:
    groups = {
        "words and names": ("names", "terms", "surfaces", "term_of", "statistics", "semantic"),
        "keyword postings": ("keyword", "impacts"),
        "text for patterns": ("regex",),
        "vectors": ("vectors.matrix",),
        "codes of vectors": ("vectors.code",),
    }
    return {
        group: round(sum(size for name, size in sizes.items() if name.startswith(beginnings)))
        for group, beginnings in groups.items()
    }


def serve(folder: Path) -> None:
    """Open the index in *folder*, and measure it."""
    encoder = open_encoder(BUILT_IN)
    before = resident_kib()
    opened: list[ToolSearchIndex] = []
    wall = time.perf_counter()
    open_s = _cpu_s(lambda: opened.append(load_index(folder, encoder=encoder)))
    open_wall_s = time.perf_counter() - wall
    (index,) = opened
    requests = all_requests()
    first_s = _cpu_s(lambda: index.search("list users"))
    for request in requests:
        index.search(request)
    after = resident_kib()
    figures: dict[str, Any] = {
        "open_s": round(open_s, 2),
        "open_wall_s": round(open_wall_s, 2),
        "first_search_s": round(first_s, 3),
        "anonymous_mib": (after[0] - before[0]) >> 10,
        "mapped_mib": (after[1] - before[1]) >> 10,
    }
    exact = _without_codes(index)
    typos = [misspelt(request) for request in requests]
    timed = {
        "keyword": _timed(_search(index, "keyword"), requests),
        "semantic": _timed(_search(index, "semantic"), requests),
        "hybrid": _timed(_search(index, "hybrid"), requests),
        "hybrid, a typo": _timed(_search(index, "hybrid"), typos),
        "hybrid, compared with all": _timed(_search(exact, "hybrid"), requests[:_SLOW]),
        "semantic, compared with all": _timed(_search(exact, "semantic"), requests[:_SLOW]),
    }
    for share in REACHES:
        within = _reach(index, share)
        timed[f"hybrid, {share:.0%} in reach"] = _timed(_search(index, "hybrid", within), requests[:_SLOW])
    for pattern in PATTERNS:
        index.search(f"/{pattern}/")
        timed[f"regex {pattern}"] = _timed(_search(index, "regex"), [pattern] * _REPEATS)
        timed[f"regex {pattern}, 1% in reach"] = _timed(_search(index, "regex", _reach(index, 0.01)), [pattern] * 2)
    figures["search_ms"] = timed
    figures["recall"] = recall(index, requests)
    figures["same_answers"] = _same_answers(index, exact, requests)
    changes = list(varied_documents(_CHANGES, [document_of(tool) for tool in real_catalogue(_CHANGES)]))
    figures["change_ms"] = _timed(_change(index), changes)
    (folder / _SERVED).write_text(json.dumps(figures), encoding="utf-8")


def recall(index: ToolSearchIndex, requests: Sequence[str]) -> dict[str, float]:
    """What share of the nearest tools a search by codes finds, at each of DEPTHS, over all and over shares in reach."""
    (segment,) = index.state.segments
    assert segment.vectors is not None
    assert index.arm is not None
    coded, exact = segment.vectors, VectorPart(segment.vectors.matrix)
    found: dict[str, float] = {}
    generator = np.random.default_rng(_SEED)
    for share in (1.0, *REACHES):
        allowed = None if share == 1 else generator.random(coded.rows) < share
        some = requests if allowed is None else requests[:_SLOW]
        for depth in DEPTHS:
            same = [_share_found(coded, exact, index.arm, request, depth, allowed) for request in some]
            found[f"{depth} of {share:.0%}"] = round(float(np.mean(same)), 5)
    return found


def _share_found(
    coded: VectorPart, exact: VectorPart, arm: SemanticArm, request: str, depth: int, allowed: Any
) -> float:
    query = arm.meanings([request]).vectors[0]
    wanted = exact.search(query, depth, allowed)[0][:depth]
    return float(np.isin(wanted, coded.search(query, depth, allowed)[0]).mean())


def _same_answers(index: ToolSearchIndex, exact: ToolSearchIndex, requests: Sequence[str]) -> float:
    same = [index.search(request, limit=10) == exact.search(request, limit=10) for request in requests[: 2 * _SLOW]]
    return round(float(np.mean(same)), 4)


def _without_codes(index: ToolSearchIndex) -> ToolSearchIndex:
    """The same index, but that each vector is compared."""
    (segment,) = index.state.segments
    assert segment.vectors is not None
    assert index.arm is not None
    exact = ToolSearchIndex(encoder=index.arm.encoder)
    state = replace(index.state, segments=(replace(segment, vectors=VectorPart(segment.vectors.matrix)),))
    exact.adopt(index.lexicon, state)
    return exact


def _reach(index: ToolSearchIndex, share: float) -> Selection:
    generator = random.Random(_SEED)
    selection = Selection.of({name for name in index.names() if generator.random() < share})
    index.search("list users", within=selection)
    return selection


def _search(index: ToolSearchIndex, strategy: Any, within: Selection | None = None) -> Callable[[str], object]:
    return lambda query: index.search(query, limit=5, strategy=strategy, within=within)


def _change(index: ToolSearchIndex) -> Callable[[ToolDocument], object]:
    return lambda document: index.update([replace(document, description=f"{document.description} Changed.")])


def _cpu_s(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def _timed(action: Callable[[Any], object], inputs: Iterable[object]) -> Milliseconds:
    taken = [_cpu_s(partial(action, given)) * 1000 for given in inputs]
    median, p95 = np.percentile(taken, [50, 95]).tolist()
    return {"median": round(median, 3), "p95": round(p95, 3)}


def table(measured: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Head and rows: one column for each size, times as median / 95th percentile."""
    columns = [dict(_flat(figures)) for figures in measured]
    rows = [[name, *(column[name] for column in columns)] for name in columns[0]]
    return ["", *(f"{figures['tools']:,}" for figures in measured)], rows


def _flat(figures: dict[str, Any], group: str = "") -> Iterator[tuple[str, str]]:
    for name, value in figures.items():
        full = group + name.replace("_", " ")
        if isinstance(value, dict) and value.keys() == {"median", "p95"}:
            yield full, f"{value['median']:,.3g} / {value['p95']:,.3g}"
        elif isinstance(value, dict):
            yield from _flat(value, f"{full}: ")
        elif name != "tools":
            yield full, f"{value:,}"


def _parser() -> argparse.ArgumentParser:
    def sizes(text: str) -> list[int]:
        return [int(size) for size in text.split(",") if size]

    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=sizes, default=[37_976, 200_000, 1_000_000], help="numbers of tools, by comma")
    parser.add_argument("--folder", type=Path, help="keep the indexes here, and use those that are here")
    parser.add_argument("--part", choices=["build", "serve"], help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
