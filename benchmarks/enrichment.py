"""What do requests of users bring to a search, and what do they cost it?

    python -m benchmarks.enrichment [--sets FOLDER] [--catalogues github] [--encoder SPEC] [--reader SPEC]
                                   [--json FILE]

Tools are indexed with none, two, four or eight of the requests that were written for them: those that ship, for the
catalogues of `benchmarks.agent_queries`, and those of `requests/livemcp.jsonl` for the set livemcp. A file such as
`requests/mcp_servers_8.jsonl` has further ones for a catalogue; without it there are no eight. All were written from
the definitions alone. The weights of the field were chosen while looking at these figures.

Then what requests do for tools of which only the first sentence of the description is left, and what it does if a fifth
of the tools got requests of a bad writer (`bad_requests`).

What it costs: CPU time of indexing and of a search, and memory. And a request that no tool of a set serves should find
nothing, or something of low confidence. Those of `benchmarks.abstention` are asked of livemcp, most of whose kinds it
does not serve.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from benchmarks.abstention import read_unanswerable
from benchmarks.agent_queries import CATALOGUES, read_agent_set
from benchmarks.bad_requests import WRITERS, Writer, written_by
from benchmarks.choosing import named, opened
from benchmarks.datasets import REQUESTS, UNANSWERABLE, add_sets_option, set_folders
from benchmarks.figure_tables import markdown_table, print_table
from benchmarks.labelled import quality, read_set
from benchmarks.recall import documents_of, reader_to_measure
from benchmarks.results import write_figures
from toolsearch.catalog.indexing import document_of
from toolsearch.catalog.request_packs import shipped_requests
from toolsearch.errors import SourceError
from toolsearch_indexes.documents import Hit, ToolDocument
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.index import ToolSearchIndex, index_bytes
from toolsearch_indexes.queries import Ranking
from toolsearch_indexes.reader import Reader
from toolsearch_indexes.semantic import first_sentence

LIVEMCP = "livemcp"
COUNTS = (0, 2, 4, 8)  # requests of a tool
USUAL = 4  # as many as ship
STRATEGIES: tuple[Ranking, ...] = ("keyword", "semantic", "hybrid")
_PLACES = 10
_COSTS = {  # columns of a row as a page names them
    "answered": "answered",
    "sure": "not weak",
    "refused": "served, but refused",
    "unsure": "served, but weak",
}
_PASSES = 2  # over the queries, of which the quicker counts

Descriptions: TypeAlias = Literal["whole", "first sentence"]


@dataclass(frozen=True, slots=True)
class Asked:
    """Tools with all their requests, and queries with the tools that serve them."""

    name: str
    documents: Sequence[ToolDocument]
    queries: Sequence[tuple[str, frozenset[str]]]
    unanswerable: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Condition:
    """What tools are indexed with; *writer* says how good the requests of a fifth of them are."""

    requests: int
    descriptions: Descriptions = "whole"
    writer: Writer = "good"

    def of(self, documents: Sequence[ToolDocument]) -> list[ToolDocument]:
        cut = [replace(document, requests=document.requests[: self.requests]) for document in documents]
        if self.descriptions == "first sentence":
            cut = [replace(document, description=first_sentence(document.description)) for document in cut]
        return written_by(self.writer, cut)


@dataclass(frozen=True, slots=True)
class Row:
    """
    tools      and for how many of them there are requests
    refused    share of the queries that got no answer, and *unsure* of those that got a weak one or none
    index_s    CPU time of indexing them, and *search_ms* of a search on average
    index_mib  about what the index takes of memory
    answered   share of the unanswerable that got an answer, and *sure* of those whose answer is not weak; None where
               none were asked
    """

    catalogue: str
    tools: int
    with_requests: int
    descriptions: Descriptions
    writer: Writer
    requests: int
    search: str
    recall_1: float
    recall_5: float
    ndcg_10: float
    refused: float
    unsure: float
    index_s: float
    index_mib: float
    search_ms: float
    answered: float | None = None
    sure: float | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    makers = {name: partial(_with_further, name) for name in CATALOGUES} | {
        LIVEMCP: partial(asked_of_livemcp, options.sets)
    }
    encoder, reader = open_encoder(options.encoder), reader_to_measure(options.reader)
    chosen = opened(makers, named(parser, options.catalogues, makers, "catalogue"))
    rows = [row for _, asked in chosen for row in measure(asked, encoder, reader)]
    columns = ("catalogue", "descriptions", "writer", "requests", "search", "recall@1", "recall@5", "nDCG@10")
    costs = ("refused", "unsure", "answered", "sure", "index s", "MiB", "ms")
    print_table((*columns, *costs), [_cells(row) for row in rows], by_first=True)
    if options.json:
        write_figures(options.json, "enrichment", [asdict(row) for row in rows])
    return 0 if rows else 2


def page_tables(figures: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """recall@5 by number of requests, by length of description and by writer; and what it costs."""
    placed = {
        (row["catalogue"], row["search"], row["descriptions"], row["writer"], row["requests"]): row for row in figures
    }
    asked = dict.fromkeys((row["catalogue"], row["search"]) for row in figures)

    def of(place: tuple[str, str], count: int, *, short: bool = False, writer: Writer = "good") -> Mapping[str, Any]:
        return placed.get((*place, "first sentence" if short else "whole", writer, count), {})

    def named(place: tuple[str, str]) -> tuple[str, str]:
        first = of(place, 0)
        return f"{place[0]} ({first['with_requests']:,} of {first['tools']:,})", place[1]

    hybrid = [place for place in asked if place[1] == "hybrid"]
    counts = ("none", *(f"{count} requests" for count in COUNTS[1:]))
    shares = [f"{told}, {count}" for told in _COSTS.values() for count in ("none", f"{USUAL} requests")]
    few = [
        f"{text}, {count}"
        for text in ("first sentence", "whole description")
        for count in ("none", f"{USUAL} requests")
    ]
    return {
        "enrichment": markdown_table(
            ("tools (with requests)", "search", *counts),
            [[*named(place), *(_recall(of(place, count)) for count in COUNTS)] for place in asked],
        ),
        "enrichment, descriptions": markdown_table(
            ("tools (with requests)", *few),
            [
                [
                    named(place)[0],
                    *(_recall(of(place, count, short=short)) for short in (True, False) for count in (0, USUAL)),
                ]
                for place in hybrid
            ],
        ),
        "enrichment, bad requests": markdown_table(
            (
                "tools (with requests)",
                "none",
                *(f"a fifth {writer}" if writer != "good" else "good" for writer in WRITERS),
            ),
            [
                [
                    named(place)[0],
                    _recall(of(place, 0)),
                    *(_recall(of(place, USUAL, writer=writer)) for writer in WRITERS),
                ]
                for place in hybrid
            ],
        ),
        "enrichment, cost": markdown_table(
            ("tools (with requests)", "index, CPU s", "with 4", "index, MiB", "with 4", "a search, CPU ms", "with 4"),
            [
                [
                    named(place)[0],
                    *(
                        f"{of(place, count)[figure]:.{digits}f}"
                        for figure, digits in (("index_s", 2), ("index_mib", 1), ("search_ms", 2))
                        for count in (0, USUAL)
                    ),
                ]
                for place in hybrid
            ],
        ),
        "enrichment, unanswerable": markdown_table(
            ("search", *shares),
            [
                [
                    place[1],
                    *(f"{of(place, count)[share]:.0%}" for share in _COSTS for count in (0, USUAL)),
                ]
                for place in asked
                if of(place, 0)["answered"] is not None
            ],
        ),
    }


def measure(asked: Asked, encoder: Encoder, reader: Reader | None = None) -> Iterator[Row]:
    """A row for each condition and each strategy. Of these only hybrid has the *reader* read."""
    with_requests = sum(bool(document.requests) for document in asked.documents)
    ToolSearchIndex(
        asked.documents, encoder=encoder
    )  # a running process has met most words; the first time takes longer
    for condition in conditions(asked.documents):
        documents = condition.of(asked.documents)
        started = time.process_time()
        index = ToolSearchIndex(documents, encoder=encoder, reader=reader)
        index_s = time.process_time() - started
        for strategy in STRATEGIES:
            search = partial(index.search, limit=_PLACES, strategy=strategy)
            found = [(search(text), relevant) for text, relevant in asked.queries]
            judged = quality([([hit.name for hit in hits], relevant) for hits, relevant in found])
            answers = [search(text) for text in asked.unanswerable]
            yield Row(
                asked.name,
                len(documents),
                with_requests,
                condition.descriptions,
                condition.writer,
                condition.requests,
                strategy,
                recall_1=round(judged.recall_1, 4),
                recall_5=round(judged.recall_5, 4),
                ndcg_10=round(judged.ndcg_10, 4),
                refused=_share(not hits for hits, _ in found) or 0.0,
                unsure=_share(not _is_sure(hits) for hits, _ in found) or 0.0,
                index_s=round(index_s, 3),
                index_mib=round(index_bytes(index) / 2**20, 2),
                search_ms=round(_quicker_ms(search, [text for text, _ in asked.queries]), 3),
                answered=_share(map(bool, answers)),
                sure=_share(map(_is_sure, answers)),
            )


def _is_sure(hits: Sequence[Hit]) -> bool:
    return bool(hits) and hits[0].confidence != "low"


def conditions(documents: Sequence[ToolDocument]) -> list[Condition]:
    """Those that the requests of *documents* are enough for; a bad writer is tried where four are usual."""
    most = max((len(document.requests) for document in documents), default=0)
    counts = [count for count in COUNTS if count <= max(USUAL, most)]
    return [
        *(Condition(count) for count in counts),
        *(Condition(count, "first sentence") for count in counts),
        *(Condition(USUAL, writer=writer) for writer in WRITERS if writer != "good"),
    ]


def _quicker_ms(search: Callable[[str], object], queries: Sequence[str]) -> float:
    """CPU milliseconds of a search on average, in the quicker pass over *queries*."""
    passes: list[float] = []
    for _ in range(_PASSES):
        started = time.process_time()
        for query in queries:
            search(query)
        passes.append(time.process_time() - started)
    return 1000 * min(passes) / max(1, len(queries))


def with_further(name: str, documents: Sequence[ToolDocument], folder: Path = REQUESTS) -> list[ToolDocument]:
    """Add the further requests of the catalogue *name*, if there are any, behind those that the tools have."""
    path = folder / f"{name.replace('-', '_')}_8.jsonl"
    further = requests_in(path) if path.is_file() else {}
    return [replace(document, requests=(*document.requests, *further.get(document.name, ()))) for document in documents]


def _with_further(name: str) -> Asked:
    asked = asked_by_agents(name)
    return replace(asked, documents=with_further(name, asked.documents))


def requests_in(path: Path) -> dict[str, tuple[str, ...]]:
    """By the tool's id."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {row["id"]: tuple(row["requests"]) for row in rows}


def asked_by_agents(name: str) -> Asked:
    """Raises SourceError if a package that the tools come from is not installed."""
    agents = read_agent_set(name)
    documents = [document_of(tool, shipped_requests()) for tool in agents.tools]
    return Asked(name, documents, [(query.text, query.relevant) for query in agents.queries])


def asked_of_livemcp(sets: Path) -> Asked:
    """Raises SourceError if the set is not there."""
    folder = sets / LIVEMCP
    if folder not in set_folders(sets):
        raise SourceError(f"there is no folder {folder} with a labelled set")
    labelled = read_set(folder)
    written = requests_in(REQUESTS / f"{LIVEMCP}.jsonl")
    documents = [replace(each, requests=written.get(each.name, ())) for each in documents_of(labelled.tools)]
    queries = [(query.text, query.relevant) for query in labelled.queries]
    return Asked(LIVEMCP, documents, queries, [request.query for request in read_unanswerable(UNANSWERABLE)])


def _share(of: Iterable[bool]) -> float | None:
    found = list(of)
    return round(sum(found) / len(found), 4) if found else None


def _recall(row: Mapping[str, Any]) -> str:
    return f"{row['recall_5']:.3f}" if row else "-"


def _cells(row: Row) -> tuple[str, ...]:
    shares = ("-" if share is None else f"{share:.0%}" for share in (row.refused, row.unsure, row.answered, row.sure))
    qualities = (f"{value:.3f}" for value in (row.recall_1, row.recall_5, row.ndcg_10))
    costs = (f"{row.index_s:.2f}", f"{row.index_mib:.1f}", f"{row.search_ms:.2f}")
    return (row.catalogue, row.descriptions, row.writer, str(row.requests), row.search, *qualities, *shares, *costs)


def _parser() -> argparse.ArgumentParser:
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.enrichment", description=summary)
    add_sets_option(parser)
    names = ",".join([*CATALOGUES, LIVEMCP])
    parser.add_argument("--catalogues", default=names, help=f"only these, by comma, out of {names}")
    parser.add_argument("--encoder", default=BUILT_IN, help="what semantic and hybrid embed with")
    parser.add_argument(
        "--reader", metavar="SPEC", help="what reads the first tools of hybrid again: auto, or a folder"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
