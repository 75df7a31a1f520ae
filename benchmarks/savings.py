"""When is tool search worth it? What conversations over real tools cost in each way of giving a model its tools.

    python -m benchmarks.savings [--only github,anthropic] [--json FILE]

No model is asked: `toolsearch.bench` counts what the requests hold. Queries are the labelled ones of
`benchmarks/agent_queries`, so that a search misses what it misses for a real model. A turn that fails for want of a
tool is charged to those that do not: all figures in dollars are for each turn that has not failed.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.agent_queries import CATALOGUES as AGENT_CATALOGUES
from benchmarks.catalogues import github_tools, real_catalogue
from benchmarks.choosing import named, opened, those_of
from benchmarks.figure_tables import print_table
from benchmarks.labelled_work import labelled_conversations, queries_for
from benchmarks.results import write_figures
from toolsearch import Tool, ToolDefinition, ToolSearch
from toolsearch.bench.conversations import PRESETS
from toolsearch.bench.costs import Caching
from toolsearch.bench.prices import prices_of
from toolsearch.bench.study import (
    CACHINGS,
    OpenEngine,
    Size,
    Study,
    StudyOptions,
    StudyRow,
    break_even,
    searching_rows,
    study,
)
from toolsearch.bench.ways import EVERY
from toolsearch.catalog.indexing import document_of
from toolsearch.tokens import TokenCounter, default_counter
from toolsearch.wire.capabilities import Endpoint
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.index import ToolSearchIndex

ENDPOINTS = (
    Endpoint("anthropic", "claude-opus-5-5"),
    Endpoint("openai-responses", "gpt-5.6"),
    Endpoint("openai", "gpt-5.1"),
)
CONVERSATIONS = {"question": 20, "assistant": 4, "agent": 2}
FEWER = {"question": 5, "assistant": 1, "agent": 1}  # over the larger catalogues, of which each takes long
GROWING = "github"  # the catalogue whose parts are studied as well
TOLD_BREAK_EVEN = ("five MCP servers", GROWING)
TOLD = ((50, "assistant"), (1_223, "assistant"))  # whose ways the page tells one by one
GROWN = (100, 200, 500)  # parts of a catalogue that get a row of their own

_SEED = 0
_REAL = ("github", "aws-core", "google-workspace", "mixed")

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Listed:
    """Real tools, the files of their labelled queries, how many conversations of each preset are played over them, and
    whether over parts of them as well.
    """

    definitions: Sequence[ToolDefinition]
    queries: Sequence[str]
    conversations: Mapping[str, int] = field(default_factory=lambda: CONVERSATIONS)
    grows: bool = False


class FullIndex(ToolSearchIndex):
    """Built once: each study opens an engine over the same tools, which would build it again."""

    def update(self, add: Iterable[ToolDocument] = (), remove: Iterable[str] = ()) -> None:
        if not len(self):
            super().update(add, remove)


class RememberingCounter:
    """Counts each text once for all studies: ten thousands of definitions come in each."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._known: dict[bytes, int] = {}

    @property
    def estimate(self) -> bool:
        return self._counter.estimate

    def count(self, text: str) -> int:
        key = hashlib.blake2b(text.encode(), digest_size=16).digest()
        tokens = self._known.get(key)
        if tokens is None:
            tokens = self._known[key] = self._counter.count(text)
        return tokens


def _mcp(servers: tuple[str, ...] = ()) -> Listed:
    tools = AGENT_CATALOGUES["mcp-servers"]()
    return Listed([tool for tool in tools if not servers or tool.server in servers], ("mcp-servers",))


def _github() -> Listed:
    return Listed(github_tools(), ("github",), FEWER, grows=True)


def _real(limit: int | None) -> Listed:
    return Listed(real_catalogue(limit), _REAL, FEWER)


CATALOGUES: Mapping[str, Callable[[], Listed]] = {
    "filesystem server": partial(_mcp, ("filesystem",)),
    "five MCP servers": _mcp,
    GROWING: _github,
    "10000 real tools": partial(_real, 10_000),
    "all real tools": partial(_real, None),
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    wires = [each.wire_format for each in ENDPOINTS]
    only = named(parser, options.only, [*CATALOGUES, *wires], "catalogue or wire")
    figures: list[Figures] = []
    for name, listed in opened(CATALOGUES, those_of(only, CATALOGUES)):
        figures += measure(name, listed, those_of(only, wires))
    if not figures:
        return 2
    print_tables(figures)
    if options.json:
        write_figures(options.json, "savings", figures, seed=_SEED)
    return 0


def measure(name: str, listed: Listed, wires: Sequence[str]) -> list[Figures]:
    """A row for each size of the catalogue, wire and preset."""
    tools = [Tool(each) for each in listed.definitions]
    queries = queries_for(listed.queries, (each.name for each in listed.definitions))
    index = FullIndex([document_of(each) for each in listed.definitions], encoder=open_encoder(BUILT_IN))
    open_engine = partial(ToolSearch, index=None if listed.grows else index)
    counter = RememberingCounter(default_counter())
    figures: list[Figures] = []
    for preset, count in listed.conversations.items():
        made = labelled_conversations(listed.definitions, queries, index, PRESETS[preset], count, seed=_SEED)
        for endpoint in (each for each in ENDPOINTS if each.wire_format in wires):
            print(f"{name}: {preset}, {endpoint.model}", file=sys.stderr)
            options = StudyOptions(endpoint, prices_of(endpoint.model), grows=listed.grows, seed=_SEED)
            found = asyncio.run(study(tools, made, options, open_engine=_opened(open_engine), counter=counter))
            figures += [_figures(name, preset, found, size) for size in _shown(found)]
    return figures


def _opened(open_engine: Callable[..., ToolSearch]) -> OpenEngine:
    return lambda catalog, options: open_engine(catalog, **options)


def _shown(found: Study) -> list[Size]:
    return [size for size in found.sizes if size is found.whole or size.tools in GROWN]


def _figures(name: str, preset: str, found: Study, size: Size) -> Figures:
    figures: Figures = {
        "catalogue": name,
        "tools": size.tools,
        "tokens": size.tokens,
        "wire": found.endpoint.wire_format,
        "model": found.endpoint.model,
        "preset": preset,
        "conversations": found.conversations,
        "ways": {row.way: _way(row) for row in size.rows},
    }
    if size is found.whole:
        figures["break_even"] = {caching: _break_even(found, caching) for caching in CACHINGS}
    return figures


def _way(row: StudyRow) -> Figures:
    costs = row.costs("none")
    return {
        **({"refused": row.refused} if row.refused else {}),
        "turns": costs.turns,
        "failed": costs.failed,
        "requests": costs.requests,
        "search_rounds": costs.search_rounds,
        "searches": costs.searches,
        "prompt": costs.prompt,
        "output": costs.output,
        **{caching: _dollars(row, caching) for caching in CACHINGS},
    }


def _dollars(row: StudyRow, caching: Caching) -> float | None:
    """For a turn that has not failed."""
    dollars = row.costs(caching).dollars_per_done
    return None if dollars is None else round(dollars, 7)


def _break_even(found: Study, caching: Caching) -> Figures:
    """For the searching way that costs least with that caching."""
    row = min(searching_rows(found.whole), key=lambda row: row.costs(caching).dollars)
    at = break_even(found, row, caching)
    share = None if at.warm_share is None else round(at.warm_share, 3)
    return {"way": row.way, "tools": at.tools if len(found.sizes) > 1 else None, "turns": at.turns, "warm_share": share}


def cheapest(row: Figures, caching: str, ways: Iterable[str] | None = None) -> str | None:
    """Of *ways*, the one that costs least for a turn that has not failed; none that is refused."""
    possible = {
        way: of[caching]
        for way, of in row["ways"].items()
        if (ways is None or way in ways) and "refused" not in of and of[caching] is not None
    }
    return min(possible, key=possible.__getitem__, default=None)


def cell(row: Figures, caching: str) -> str:
    """The cheapest way of all, with its price; if the model does not search in it, also the best in which it does."""
    best, searching = cheapest(row, caching), cheapest(row, caching, _searching(row))
    if best is None:
        return "-"
    if searching in (None, best):
        return _priced(row, best, caching)
    return f"{_priced(row, best, caching)} ({_priced(row, searching, caching)})"


def _priced(row: Figures, way: str, caching: str) -> str:
    """As a share of every definition, or in dollars for 1,000 turns if that is refused."""
    of, every = row["ways"][way], row["ways"][EVERY]
    failed = f", {of['failed'] / of['turns']:.0%} fail" if of["failed"] else ""
    if "refused" in every:
        return f"{way} ${_of_thousand(of[caching])}{failed}"
    return f"{way} {of[caching] / every[caching]:.2f}{failed}"


def _searching(row: Figures) -> list[str]:
    return [way for way in row["ways"] if way not in (EVERY, "found before")]


def worth_rows(figures: Sequence[Figures], wire: str) -> list[list[str]]:
    """The plain table of one wire: a row for each size, a column for each preset and caching."""
    rows: dict[tuple[str, int], dict[str, Figures]] = {}
    for each in figures:
        if each["wire"] == wire:
            rows.setdefault((each["catalogue"], each["tools"]), {})[each["preset"]] = each
    columns = [(preset, caching) for preset in CONVERSATIONS for caching in CACHINGS]
    return [
        [
            f"{tools:,}",
            f"{next(iter(by_preset.values()))['tokens']:,}",
            *(cell(by_preset[preset], caching) if preset in by_preset else "" for preset, caching in columns),
        ]
        for (_, tools), by_preset in rows.items()
    ]


def break_even_rows(figures: Sequence[Figures]) -> list[list[str]]:
    rows: list[list[str]] = []
    for each in figures:
        for caching, at in each.get("break_even", {}).items():
            rows.append(
                [
                    f"{each['tools']:,}",
                    each["model"],
                    each["preset"],
                    caching,
                    at["way"],
                    *("-" if at[key] is None else f"{at[key]:,}" for key in ("tools", "turns", "warm_share")),
                ]
            )
    return rows


def way_rows(figures: Sequence[Figures], tools: int, preset: str) -> list[list[str]]:
    """Every way in numbers, for one size and preset."""
    rows: list[list[str]] = []
    for each in figures:
        if (each["tools"], each["preset"]) != (tools, preset):
            continue
        for way, of in each["ways"].items():
            rows.append(
                [
                    each["model"],
                    way + (" (refused)" if "refused" in of else ""),
                    f"{of['requests'] / of['turns']:.2f}",
                    f"{of['failed'] / of['turns']:.0%}",
                    f"{of['prompt'] / of['turns']:,.0f}",
                    *(_of_thousand(of[caching]) for caching in CACHINGS),
                ]
            )
    return rows


def _of_thousand(dollars: float | None) -> str:
    return "-" if dollars is None else f"{1_000 * dollars:,.2f}"


WORTH_HEAD = ("tools", "tokens", *(f"{preset}, {caching}" for preset in CONVERSATIONS for caching in CACHINGS))
BREAK_EVEN_HEAD = ("tools", "model", "conversations", "caching", "way", "from tools", "from turns", "equal at a share")
WAY_HEAD = (
    *("model", "way", "requests a turn", "turns failed", "prompt tokens a turn"),
    *(f"$ for 1,000 turns, {caching}" for caching in CACHINGS),
)


def page_tables(figures: Sequence[Figures]) -> dict[str, list[str]]:
    """The rows of the page's tables, by their names."""
    rows = {f"worth, {endpoint.model}": worth_rows(figures, endpoint.wire_format) for endpoint in ENDPOINTS}
    rows["break-even"] = break_even_rows([each for each in figures if each["catalogue"] in TOLD_BREAK_EVEN])
    rows |= {f"ways, {tools:,} tools": way_rows(figures, tools, preset) for tools, preset in TOLD}
    return {name: [f"| {' | '.join(row)} |" for row in each] for name, each in rows.items()}


def print_tables(figures: Sequence[Figures]) -> None:
    for wire in dict.fromkeys(each["wire"] for each in figures):
        title = f"The cheapest way, and its ratio to {EVERY}: {wire}"
        print_table(WORTH_HEAD, worth_rows(figures, wire), title=title)
    print_table(BREAK_EVEN_HEAD, break_even_rows(figures), title="Break-even with every definition")
    for tools, preset in dict.fromkeys((each["tools"], each["preset"]) for each in figures):
        print_table(WAY_HEAD, way_rows(figures, tools, preset), title=f"{tools:,} tools, {preset}", by_first=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.savings", description=__doc__.partition("\n")[0])
    known = ", ".join([*CATALOGUES, *(endpoint.wire_format for endpoint in ENDPOINTS)])
    parser.add_argument("--only", default="", help=f"by comma, catalogues and wires out of: {known}")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
