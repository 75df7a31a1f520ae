"""What the systems are asked: catalogues of real, labelled tools, each with its queries.

Three sizes are cut from the labelled sets together, each within the next larger one. A smaller one is no easier by its
queries, which are the first ones of the same mixed order, but has fewer of them, as each brings its right tools along.

Three sets are asked by themselves, too: LiveMCPBench as toolrank measures it, 94 tasks with the server's name in each
tool's text, and two of short requests to assistants, where sentence models are strong: metatool and clinc's intents.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any

from benchmarks.datasets import REQUESTS
from benchmarks.labelled import LabelledQuery, LabelledSet
from benchmarks.peers.names import legal_names

SIZES = (100, 1_000, 10_000)
QUERIES = 200  # at most; of the union 28 or 29 of each set
LIVEMCP = "livemcp"
NAMES_ONLY = {"clinc"}  # its tools have no descriptions, so that most systems have little to search
BY_THEMSELVES = (LIVEMCP, "metatool", "clinc")
SEED = 0


def catalogues(sets: Sequence[LabelledSet], sizes: Sequence[int] = SIZES) -> list[LabelledSet]:
    """Those that the sets are large enough for, the smallest first."""
    union = as_one([labelled for labelled in sets if labelled.name not in NAMES_ONLY])
    cut = [sized(union, size) for size in sizes if size <= len(union.tools)]
    alone = [LabelledSet(each.name, each.tools, each.queries[:QUERIES]) for each in sets if each.name in BY_THEMSELVES]
    return sorted([*cut, *alone], key=lambda each: len(each.tools))


def with_requests(labelled: LabelledSet) -> LabelledSet:
    """The set with the requests that were written for its tools at the end of their descriptions: only text, for any
    system. Raises OSError if none were written.
    """
    lines = (REQUESTS / f"{labelled.name}.jsonl").read_text(encoding="utf-8").splitlines()
    written = {row["id"]: row["requests"] for row in map(json.loads, lines)}
    tools = [
        {**tool, "description": "\n".join([tool["description"], *written.get(tool["id"], ())])}
        for tool in labelled.tools
    ]
    return LabelledSet(f"{labelled.name} with requests", tools, labelled.queries)


def sized(union: LabelledSet, size: int) -> LabelledSet:
    """*size* tools: the right ones of the first queries that they leave room for, and others by chance."""
    queries: list[LabelledQuery] = []
    right: set[str] = set()
    for query in union.queries[:QUERIES]:
        if len(right | query.relevant) > size:
            break
        queries.append(query)
        right |= query.relevant
    tools = {tool["id"]: tool for tool in union.tools}
    in_any_order = list(tools)
    random.Random(SEED).shuffle(in_any_order)  # of all tools, so that a larger size has those of a smaller one
    others = [tool for tool in in_any_order if tool not in right]
    chosen = sorted(right.union(others[: size - len(right)]))
    return LabelledSet(str(size), [tools[tool] for tool in chosen], queries)


def as_one(sets: Sequence[LabelledSet]) -> LabelledSet:
    """All tools, and all queries, one of each set in turn. An id that an earlier set has gets its set's name."""
    tools: dict[str, Mapping[str, Any]] = {}
    queries: list[list[LabelledQuery]] = []
    for labelled in sets:
        ids = {tool["id"]: _free_id(tool["id"], labelled.name, tools) for tool in labelled.tools}
        tools |= {ids[tool["id"]]: {**tool, "id": ids[tool["id"]]} for tool in labelled.tools}
        queries.append(
            [LabelledQuery(query.text, frozenset(ids[right] for right in query.relevant)) for query in labelled.queries]
        )
    mixed = [query for query in chain.from_iterable(zip_longest(*queries)) if query]
    return LabelledSet("union", list(tools.values()), mixed)


def as_requested(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Tools as a system gets them: a unique name that the MCP allows, made of the id, and the parts by themselves."""
    names = legal_names([tool["id"] for tool in tools])
    return [
        {
            "name": name,
            "local_name": tool["name"],
            "server": tool.get("server", ""),
            "description": tool["description"],
            "input_schema": tool["input_schema"] or {"type": "object", "properties": {}},
        }
        for name, tool in zip(names, tools, strict=True)
    ]


def _free_id(given: str, set_name: str, taken: Mapping[str, object]) -> str:
    return f"{given}@{set_name}" if given in taken else given
