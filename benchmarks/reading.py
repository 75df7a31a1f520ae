"""What does it cost to have a reader read the first tools of answers again? CPU time of a search, and memory.

    OMP_NUM_THREADS=1 python -m benchmarks.reading [--reader SPEC] [--encoder SPEC] [--catalogues github] [--json FILE]

The queries of `benchmarks.agent_queries` are asked by hybrid search, first without the reader, then with it. What is
found with it is measured there, in `benchmarks.recall`, `benchmarks.abstention` and `benchmarks.out_of_scope`.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.agent_queries import CATALOGUES, AgentSet, read_agent_sets
from benchmarks.figure_tables import markdown_table, print_table
from benchmarks.memory import resident_kib
from benchmarks.recall import READ, reader_to_measure
from benchmarks.results import write_figures
from toolsearch.catalog.indexing import document_of
from toolsearch_indexes.encoders.opening import AUTO, BUILT_IN, open_encoder
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.errors import EncoderError
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.reader import Reader

ALL: Final = "all catalogues"
_LIMIT: Final = 5  # as usual; ten are read for any
_LONG: Final = "word " * 1_000  # more than any reader takes in
_COLUMNS: Final = ("catalogue", "tools", "search", "median, CPU ms", "95th percentile", "searches")


@dataclass(frozen=True, slots=True)
class Loading:
    """CPU seconds of opening a reader, with the import of what runs it, and the memory that it adds once it has read.

    memory_mib   that the process holds for itself
    mapped_mib   read from files, which the system takes back when it has to
    """

    cpu_s: float
    memory_mib: float
    mapped_mib: float


@dataclass(frozen=True, slots=True)
class Row:
    """CPU milliseconds of a search, over *searches* different queries; *search* is "hybrid" or "hybrid, read"."""

    catalogue: str
    tools: int
    search: str
    median_ms: float
    p95_ms: float
    searches: int


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    encoder = open_encoder(options.encoder)
    encoder.encode_queries(["a request"])  # what the encoder needs is none of the reader's cost
    reader, loading = loaded(options.reader)
    rows = measure(read_agent_sets(parser, options.catalogues), encoder, reader)
    if not rows:
        return 2
    print_table(_COLUMNS, _cells([asdict(row) for row in rows]), by_first=True)
    memory = f"{loading.memory_mib:.1f} MiB of memory, {loading.mapped_mib:.1f} MiB mapped from files"
    print(f"loading the reader: {loading.cpu_s:.2f} s of CPU time, {memory}")
    if options.json:
        write_figures(options.json, "reading", {"loading": asdict(loading), "rows": [asdict(row) for row in rows]})
    return 0


def loaded(spec: str) -> tuple[Reader, Loading]:
    """Raises EncoderError if *spec* means no reader here."""
    gc.collect()
    before, started = resident_kib(), time.process_time()
    reader = reader_to_measure(spec)
    cpu_s = time.process_time() - started
    if reader is None:
        raise EncoderError("without a reader there is nothing to measure")
    reader.read(_LONG, [_LONG])  # so that it has the memory that it needs at most
    anonymous, mapped = ((after - was) / 2**10 for was, after in zip(before, resident_kib(), strict=True))
    return reader, Loading(round(cpu_s, 3), round(anonymous, 1), round(mapped, 1))


def measure(agent_sets: Iterator[AgentSet], encoder: Encoder, reader: Reader) -> list[Row]:
    """Each of *agent_sets* without and with *reader*, and all together if there are several."""
    rows: list[Row] = []
    all_ms: dict[str, list[float]] = {}
    tools = 0
    for agent_set in agent_sets:
        index = ToolSearchIndex([document_of(tool) for tool in agent_set.tools], encoder=encoder)
        queries = [query.text for query in agent_set.queries]
        tools += len(index)
        for search, used in (("hybrid", None), (f"hybrid{READ}", reader)):
            index.reader = used
            taken_ms = _taken_ms(index, queries)
            all_ms.setdefault(search, []).extend(taken_ms)
            rows.append(_row(agent_set.name, len(index), search, taken_ms))
    if len({row.catalogue for row in rows}) > 1:
        rows += [_row(ALL, tools, search, taken_ms) for search, taken_ms in all_ms.items()]
    return rows


def _taken_ms(index: ToolSearchIndex, queries: Sequence[str]) -> list[float]:
    """Of the second time that each query is asked: a running process has met most words."""
    taken: list[float] = []
    for is_measured in (False, True):
        for query in queries:
            started = time.process_time_ns()
            index.search(query, limit=_LIMIT, strategy="hybrid")
            if is_measured:
                taken.append((time.process_time_ns() - started) / 1e6)
    return taken


def _row(catalogue: str, tools: int, search: str, taken_ms: Sequence[float]) -> Row:
    median, p95 = np.percentile(taken_ms, [50, 95]).tolist()
    return Row(catalogue, tools, search, round(median, 3), round(p95, 3), len(taken_ms))


def page_tables(figures: Mapping[str, Any]) -> dict[str, list[str]]:
    return {"reading": markdown_table(_COLUMNS, _cells(figures["rows"]))}


def _cells(rows: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    for row in rows:
        times = (f"{row[name]:.2f}" for name in ("median_ms", "p95_ms"))
        yield [row["catalogue"], f"{row['tools']:,}", row["search"], *times, str(row["searches"])]


def _parser() -> argparse.ArgumentParser:
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading", description=summary)
    parser.add_argument("--catalogues", default=",".join(CATALOGUES), help="only these, by comma")
    parser.add_argument("--encoder", default=BUILT_IN, help="what hybrid embeds with")
    parser.add_argument("--reader", default=AUTO, metavar="SPEC", help="auto, or a folder")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
