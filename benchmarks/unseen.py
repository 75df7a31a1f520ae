"""What does search find of requests on which nothing here was fitted or chosen, over 4,000 tools of 100 services?

    python -m benchmarks.unseen [--encoder SPEC] [--reader SPEC] [--json FILE]

The requests in unseen.jsonl were written by hand from the tools' definitions alone, with no sight of the search or of
other requests, and every tool that serves them equally well is labelled. They are for reporting: after a look at what a
single one of them finds, it may not decide what is built.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

from benchmarks.catalogues import real_catalogue
from benchmarks.datasets import SETS, UNSEEN
from benchmarks.figure_tables import markdown_table, print_table
from benchmarks.recall import READ, add_encoder_option, add_reader_option, encoders_to_measure, reader_to_measure
from benchmarks.results import write_figures
from toolsearch.catalog.indexing import document_of
from toolsearch.catalog.request_packs import NO_REQUESTS, shipped_requests
from toolsearch.catalog.sources.functions import ModuleSource
from toolsearch.tools.definition import ToolDefinition
from toolsearch_indexes.documents import Hit
from toolsearch_indexes.index import ToolSearchIndex

_GOOGLE: Final = ("gmail", "calendar", "sheets", "drive", "docs", "tasks", "people", "youtube")
_AWS: Final = ("s3", "ec2", "dynamodb", "lambda", "iam", "logs", "cloudwatch", "sqs", "sns", "rds", "route53", "ecs")
_SERVICES: Final = {"github", *(f"google_{name}" for name in _GOOGLE), *(f"aws_{name}" for name in _AWS)}
_MODULES: Final = ("statistics", "hashlib", "base64", "zlib", "uuid", "math", "textwrap", "colorsys", "json")
_STEPS: Final = "several steps"
_NONE: Final = "no tool"
_SURE: Final = 0.9
_FIRST: Final = 5
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class UnseenRequest:
    """*kind*: a user's, with values such as paths in it; a user's without; a task of several steps; a query of a model;
    or one that no tool serves.
    """

    kind: str
    query: str
    relevant: frozenset[str]


@dataclass(frozen=True, slots=True)
class Row:
    """
    search        "hybrid", and which encoder and reader if they are not the built-in one and none
    requests      of users that the tools are indexed with: "none" or "shipped"
    right_1       the share of requests for which the first tool is right
    right_5       the share for which one of the first five is; of several steps, the share of right tools among them
    sure          how many first tools have a score of .9 or more, and *sure_right* how many of these are right
    answered      the share of requests that get an answer
    """

    search: str
    requests: str
    kind: str
    asked: int
    right_1: float
    right_5: float
    sure: int
    sure_right: int
    answered: float


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    tools, asked, rows = unseen_catalogue(options.sets), read_unseen(), list[Row]()
    reader = reader_to_measure(options.reader)
    for name, source in (("none", NO_REQUESTS), ("shipped", shipped_requests())):
        for which, encoder in encoders_to_measure(options.encoder).items():
            index = ToolSearchIndex([document_of(tool, source) for tool in tools], encoder=encoder)
            rows += judged(index, asked, f"hybrid{which}", name)
            if reader:
                index.reader = reader
                rows += judged(index, asked, f"hybrid{which}{READ}", name)
    print_table(_COLUMNS, list(map(_cells, rows)))
    if options.json:
        write_figures(options.json, "unseen", [asdict(row) for row in rows])
    return 0


def unseen_catalogue(sets: Path = SETS) -> list[ToolDefinition]:
    """GitHub, services of AWS and Google, the MCP servers of the labelled set livemcp, and modules of Python."""
    of_services = [tool for tool in real_catalogue() if tool.server in _SERVICES]
    of_modules = [tool.definition for name in _MODULES for tool in ModuleSource(name).load().tools]
    found = chain(of_services, _of_servers(sets / "livemcp" / "tools.jsonl"), of_modules)
    return list({tool.name: tool for tool in found}.values())


def _of_servers(path: Path) -> Iterator[ToolDefinition]:
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        server = row["server"].lower().replace(" ", "-")
        name = _ILLEGAL.sub("_", f"{server}__{row['name']}")[-_LONGEST_NAME:]
        schema = {"type": "object", **row["input_schema"]}
        yield ToolDefinition(name, row["description"], schema, server=server)


def read_unseen() -> list[UnseenRequest]:
    rows = map(json.loads, UNSEEN.read_text(encoding="utf-8").splitlines())
    return [UnseenRequest(row["kind"], row["query"], frozenset(row["relevant"])) for row in rows]


def judged(index: ToolSearchIndex, asked: Sequence[UnseenRequest], search: str, requests: str) -> Iterator[Row]:
    for kind in dict.fromkeys(each.kind for each in asked):
        answers = [(each.relevant, index.search(each.query, limit=_FIRST)) for each in asked if each.kind == kind]
        share_of = _share_of_tools if kind == _STEPS else _is_any
        sure = [(relevant, hits[0]) for relevant, hits in answers if hits and hits[0].score >= _SURE]
        yield Row(
            search,
            requests,
            kind,
            len(answers),
            _mean([_is_any(relevant, hits[:1]) for relevant, hits in answers]),
            _mean([share_of(relevant, hits) for relevant, hits in answers]),
            len(sure),
            sum(hit.name in relevant for relevant, hit in sure),
            _mean([float(bool(hits)) for _, hits in answers]),
        )


def _is_any(relevant: frozenset[str], hits: Sequence[Hit]) -> float:
    return float(any(hit.name in relevant for hit in hits))


def _share_of_tools(relevant: frozenset[str], hits: Sequence[Hit]) -> float:
    return sum(hit.name in relevant for hit in hits) / min(len(relevant), _FIRST)


def _mean(shares: Sequence[float]) -> float:
    return round(sum(shares) / len(shares), 4)


_COLUMNS: Final = (
    "search",
    "requests",
    "kind",
    "asked",
    "first right",
    "right in five",
    "sure, of these right",
    "answered",
)


def _cells(row: Row) -> list[str]:
    found = ("", "") if row.kind == _NONE else (f"{row.right_1:.3f}", f"{row.right_5:.3f}")
    return [
        row.search,
        row.requests,
        row.kind,
        str(row.asked),
        *found,
        f"{row.sure}, {row.sure_right}",
        f"{row.answered:.3f}",
    ]


def page_tables(figures: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    return {"unseen": markdown_table(_COLUMNS, [_cells(Row(**row)) for row in figures])}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.unseen", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sets", type=Path, default=SETS, metavar="FOLDER", help="a folder with the set livemcp")
    add_encoder_option(parser)
    add_reader_option(parser)
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
