"""What do requests of users bring to a search, and what do they cost it?

    python -m benchmarks.enrichment [--sets FOLDER] [--catalogues github] [--json FILE]

Tools are indexed with none, two or four of the requests that were written for them: those that ship, for the catalogues
of `benchmarks.agent_queries`, and those of `requests/livemcp.jsonl` for the set livemcp. All were written from the
definitions alone. The weights of the field were chosen while looking at these figures.

What it costs: a request that no tool of a set serves should find nothing, or something of low confidence. Those of
`benchmarks.abstention` are asked of livemcp, most of whose kinds it does not serve.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.abstention import read_unanswerable
from benchmarks.agent_queries import CATALOGUES, read_agent_set
from benchmarks.choosing import named, opened
from benchmarks.datasets import REQUESTS, UNANSWERABLE, add_sets_option, set_folders
from benchmarks.figure_tables import markdown_table, print_table
from benchmarks.labelled import quality, read_set
from benchmarks.recall import documents_of
from benchmarks.results import write_figures
from toolsearch.catalog.indexing import document_of
from toolsearch.catalog.request_packs import shipped_requests
from toolsearch.errors import SourceError
from toolsearch_indexes.documents import Hit, ToolDocument
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.strategies import Ranking

LIVEMCP = "livemcp"
COUNTS = (0, 2, 4)  # requests of a tool
STRATEGIES: tuple[Ranking, ...] = ("keyword", "semantic", "hybrid")
_PLACES = 10
_COSTS = {  # columns of a row as a page names them
    "answered": "answered",
    "sure": "with high confidence",
    "refused": "served, but refused",
    "unsure": "served, but not with high confidence",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """Tools with all their requests, and queries with the tools that serve them."""

    name: str
    documents: Sequence[ToolDocument]
    queries: Sequence[tuple[str, frozenset[str]]]
    unanswerable: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """
    tools     and for how many of them there are requests
    refused   share of the queries that got no answer, and *unsure* of those that got none of high confidence
    answered  share of the unanswerable that got an answer, and *sure* of those with high confidence; None where none
              were asked
    """

    catalogue: str
    tools: int
    with_requests: int
    requests: int
    search: str
    recall_1: float
    recall_5: float
    ndcg_10: float
    refused: float
    unsure: float
    answered: float | None = None
    sure: float | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    makers = {name: partial(asked_by_agents, name) for name in CATALOGUES} | {
        LIVEMCP: partial(_of_livemcp, options.sets)
    }
    encoder = open_encoder(BUILT_IN)
    chosen = opened(makers, named(parser, options.catalogues, makers, "catalogue"))
    rows = [row for _, asked in chosen for row in measure(asked, encoder)]
    qualities = ("recall@1", "recall@5", "nDCG@10")
    columns = ("catalogue", "requests", "search", *qualities, "refused", "unsure", "answered", "sure")
    print_table(columns, [_cells(row) for row in rows], by_first=True)
    if options.json:
        write_figures(options.json, "enrichment", [asdict(row) for row in rows])
    return 0 if rows else 2


def page_tables(figures: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """recall@5 by number of requests; and what it costs, where that was asked."""
    by_place = {(row["catalogue"], row["search"], row["requests"]): row for row in figures}
    asked = dict.fromkeys((row["catalogue"], row["search"]) for row in figures)
    found = [
        [
            f"{catalogue} ({first['with_requests']:,} of {first['tools']:,})",
            search,
            *(f"{by_place[catalogue, search, count]['recall_5']:.3f}" for count in COUNTS),
        ]
        for catalogue, search in asked
        if (first := by_place[catalogue, search, 0])
    ]
    costs = [
        [
            search,
            *(
                f"{by_place[catalogue, search, count][share]:.0%}"
                for share in _COSTS
                for count in (COUNTS[0], COUNTS[-1])
            ),
        ]
        for catalogue, search in asked
        if by_place[catalogue, search, 0]["answered"] is not None
    ]
    counts = ("none", *(f"{count} requests" for count in COUNTS[1:]))
    shares = [f"{told}, {count}" for told in _COSTS.values() for count in (counts[0], counts[-1])]
    return {
        "enrichment": markdown_table(("tools (with requests)", "search", *counts), found),
        "enrichment, unanswerable": markdown_table(("search", *shares), costs),
    }


def measure(asked: Asked, encoder: Encoder) -> Iterator[Row]:
    """A row for each number of requests and each strategy."""
    with_requests = sum(bool(document.requests) for document in asked.documents)
    for count in COUNTS:
        documents = [replace(document, requests=document.requests[:count]) for document in asked.documents]
        index = ToolSearchIndex(documents, encoder=encoder)
        for strategy in STRATEGIES:
            search = partial(index.search, limit=_PLACES, strategy=strategy)
            found = [(search(text), relevant) for text, relevant in asked.queries]
            judged = quality([([hit.name for hit in hits], relevant) for hits, relevant in found])
            answers = [search(text) for text in asked.unanswerable]
            yield Row(
                asked.name,
                len(documents),
                with_requests,
                count,
                strategy,
                recall_1=round(judged.recall_1, 4),
                recall_5=round(judged.recall_5, 4),
                ndcg_10=round(judged.ndcg_10, 4),
                refused=_share(not hits for hits, _ in found) or 0.0,
                unsure=_share(not _is_sure(hits) for hits, _ in found) or 0.0,
                answered=_share(map(bool, answers)),
                sure=_share(map(_is_sure, answers)),
            )


def _is_sure(hits: Sequence[Hit]) -> bool:
    return bool(hits) and hits[0].confidence == "high"


def asked_by_agents(name: str) -> Asked:
    """Raises SourceError if a package that the tools come from is not installed."""
    agents = read_agent_set(name)
    documents = [document_of(tool, shipped_requests()) for tool in agents.tools]
    return Asked(name, documents, [(query.text, query.relevant) for query in agents.queries])


def _of_livemcp(sets: Path) -> Asked:
    """Raises SourceError if the set is not there."""
    folder = sets / LIVEMCP
    if folder not in set_folders(sets):
        raise SourceError(f"there is no folder {folder} with a labelled set")
    labelled = read_set(folder)
    lines = (REQUESTS / f"{LIVEMCP}.jsonl").read_text(encoding="utf-8").splitlines()
    written = {row["id"]: tuple(row["requests"]) for row in map(json.loads, lines)}
    documents = [replace(each, requests=written.get(each.name, ())) for each in documents_of(labelled.tools)]
    queries = [(query.text, query.relevant) for query in labelled.queries]
    return Asked(LIVEMCP, documents, queries, [request.query for request in read_unanswerable(UNANSWERABLE)])


def _share(of: Iterable[bool]) -> float | None:
    found = list(of)
    return round(sum(found) / len(found), 4) if found else None


def _cells(row: Row) -> tuple[str, ...]:
    shares = ("-" if share is None else f"{share:.0%}" for share in (row.refused, row.unsure, row.answered, row.sure))
    qualities = (f"{value:.3f}" for value in (row.recall_1, row.recall_5, row.ndcg_10))
    return (row.catalogue, str(row.requests), row.search, *qualities, *shares)


def _parser() -> argparse.ArgumentParser:
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.enrichment", description=summary)
    add_sets_option(parser)
    names = ",".join([*CATALOGUES, LIVEMCP])
    parser.add_argument("--catalogues", default=names, help=f"only these, by comma, out of {names}")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
