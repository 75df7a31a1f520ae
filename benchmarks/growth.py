"""How do time and memory grow with tools and with sessions, and how far are they from what the machine allows?

    python -m benchmarks.growth [--largest 1000000] [--sessions 100000] [--json FILE]

From 10 made-up tools on, and from one session on, ten times as many at each step, each in a process of its own with one
thread. Beside each figure stands the least that this machine could take, measured in the same process:

- a search: reading once what it has to read, as fast as numpy reads as many bytes. By keyword these are the postings
  of the query's words, by meaning all vectors, or their codes where there are some.
- an index: the texts of its tools and their vectors.
- a session with one search: that search of the index alone, and its id with the names of the tools that it was given.

No search can be as fast as reading, and no session as small as its names: the ratio shows how costs grow, and where
there is room.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.catalogues import synthetic_documents
from benchmarks.figure_tables import print_table
from benchmarks.latency import requests_for
from benchmarks.memory import resident_kib
from benchmarks.results import write_figures
from toolsearch import Catalog, PassThrough, SessionOptions, ToolDefinition, ToolSearch
from toolsearch.sessions.session_eviction import LruEvictionStrategy
from toolsearch.sessions.store import SessionStore
from toolsearch_indexes.analysis import terms
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Ranking

STRATEGIES: Final[Sequence[Ranking]] = ("keyword", "semantic", "hybrid")
_SMALLEST: Final = 10  # tools
_TOOLS_OF_SESSIONS: Final = 1_000
_BATCH: Final = 100_000  # tools that are indexed at a time
_ASKED: Final = 1_000  # first tools whose words are asked for
_POSTING: Final = 8  # bytes: a row and its weight
_READ_AT_ONCE: Final = 2**28  # bytes, far more than a cache has
_READ_IN_ALL: Final = 2**27  # bytes, over which smaller reads are repeated
_SEED: Final = 0


@dataclass(frozen=True, slots=True)
class SearchPoint:
    """CPU milliseconds of a search among *tools*: the median, and the least, for reading *read_kib*."""

    tools: int
    strategy: str
    median_ms: float
    least_ms: float
    read_kib: float


@dataclass(frozen=True, slots=True)
class IndexPoint:
    """Indexing one of *tools*, in CPU microseconds, and what the index of all of them holds in memory."""

    tools: int
    index_us_each: float
    memory_mib: float
    least_mib: float


@dataclass(frozen=True, slots=True)
class SessionPoint:
    """One of *sessions*: opening it and searching in it once, and what it holds in memory."""

    sessions: int
    us_each: float
    least_us: float
    kib_each: float
    least_kib: float


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.part:
        print(json.dumps(tools_part(options.size) if options.part == "tools" else asdict(sessions_part(options.size))))
        return 0
    by_tools = [_in_another_process("tools", size) for size in steps(_SMALLEST, options.largest)]
    figures: dict[str, Any] = {
        "memory_gib_per_s": round(_READ_AT_ONCE / 2**30 / (reading_ms(_READ_AT_ONCE) / 1e3), 1),
        "searches": [search for each in by_tools for search in each["searches"]],
        "indexes": [each["index"] for each in by_tools],
        "sessions": [_in_another_process("sessions", count) for count in steps(1, options.sessions)],
    }
    _print(figures)
    if options.json:
        write_figures(options.json, "growth", figures, seed=_SEED)
    return 0


def steps(first: int, last: int) -> Iterator[int]:
    """Ten times as many each time, up to *last*."""
    while first <= last:
        yield first
        first *= 10


def _in_another_process(part: str, size: int) -> Any:
    command = [sys.executable, "-m", "benchmarks.growth", "--part", part, "--size", str(size)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def tools_part(size: int) -> dict[str, Any]:
    """Index *size* tools and search them in each way."""
    encoder = open_encoder(BUILT_IN)
    encoder.encode_queries(["list users"])
    documents = synthetic_documents(size, _SEED)
    queries = requests_for(list(islice(synthetic_documents(size, _SEED), _ASKED)))
    index, taken_ms, text_bytes, before_kib = ToolSearchIndex(encoder=encoder), 0.0, 0, resident_kib()[0]
    while batch := list(islice(documents, _BATCH)):
        taken_ms += _cpu_ms(partial(index.update, batch))
        text_bytes += sum(map(_text_bytes, batch))
    del batch
    grown_kib = resident_kib()[0] - before_kib
    vectors = sum(part.vectors.matrix.nbytes for part in index.state.segments if part.vectors)
    point = IndexPoint(
        size, _rounded(taken_ms * 1e3 / size), _rounded(grown_kib / 2**10), _rounded((text_bytes + vectors) / 2**20)
    )
    return {"index": asdict(point), "searches": [asdict(_searched(index, each, queries)) for each in STRATEGIES]}


def _searched(index: ToolSearchIndex, strategy: Ranking, queries: Sequence[str]) -> SearchPoint:
    search = partial(index.search, limit=5, strategy=strategy)
    for query in queries:  # what a search keeps of a word is there in an index that runs
        search(query)
    median_ms = statistics.median(_cpu_ms(partial(search, query)) for query in queries)
    read = statistics.median(bytes_to_read(index, strategy, query) for query in queries)
    return SearchPoint(
        len(index), strategy, _rounded(median_ms), _rounded(reading_ms(round(read))), _rounded(read / 2**10)
    )


def bytes_to_read(index: ToolSearchIndex, strategy: Ranking, query: str) -> int:
    """What a search cannot do without: the postings of the words as they stand, and a code or vector of each tool."""
    counts, lexicon = index.state.keyword, index.lexicon
    numbers = {number for term in terms(query) if (number := lexicon.term_id(term)) is not None}
    postings = _POSTING * sum(map(counts.holders, numbers))
    parts = [part.vectors for part in index.state.segments if part.vectors]
    vectors = sum(part.code_bytes or part.matrix.nbytes for part in parts)
    return {"keyword": postings, "semantic": vectors, "hybrid": postings + vectors}[strategy]


def reading_ms(nbytes: int) -> float:
    """The least CPU time in which this machine reads so many bytes that lie in a row, the call from Python included."""
    data = np.ones(max(1, nbytes // 4), np.float32)
    read = partial(np.dot, data, data)
    return min(_cpu_ms(read) for _ in range(min(1_000, max(3, _READ_IN_ALL // max(1, nbytes)))))


def sessions_part(count: int) -> SessionPoint:
    """Open *count* sessions of one engine, and search once in each."""
    documents = list(synthetic_documents(_TOOLS_OF_SESSIONS, _SEED))
    queries = requests_for(documents)
    catalog = Catalog([ToolDefinition(each.name, each.description, server=each.server) for each in documents])
    options = SessionOptions(pass_through=PassThrough(max_tools=0))
    store = SessionStore(LruEvictionStrategy(count + 1))
    with catalog, ToolSearch(catalog, options=options, sessions=store) as engine:
        for query in queries:  # each once, so that what the engine keeps of them does not count
            engine.session("first").answer({"query": query})
        engine.sessions.evict("first")
        least_us = 1e3 * statistics.median(_cpu_ms(partial(engine.index.search, query, limit=5)) for query in queries)
        before_kib, started_ns = resident_kib()[0], time.process_time_ns()
        for number, query in enumerate(islice(cycle(queries), count)):
            engine.session(f"session-{number}").answer({"query": query})
        taken_us = (time.process_time_ns() - started_ns) / 1e3
        grown_kib = resident_kib()[0] - before_kib
        opened = (engine.session(f"session-{number}") for number in range(count))
        names = sum(len(each.id) + sum(map(len, each.discovered)) for each in opened)
    return SessionPoint(
        count,
        us_each=_rounded(taken_us / count),
        least_us=_rounded(least_us),
        kib_each=_rounded(grown_kib / count),
        least_kib=_rounded(names / count / 2**10),
    )


def _text_bytes(document: ToolDocument) -> int:
    texts = (document.name, document.title, document.description, *document.parameter_names, document.parameter_text)
    return sum(len(text.encode()) for text in texts)


def _cpu_ms(action: Callable[[], object]) -> float:
    started_ns = time.process_time_ns()
    action()
    return (time.process_time_ns() - started_ns) / 1e6


def _rounded(value: float) -> float:
    """To three digits."""
    return float(f"{value:.3g}")


def tables(figures: Mapping[str, Any]) -> dict[str, tuple[Sequence[str], Sequence[Sequence[str]]]]:
    """Head and rows of each table: a figure, the least that it could be, and how many times that it is."""
    searches = [
        (
            f"{each['tools']:,}",
            each["strategy"],
            *_beside(each["median_ms"], each["least_ms"]),
            _told(each["read_kib"]),
        )
        for each in figures["searches"]
    ]
    indexes = [
        (f"{each['tools']:,}", _told(each["index_us_each"]), *_beside(each["memory_mib"], each["least_mib"]))
        for each in figures["indexes"]
    ]
    sessions = [
        (
            f"{each['sessions']:,}",
            *_beside(each["us_each"], each["least_us"]),
            *_beside(each["kib_each"], each["least_kib"]),
        )
        for each in figures["sessions"]
    ]
    return {
        "searches": (("tools", "search", "CPU ms", "least", "times", "KiB to read"), searches),
        "indexes": (("tools", "CPU us to index one", "MiB", "least", "times"), indexes),
        "sessions": (("sessions", "CPU us each", "least", "times", "KiB each", "least", "times"), sessions),
    }


def _print(figures: Mapping[str, Any]) -> None:
    print(f"memory is read at {figures['memory_gib_per_s']} GiB/s")
    for name, (columns, rows) in tables(figures).items():
        print_table(columns, rows, by_first=name == "searches")


def _beside(value: float, least: float) -> tuple[str, str, str]:
    return _told(value), _told(least), f"{value / least:,.1f}" if least else "-"


def _told(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:g}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--largest", type=int, default=1_000_000, help="tools at most")
    parser.add_argument("--sessions", type=int, default=100_000, help="sessions at most")
    parser.add_argument("--part", choices=["tools", "sessions"], help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
