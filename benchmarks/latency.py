"""How fast is it? CPU time of building, searching and changing an index, against rank-bm25 and numpy in the same run.

    OMP_NUM_THREADS=1 python -m benchmarks.latency [--real 1000,10000,36900] [--synthetic 1000000] [--json FILE]

CPU time is summed over threads and does not depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from benchmarks.baselines import RankBm25, content_words, prepared_words
from benchmarks.catalogues import real_catalogue, synthetic_documents
from benchmarks.figure_tables import print_table
from benchmarks.results import write_figures
from toolsearch.catalog.indexing import document_of
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.encoders.static import StaticEncoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Ranking
from toolsearch_indexes.store import load_index, save_index

T = TypeVar("T")

BROAD_PATTERNS = ("e", "get|list|describe", "create.*(user|account)", "[aeiou]{2}", "(?:a|e|i)+s$", ".+")
_QUERIES = 200
_CHANGES = 20
_REPEATS = 5  # of what is the same each time
_SLOW_QUERIES = 20  # of baselines that take tens of milliseconds for each
_MOST_FOR_BASELINES = 100_000  # tools; rank-bm25 would take minutes beyond
_DIMENSIONS = 256
_SEED = 0


@dataclass(frozen=True, slots=True)
class Figure:
    """CPU milliseconds of doing *what* once in a catalogue of *tools*, over *times* different inputs."""

    tools: int
    what: str
    median_ms: float
    p95_ms: float
    times: int


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    figures = [import_time(), *encoder_figures()]
    for size in options.real:
        figures += measure(map(document_of, real_catalogue(size)))
    for size in options.synthetic:
        figures += measure(list(synthetic_documents(size, _SEED)))
    _print_table(figures)
    if options.json:
        write_figures(options.json, "latency", [asdict(figure) for figure in figures], seed=_SEED)
    return 0


def import_time() -> Figure:
    """Measure ``import toolsearch`` in fresh interpreters that have loaded nothing else."""
    code = "import time; start = time.process_time(); import toolsearch; print(time.process_time() - start)"
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(_CHANGES)
    ]
    return _figure(0, "import toolsearch", [seconds * 1000 for seconds in runs])


def encoder_figures() -> list[Figure]:
    """Measure the built-in encoder: loading it, a query of five words, and a thousand tool descriptions."""
    documents = list(synthetic_documents(1_000, _SEED))
    encoder = StaticEncoder()
    queries = requests_for(documents)
    texts = [document.description for document in documents]
    encoder.encode_documents([*queries, *texts])  # a running encoder has met most words
    return [
        _timed(0, "load the encoder", lambda _: StaticEncoder(), range(_REPEATS)),
        _timed(0, "encode a query", lambda query: encoder.encode_queries([query]), queries),
        _timed(0, "encode 1,000 descriptions", lambda _: encoder.encode_documents(texts), range(_REPEATS)),
    ]


def measure(given: Iterable[ToolDocument]) -> list[Figure]:
    """Measure one size. Where *given* are made as they are read, their making counts as indexing."""
    documents: list[ToolDocument] = []
    index = ToolSearchIndex(encoder=open_encoder(BUILT_IN))

    def build(_: None) -> None:
        documents.extend(given)
        index.update(documents)

    built = _timed(0, "index", build, [None])
    queries = requests_for(documents)
    search = _search(index, "keyword")
    for query in queries:  # a running index has met most words before; the first meeting costs about 2 us a word
        search(query)
    typos = [misspelt(query) for query in queries]
    figures = [
        replace(built, tools=len(documents)),
        _timed(len(documents), "keyword", search, queries),
        _timed(len(documents), "hybrid", _search(index, "hybrid"), queries),
        _timed(len(documents), "hybrid, a typo", _search(index, "hybrid"), typos),
        *(_timed(len(documents), f"regex {p}", _search(index, "regex"), [p] * _REPEATS) for p in BROAD_PATTERNS),
        _timed(len(documents), "change one, search", _change(index), zip(documents[:_CHANGES], queries, strict=False)),
        _warm_start(index),
    ]
    if len(documents) <= _MOST_FOR_BASELINES:
        figures += _baselines(documents, queries)
    return figures


def _search(index: ToolSearchIndex, strategy: Ranking) -> Callable[[str], object]:
    return lambda query: index.search(query, limit=5, strategy=strategy)


def _change(index: ToolSearchIndex) -> Callable[[tuple[ToolDocument, str]], object]:
    def change(given: tuple[ToolDocument, str]) -> None:
        document, query = given
        index.update(add=[replace(document, name=f"{document.name}_2")], remove=[document.name])
        index.search(query, limit=5)

    return change


def _warm_start(index: ToolSearchIndex) -> Figure:
    """Measure loading the stored index and the first search."""
    with tempfile.TemporaryDirectory() as folder:
        save_index(index, Path(folder))
        return _timed(
            len(index),
            "load, first search",
            lambda _: load_index(Path(folder), encoder=open_encoder(BUILT_IN)).search("list users"),
            range(_REPEATS),
        )


def _baselines(documents: Sequence[ToolDocument], queries: Sequence[str]) -> list[Figure]:
    """rank-bm25 on prepared words, and the least that a dense search takes in numpy: a product and the best five."""
    bm25 = RankBm25([document.name for document in documents], list(map(all_text, documents)), prepared_words)
    generator = np.random.default_rng(_SEED)
    matrix = generator.standard_normal((len(documents), _DIMENSIONS), dtype=np.float32)
    vectors = generator.standard_normal((_QUERIES, _DIMENSIONS), dtype=np.float32)
    return [
        _timed(len(documents), "rank-bm25", lambda query: bm25.search(query, 5), queries[:_SLOW_QUERIES]),
        _timed(
            len(documents),
            f"numpy, {_DIMENSIONS} dimensions",
            lambda vector: np.argpartition(matrix @ vector, -5)[-5:],
            list(vectors),
        ),
    ]


def requests_for(documents: Sequence[ToolDocument]) -> list[str]:
    """Make requests of five words each out of the names and descriptions of randomly chosen tools."""
    generator = random.Random(_SEED)
    chosen = generator.choices(documents, k=_QUERIES)
    texts = [content_words(f"{document.own_name} {document.description}") for document in chosen]
    return [" ".join(generator.sample(words, min(5, len(words)))) for words in texts]


def misspelt(query: str) -> str:
    """Swap two letters in the middle of the longest word."""
    word = max(query.split(), key=len, default="")
    half = len(word) // 2
    return query.replace(word, word[: half - 1] + word[half : half + 1] + word[half - 1 : half] + word[half + 1 :])


def all_text(document: ToolDocument) -> str:
    return " ".join([document.name, document.description, *document.parameter_names, document.parameter_text])


def _timed(tools: int, what: str, action: Callable[[T], object], inputs: Iterable[T]) -> Figure:
    taken: list[float] = []
    for given in inputs:
        start = time.process_time_ns()
        action(given)
        taken.append((time.process_time_ns() - start) / 1e6)
    return _figure(tools, what, taken)


def _figure(tools: int, what: str, taken_ms: Sequence[float]) -> Figure:
    median, p95 = np.percentile(taken_ms, [50, 95]).tolist()
    return Figure(tools, what, round(median, 4), round(p95, 4), len(taken_ms))


def _print_table(figures: Iterable[Figure]) -> None:
    rows = [
        (f"{each.tools:,}", each.what, f"{each.median_ms:,.3f}", f"{each.p95_ms:,.3f}", str(each.times))
        for each in figures
    ]
    print_table(("tools", "what", "median ms", "p95 ms", "times"), rows, by_first=True)


def _parser() -> argparse.ArgumentParser:
    def sizes(text: str) -> list[int]:
        return [int(size) for size in text.split(",") if size]

    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__.partition("\n")[0])
    parser.add_argument("--real", type=sizes, default=[1_000, 10_000, 36_900], help="sizes, by comma; '' for none")
    parser.add_argument("--synthetic", type=sizes, default=[1_000_000], help="sizes, by comma; '' for none")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
