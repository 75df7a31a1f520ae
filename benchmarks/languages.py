"""Are tools in English found by requests in other languages, with the built-in encoder and with the multilingual one?

    python -m benchmarks.languages [--json FILE]

Twenty queries of `benchmarks.agent_queries` over the tools of Google Workspace, translated by hand.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.agent_queries import AgentSet, read_agent_set
from benchmarks.datasets import LANGUAGES
from benchmarks.figure_tables import markdown_table, print_table
from benchmarks.results import write_figures
from toolsearch.catalog.indexing import document_of
from toolsearch_indexes.encoders.opening import BUILT_IN, MULTILINGUAL, open_encoder
from toolsearch_indexes.index import ToolSearchIndex

_CATALOGUE = "google-workspace"
_FIRST = 5
_ENCODERS = (BUILT_IN, MULTILINGUAL)


@dataclass(frozen=True, slots=True)
class Row:
    """
    recall_5   share of the queries for which the hybrid has a right tool among its first five
    search_ms  CPU time of a search on average, and *index_s* of indexing the tools
    """

    encoder: str
    language: str
    queries: int
    recall_5: float
    search_ms: float
    index_s: float


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.languages", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    options = parser.parse_args(arguments)
    agent_set = read_agent_set(_CATALOGUE)
    asked = read_translations({query.id: query.text for query in agent_set.queries})
    rows = [row for encoder in _ENCODERS for row in measure(agent_set, encoder, asked)]
    print_table(("encoder", "language", "recall@5"), [(r.encoder, r.language, f"{r.recall_5:.2f}") for r in rows])
    if options.json:
        write_figures(options.json, "languages", [asdict(row) for row in rows])
    return 0


def read_translations(english: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """By language, the queries by their id; those in English are *english*."""
    texts: dict[str, dict[str, str]] = {}
    for line in (LANGUAGES / f"{_CATALOGUE}.jsonl").read_text(encoding="utf-8").splitlines():
        row: dict[str, str] = json.loads(line)
        name = row.pop("id")
        for language, text in {"en": english[name], **row}.items():
            texts.setdefault(language, {})[name] = text
    return texts


def measure(agent_set: AgentSet, encoder: str, asked: Mapping[str, Mapping[str, str]]) -> Iterator[Row]:
    """A row for each language of *asked*."""
    started = time.process_time()
    index = ToolSearchIndex([document_of(tool) for tool in agent_set.tools], encoder=open_encoder(encoder))
    index_s = round(time.process_time() - started, 2)
    relevant = {query.id: query.relevant for query in agent_set.queries}
    for language, texts in asked.items():
        started = time.process_time()
        found = [
            not relevant[name].isdisjoint(hit.name for hit in index.search(text, limit=_FIRST))
            for name, text in texts.items()
        ]
        search_ms = round(1000 * (time.process_time() - started) / len(found), 2)
        yield Row(encoder, language, len(found), round(sum(found) / len(found), 4), search_ms, index_s)


def page_tables(figures: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    languages = list(dict.fromkeys(row["language"] for row in figures))
    found = {(row["encoder"], row["language"]): f"{row['recall_5']:.2f}" for row in figures}
    by_encoder = {encoder: [row for row in figures if row["encoder"] == encoder] for encoder in _ENCODERS}
    rows = [
        [
            encoder,
            *(found[encoder, language] for language in languages),
            f"{statistics.mean(row['search_ms'] for row in of):.1f}",
            f"{of[0]['index_s']:.1f}",
        ]
        for encoder, of in by_encoder.items()
    ]
    return {"languages": markdown_table(("encoder", *languages, "CPU ms a search", "CPU s to index"), rows)}


if __name__ == "__main__":
    sys.exit(main())
