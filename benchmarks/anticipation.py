"""What is saved if tools that the user's words surely ask for are shown before the model is asked?

    python -m benchmarks.anticipation [--sets ../shared/eval] [--only azcli] [--json FILE]

No model is asked. First, for each labelled set and several thresholds: how many of the needed tools are there before
the model is asked, and how many of the tools shown are needed. Then conversations of four of these requests each,
played with and without anticipation: search rounds, and dollars. Each request is one message. The model searches for
all the tools that it lacks at once: by the request itself, and if that does not find a tool, by the tool's own words.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from benchmarks.choosing import named
from benchmarks.datasets import add_sets_option, set_folders
from benchmarks.figure_tables import markdown_table, print_table
from benchmarks.labelled import SEED, LabelledQuery, LabelledSet, read_set
from benchmarks.results import write_figures
from benchmarks.savings import ENDPOINTS
from toolsearch import Catalog, Tool, ToolDefinition, ToolSearch
from toolsearch.bench.conversations import Dialogue, Step, Turn, Use, sample_arguments
from toolsearch.bench.costs import Caching, Player, costs_by_turn, total
from toolsearch.bench.prices import prices_of
from toolsearch.bench.prompts import PartCounter
from toolsearch.bench.ways import Clock, Searched, callable_tools, engine_options
from toolsearch.discovery.search_tool import MAX_QUERY_CHARACTERS
from toolsearch.evaluation.queries import propose_queries
from toolsearch.sessions import anticipation
from toolsearch.tokens import default_counter
from toolsearch.tools.naming import all_namespaced
from toolsearch.wire.capabilities import Endpoint, capabilities_of
from toolsearch_indexes.confidence import RIVALS
from toolsearch_indexes.encoders.opening import BUILT_IN
from toolsearch_indexes.queries import sentences

CHOSEN: Final = anticipation.LEAST_CHANCE
THRESHOLDS: Final = (0.35, 0.45, CHOSEN, 0.65, 0.75)
PLAYED: Final = ("metatool", "bfcl", "sealtools", "livemcp", "azcli")
ALL: Final = "all"
_ASKED, _REQUESTS, _TURNS = 250, 28, 4
_CACHINGS: Final[tuple[Caching, ...]] = ("cold", "warm")
_WORDS: Final = (
    "the",
    "report",
    "says",
    "that",
    "each",
    "item",
    "was",
    "found",
    "and",
    "it",
    "is",
    "due",
    "next",
    "week",
)

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """A labelled set with tools of legal names."""

    name: str
    tools: Mapping[str, ToolDefinition]
    queries: Sequence[LabelledQuery]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    folders = {folder.name: folder for folder in set_folders(options.sets)}
    if not folders:
        print(f"no labelled sets in {options.sets}: folders with tools.jsonl and queries.test.jsonl", file=sys.stderr)
        return 2
    figures: Figures = {"requests": {}, "conversations": []}
    for name in named(parser, options.only, folders, "set") or folders:
        asked = asked_in(read_set(folders[name]))
        print(name, file=sys.stderr)
        figures["requests"][name] = curve(asked)
        if name in PLAYED or options.only:
            figures["conversations"] += conversations(asked)
    figures["conversations"] += of_all(figures["conversations"])
    for name, table in tables(figures).items():
        print_table(*table, title=name, by_first=True)
    if options.json:
        write_figures(options.json, "anticipation", figures, seed=SEED)
    return 0


def asked_in(labelled: LabelledSet, most: int = _ASKED) -> Asked:
    """Of the queries at most *most*, drawn by chance."""
    names = all_namespaced("", [each["id"] for each in labelled.tools])
    tools = {
        names[each["id"]]: ToolDefinition(
            names[each["id"]],
            each["description"],
            {"type": "object", **each["input_schema"]},
            server=each.get("server") or "",
        )
        for each in labelled.tools
    }
    queries = [LabelledQuery(each.text, frozenset(map(names.__getitem__, each.relevant))) for each in labelled.queries]
    return Asked(labelled.name, tools, random.Random(SEED).sample(queries, min(most, len(queries))))


def opened(asked: Asked, clock: Clock) -> ToolSearch:
    tools = callable_tools(map(Tool, asked.tools.values()))
    return ToolSearch(Catalog(tools), encoder=BUILT_IN, reader=None, **engine_options(clock))


# Requests


def curve(asked: Asked) -> Figures:
    """By threshold: the share of needed tools that are there before the model is asked, and of shown ones that are
    needed; None if none is shown.
    """
    with opened(asked, Clock()) as engine:
        found = [(_surest(engine, query.text), query.relevant) for query in asked.queries]
    shares: Figures = {}
    for least in THRESHOLDS:
        shown = [({name for name, chance in by_name.items() if chance >= least}, right) for by_name, right in found]
        there, count = sum(len(names & right) for names, right in shown), sum(len(names) for names, _ in shown)
        needs = sum(len(right) for _, right in shown)
        shares[str(least)] = {"there": round(there / needs, 4), "needed": round(there / count, 4) if count else None}
    return {"asked": len(found), "tools": len(asked.tools), "curve": shares}


def _surest(engine: ToolSearch, said: str) -> dict[str, float]:
    """The best tool for each sentence, with its chance to be the one meant."""
    answers = (engine.search(part[:MAX_QUERY_CHARACTERS], limit=RIVALS) for part in sentences(said) or [said])
    return {found[0].name: anticipation.chance_of_best(found) for found in answers if found}


# Conversations


def conversations(asked: Asked) -> list[Figures]:
    """A row for each API, without anticipation (no threshold), and with it at each threshold."""
    clock = Clock()
    with opened(asked, clock) as engine:
        made = list(_made(asked))
        return [
            {"set": asked.name, "wire": endpoint.wire_format, "model": endpoint.model, "least": least, **of}
            for endpoint in ENDPOINTS
            for least in (None, *THRESHOLDS)
            for of in [asyncio.run(_played(made, engine, endpoint, clock, least))]
        ]


def _made(asked: Asked) -> Iterator[Dialogue]:
    turns = [_turn(query, asked) for query in asked.queries[:_REQUESTS]]
    draw = random.Random(SEED)
    system = f"You help with the work of an office. {' '.join(draw.choice(_WORDS) for _ in range(1_500))}"
    for start in range(0, len(turns), _TURNS):
        yield Dialogue(tuple(turns[start : start + _TURNS]), system)


def _turn(query: LabelledQuery, asked: Asked) -> Turn:
    uses: list[Use] = []
    for name in sorted(query.relevant):
        definition = asked.tools[name]
        own = [each.text for each in propose_queries([definition], 1, seed=SEED)]
        queries = (query.text[:MAX_QUERY_CHARACTERS], *own)
        uses.append(Use(name, sample_arguments(definition.input_schema), " ".join(_WORDS * 10), queries))
    return Turn(query.text, (Step(tuple(uses)),), "That is done as you asked.")


async def _played(
    made: Sequence[Dialogue], engine: ToolSearch, endpoint: Endpoint, clock: Clock, least: float | None
) -> Figures:
    player, mode = Player(endpoint, clock, PartCounter(default_counter())), capabilities_of(endpoint).modes[0]
    played, anticipated, calls = [], 0, 0
    with patch.object(anticipation, "LEAST_CHANCE", CHOSEN if least is None else least):
        for conversation in made:
            way = Searched(engine, endpoint, mode, anticipates=least is not None)
            played.append(await player.play(conversation, way))
            savings = way.savings()
            anticipated, calls = anticipated + savings.anticipated, calls + savings.anticipated_calls
    costs = {
        caching: total(costs_by_turn(each, prices_of(endpoint.model), caching)[-1] for each in played)
        for caching in _CACHINGS
    }
    figures: Figures = {"mode": mode, "turns": costs["cold"].turns, "rounds": costs["cold"].search_rounds}
    figures |= {"failed": costs["cold"].failed, "shown": anticipated, "called": calls}
    return figures | {caching: round(of.dollars, 7) for caching, of in costs.items()}


_SUMS: Final = ("turns", "rounds", "failed", "shown", "called", *_CACHINGS)


def of_all(rows: Sequence[Figures]) -> list[Figures]:
    """The sums over all sets."""
    sums: dict[tuple[Any, ...], Figures] = {}
    for row in rows:
        key = (row["model"], row["least"])
        whole = sums.setdefault(key, {**row, "set": ALL, **dict.fromkeys(_SUMS, 0)})
        whole |= {name: round(whole[name] + row[name], 7) for name in _SUMS}
    return list(sums.values())


# Tables

Table = tuple[list[str], list[list[str]]]


def tables(figures: Figures) -> dict[str, Table]:
    """The curve of each set, what is saved at the chosen threshold, and what is saved over all sets at each."""
    played = figures["conversations"]
    head = ["set", "tools", *(f"{each}" for each in THRESHOLDS)]
    rows = [
        [name, f"{of['tools']:,}", *(_shares(of["curve"][str(least)]) for least in THRESHOLDS)]
        for name, of in figures["requests"].items()
    ]
    return {
        "anticipation": (head, rows),
        "anticipation, saved": (_SAVED_HEAD, [_saved(row, played) for row in played if row["least"] == CHOSEN]),
        "anticipation, thresholds": (
            ["threshold", *_SAVED_HEAD[1:]],
            [[str(row["least"]), *_saved(row, played)[1:]] for row in played if row["set"] == ALL and row["least"]],
        ),
    }


_SAVED_HEAD: Final = [
    *("set", "model", "mode", "search rounds saved", "shown tools that were called"),
    *("requests up to the first call", "cost, cold", "cost, warm"),
]


def _shares(of: Mapping[str, float | None]) -> str:
    needed = of["needed"]
    return f"{of['there']:.0%} / {'-' if needed is None else f'{needed:.0%}'}"


def _saved(row: Figures, played: Sequence[Figures]) -> list[str]:
    same = ("set", "model")
    plain = next(each for each in played if each["least"] is None and all(each[key] == row[key] for key in same))
    return [
        *(row[key] for key in ("set", "model", "mode")),
        f"{1 - row['rounds'] / plain['rounds']:.0%}" if plain["rounds"] else "-",
        f"{row['called'] / row['shown']:.0%}" if row["shown"] else "-",
        f"{1 + plain['rounds'] / row['turns']:.2f} / {1 + row['rounds'] / row['turns']:.2f}",
        *(f"{row[caching] / plain[caching]:.3f}" for caching in _CACHINGS),
    ]


def page_tables(figures: Figures) -> dict[str, list[str]]:
    return {name: markdown_table(*table) for name, table in tables(figures).items()}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.anticipation", description=(__doc__ or "").partition("\n")[0]
    )
    add_sets_option(parser)
    parser.add_argument("--only", default="", help="only these sets, by comma")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
