"""What does each part of the search give by itself? Everything as it is, but for one part that is left out.

    python -m benchmarks.ablation [--sets FOLDER] [--catalogues github] [--json FILE]

Over the catalogues of `benchmarks.enrichment`, with the requests that are written for their tools, and over the other
labelled sets, which have none. A part that is left out is replaced by what does nothing, and indexes are made anew.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from unittest.mock import patch

from benchmarks.agent_queries import CATALOGUES
from benchmarks.choosing import named, opened
from benchmarks.datasets import add_sets_option, set_folders
from benchmarks.enrichment import LIVEMCP, Asked, asked_by_agents, asked_of_livemcp
from benchmarks.figure_tables import markdown_table, print_table
from benchmarks.labelled import SEED, quality, read_set
from benchmarks.recall import documents_of
from benchmarks.results import write_figures
from toolsearch_indexes import keyword_query, ranking, request, search, semantic
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Ranking

WHOLE: Final = "nothing"
_QUERIES = 300  # of a set at most
_PLACES = 10


@dataclass(frozen=True, slots=True)
class Part:
    """*patched*: names in modules of the engine, and what does nothing in their place."""

    name: str
    patched: Sequence[tuple[ModuleType, str, Any]] = ()
    strategy: Ranking = "hybrid"
    has_requests: bool = True


def _nothing(*_: Any) -> tuple[()]:
    return ()


def _never(*_: Any) -> bool:
    return False


PARTS: Final = (
    Part(WHOLE),
    Part("requests of users", has_requests=False),
    Part("words", strategy="semantic"),
    Part("meaning", strategy="keyword"),
    Part("the server's name in meaning", [(semantic, "telling_words", lambda *_: {})]),
    Part("parts of a request in meaning", [(semantic, "clauses", _nothing)]),
    Part("tools for each step of a request", [(search, "steps", _nothing)]),
    Part("the kinds of values", [(search, "without_values", lambda request, _: request)]),
    Part("a place for what is sure by its words", [(ranking, "_sure_by_words", lambda *_: [])]),
    Part("a word that one tool alone holds", [(request, "sole_holders", _nothing)]),
    Part("the way of a conversion", [(request, "may_tell_direction", _never)]),
    Part("tools of one name on several servers", [(search, "is_namesake", _never)]),
    Part("nothing but function words", [(keyword_query, "_FILLER", frozenset[str]())]),
)


@dataclass(frozen=True, slots=True)
class Row:
    """Without the part *without*. search_ms: CPU time of a search on average."""

    catalogue: str
    without: str
    queries: int
    recall_1: float
    recall_5: float
    search_ms: float


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    makers = makers_of(options.sets)
    chosen = opened(makers, named(parser, options.catalogues or ",".join(makers), makers, "catalogue"))
    rows = [row for _, asked in chosen for row in measure(asked)]
    cells = [(r.catalogue, r.without, f"{r.recall_1:.3f}", f"{r.recall_5:.3f}", f"{r.search_ms:.2f}") for r in rows]
    print_table(("catalogue", "without", "recall@1", "recall@5", "ms"), cells, by_first=True)
    if options.json:
        write_figures(options.json, "ablation", [asdict(row) for row in rows], seed=SEED)
    return 0 if rows else 2


def makers_of(sets: Path) -> dict[str, Callable[[], Asked]]:
    others = {folder.name: partial(_of_set, folder) for folder in set_folders(sets) if folder.name != LIVEMCP}
    agents = {name: partial(asked_by_agents, name) for name in CATALOGUES}
    return {**agents, LIVEMCP: partial(asked_of_livemcp, sets), **others}


def measure(asked: Asked, parts: Sequence[Part] = PARTS) -> Iterator[Row]:
    """A row for each of *parts*."""
    queries = asked.queries
    if len(queries) > _QUERIES:
        queries = random.Random(SEED).sample(queries, _QUERIES)
    for part in parts:
        undone = [patch.object(module, name, instead) for module, name, instead in part.patched]
        for each in undone:
            each.start()
        try:
            yield _measured(replace(asked, queries=queries), part)
        finally:
            for each in undone:
                each.stop()


def _measured(asked: Asked, part: Part) -> Row:
    documents = asked.documents if part.has_requests else [replace(each, requests=()) for each in asked.documents]
    index = ToolSearchIndex(documents, encoder=open_encoder(BUILT_IN))
    started = time.process_time()
    found = [
        ([hit.name for hit in index.search(text, limit=_PLACES, strategy=part.strategy)], relevant)
        for text, relevant in asked.queries
    ]
    search_ms = 1000 * (time.process_time() - started) / max(1, len(found))
    judged = quality(found)
    figures = round(judged.recall_1, 4), round(judged.recall_5, 4), round(search_ms, 3)
    return Row(asked.name, part.name, len(found), *figures)


def page_tables(figures: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """What recall@5 loses by each part that is left out, in points of a hundred."""
    catalogues = list(dict.fromkeys(row["catalogue"] for row in figures))
    found = {(row["catalogue"], row["without"]): row for row in figures}
    rows = [
        [part.name, *(_difference(found[each, part.name], found[each, WHOLE]) for each in catalogues)]
        for part in PARTS
        if part.name != WHOLE
    ]
    whole = ["nothing: recall@5", *(f"{found[each, WHOLE]['recall_5']:.3f}" for each in catalogues)]
    return {"ablation": markdown_table(("left out", *catalogues), [whole, *rows])}


def _difference(row: Mapping[str, Any], whole: Mapping[str, Any]) -> str:
    points = round(100 * (row["recall_5"] - whole["recall_5"]), 1)
    return f"{points:+.1f}" if points else "0"


def _of_set(folder: Path) -> Asked:
    labelled = read_set(folder)
    return Asked(folder.name, documents_of(labelled.tools), [(each.text, each.relevant) for each in labelled.queries])


def _parser() -> argparse.ArgumentParser:
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation", description=summary)
    add_sets_option(parser)
    parser.add_argument("--catalogues", help="only these, by comma")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
