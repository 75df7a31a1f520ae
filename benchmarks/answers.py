"""What do the search tool and its answers cost, and does one call with several queries serve a task of several steps?

python -m benchmarks.answers [--catalogues NAMES] [--before FILE] [--json FILE]
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import count, product
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.agent_queries import CATALOGUES, AgentQuery, AgentSet, read_agent_sets
from benchmarks.figure_tables import print_table
from benchmarks.results import read_figures, write_figures
from toolsearch import Catalog, PassThrough, Session, SessionOptions, Tool, ToolContext, ToolDefinition, ToolSearch
from toolsearch.errors import ToolSearchError
from toolsearch.tokens import count_json, default_counter
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire.capabilities import RevealMode
from toolsearch.wire.formats import WireFormat

TASKS = 40  # of each catalogue
STEPS = 3  # of a task
WAYS = ("one call with three queries", "one call with a joined query", "three calls")
_SEED = 0
EXPOSURES: tuple[RevealMode, ...] = ("append", "messages", "deferred", "fixed")
_FORMATS: tuple[WireFormat, ...] = ("openai", "openai-responses", "anthropic", "mcp")


@dataclass(frozen=True, slots=True)
class Task:
    """Queries for different tools of one catalogue."""

    queries: Sequence[AgentQuery]


@dataclass(frozen=True, slots=True)
class Asked:
    """What one or several calls came to. Tokens are of the calls' arguments, the answers and the loaded definitions."""

    loaded: frozenset[str]
    listed: frozenset[str]
    answer_tokens: int
    tokens: int

    def serves(self, queries: Collection[AgentQuery]) -> tuple[bool, bool]:
        """Whether a right tool for each of *queries* is loaded, and whether one is at least named."""
        names = self.loaded | self.listed
        return (
            all(query.relevant & self.loaded for query in queries),
            all(query.relevant & names for query in queries),
        )


@dataclass(frozen=True, slots=True)
class Figures:
    """Shares are in 0 to 1; the others are means."""

    asked: int
    right_loaded: float
    right_named: float
    tools_loaded: float
    answer_tokens: float
    tokens: float


class CallsNothing:
    """Runs a tool of a benchmark, so that none of them is one that cannot be called."""

    async def call(self, arguments: JsonObject, context: ToolContext) -> str:
        return f"called with {len(arguments)} arguments and {len(context)} values"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    sets = list(read_agent_sets(parser, options.catalogues))
    if not sets:
        return 2
    now = measure(sets)
    before = read_figures(options.before)["now"] if options.before else None
    for figures, when in ((before, "before"), (now, "now")):
        if figures is not None:
            _print(figures, when)
    if options.json:
        stored = {"before": before, "now": now} if before else {"now": now}
        write_figures(options.json, "answers", stored, seed=_SEED)
    return 0


def measure(sets: Sequence[AgentSet], tasks: int = TASKS) -> dict[str, Any]:
    """The figures of the search tool by format, of single searches by catalogue, of their answers by exposure, and of
    tasks by way.
    """
    answered: dict[RevealMode, list[int]] = {exposure: [] for exposure in EXPOSURES}
    single: dict[str, dict[str, float]] = {}
    by_way: dict[str, list[tuple[Task, Asked]]] = {way: [] for way in WAYS}
    for agent_set in sets:
        with _opened(agent_set.tools) as engine:
            numbers = count()
            found = [([query], ask(engine, next(numbers), [[query.text]])) for query in agent_set.queries]
            single[agent_set.name] = asdict(_figures(found))
            for query, exposure in product(agent_set.queries, EXPOSURES):
                answered[exposure].append(ask(engine, next(numbers), [[query.text]], exposure).answer_tokens)
            for task in tasks_of(agent_set, tasks):
                for way, calls in calls_of(task).items():
                    try:
                        by_way[way].append((task, ask(engine, next(numbers), calls)))
                    except ToolSearchError:  # an earlier version takes one query a call
                        continue
    return {
        "search_tool": search_tool_tokens(),
        "searches": single,
        "exposures": {
            exposure: {"asked": len(tokens), "mean": round(fmean(tokens), 1), "largest": max(tokens)}
            for exposure, tokens in answered.items()
        },
        "tasks": {
            way: asdict(_figures([(task.queries, asked) for task, asked in found]))
            for way, found in by_way.items()
            if found
        },
    }


def search_tool_tokens() -> dict[str, int]:
    """The tokens of the search tool's definition, by format."""
    engine = ToolSearch(Catalog([ToolDefinition("a")]), options=SessionOptions(pass_through=PassThrough(max_tools=0)))
    with engine:
        written = {name: engine.session(name).tools(name)[0] for name in _FORMATS}
    return {name: count_json(entry, default_counter()) for name, entry in written.items()}


def tasks_of(agent_set: AgentSet, number: int) -> Iterator[Task]:
    """*number* tasks, always the same; no tool serves two of the queries of one."""
    chosen = random.Random(f"{_SEED} {agent_set.name}")
    for _ in range(number):
        queries: list[AgentQuery] = []
        while len(queries) < STEPS:
            query = chosen.choice(agent_set.queries)
            if not any(query.relevant & other.relevant for other in queries):
                queries.append(query)
        yield Task(queries)


def calls_of(task: Task) -> dict[str, list[list[str]]]:
    """The queries of each call of the search tool, by the way of asking."""
    texts = [query.text for query in task.queries]
    joined = f"{', '.join(texts[:-1])} and {texts[-1]}"
    return dict(zip(WAYS, ([texts], [[joined]], [[text] for text in texts]), strict=True))


def ask(engine: ToolSearch, number: int, calls: Sequence[Sequence[str]], exposure: RevealMode = EXPOSURES[0]) -> Asked:
    """Search in a session of its own, once for each of *calls*. Definitions that a provider puts in place of a part of
    an answer do not count as tokens of the answer.
    """
    session, counter = engine.session(str(number), exposure=exposure), default_counter()
    named: list[str] = []
    answered = written = 0
    for queries in calls:
        arguments: JsonObject = {"queries": list(queries)} if len(queries) > 1 else {"query": queries[0]}
        answer, text = _answer(session, arguments)
        named += [*answer.get("tools", ()), *answer.get("alsoFound", ())]
        answered += counter.count(text)
        written += count_json(arguments, counter)
    loaded = frozenset(session.discovered)
    tokens = answered + written + session.state.discovered.tokens
    engine.sessions.evict(session.id)
    return Asked(loaded, frozenset(named), answered, tokens)


def _answer(session: Session, arguments: JsonObject) -> tuple[Mapping[str, Any], str]:
    output: Any = session.answer(arguments)
    return output.structured, "\n".join(block["text"] for block in output.content)


def _figures(asked: Sequence[tuple[Collection[AgentQuery], Asked]]) -> Figures:
    served = [found.serves(queries) for queries, found in asked]
    return Figures(
        len(asked),
        round(fmean(is_loaded for is_loaded, _ in served), 3),
        round(fmean(is_named for _, is_named in served), 3),
        round(fmean(len(found.loaded) for _, found in asked), 2),
        round(fmean(found.answer_tokens for _, found in asked), 1),
        round(fmean(found.tokens for _, found in asked), 1),
    )


@contextmanager
def _opened(tools: Sequence[ToolDefinition]) -> Iterator[ToolSearch]:
    options = SessionOptions(pass_through=PassThrough(max_tools=0))
    with ToolSearch(Catalog([Tool(each, CallsNothing()) for each in tools]), options=options) as engine:
        yield engine


_EXPOSED = ("asked", "mean", "largest")


def _print(figures: Mapping[str, Any], when: str) -> None:
    tokens = ", ".join(f"{name} {number}" for name, number in figures["search_tool"].items())
    print(f"{when}: tokens of {TOOL_NAME}: {tokens}")
    rows: list[Sequence[str]] = []
    for part in ("searches", "tasks"):
        for name, row in figures[part].items():
            shares = (f"{row[key]:.3f}" for key in ("right_loaded", "right_named"))
            means = (f"{row[key]:,.1f}" for key in ("tools_loaded", "answer_tokens", "tokens"))
            rows.append((part, name, f"{row['asked']}", *shares, *means))
    exposures = [(name, *(f"{row[key]:,}" for key in _EXPOSED)) for name, row in figures.get("exposures", {}).items()]
    print_table(("answer in", *_EXPOSED), exposures)
    print_table(("", "", "asked", "right loaded", "right named", "loaded", "answer", "tokens"), rows, by_first=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.answers", description=__doc__.partition("\n")[0])
    parser.add_argument("--catalogues", default=",".join(CATALOGUES), help="only these, by comma")
    parser.add_argument("--before", type=Path, help="figures of an earlier version, to put beside")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
