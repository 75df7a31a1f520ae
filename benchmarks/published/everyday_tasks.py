"""4,027 tools and 25 everyday tasks (Arcade)."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from benchmarks.agent_queries import AgentQuery
from benchmarks.baselines import RankBm25, plain_words, with_parameters
from benchmarks.catalogues import evenly, real_catalogue
from benchmarks.labelled_work import labelled_conversations, queries_for
from benchmarks.published.side_by_side import (
    SEED,
    Line,
    Workload,
    costs_of,
    definition_tokens,
    paragraphs,
    played_in,
    searching,
    tokens_of,
)
from toolsearch import ToolDefinition
from toolsearch.bench.conversations import Dialogue, Preset, Step
from toolsearch.bench.ways import EVERY, FOUND_BEFORE
from toolsearch.catalog.indexing import document_of
from toolsearch.wire.capabilities import Endpoint
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Ranking

TOOLS, TASKS = 4_027, 25
_FIRST = 5  # hits: as many as Anthropic's searches give by default
_ENDPOINT = Endpoint("anthropic", "claude-opus-4-5")
_RANKINGS: tuple[Ranking, ...] = ("hybrid", "keyword", "semantic")


_DIFFERENCES = """
Published: the number of tools and tasks, some tasks, some tools, and whether the right tool was among those that
Anthropic's searches gave for what a model asked them. Arcade's definitions take an account there.

In their place: 4,027 real tools of AWS, Google and GitHub, spread evenly, and 25 labelled queries for GitHub and
Google's mail, calendar, documents, drive and sheets, drawn at random. These are an agent's words, and about less
well-known tools than one that sends an email.

Anthropic's searches cannot be run here. rank-bm25 over names, descriptions and parameters, on words split at spaces,
stands beside them.
"""


def everyday_tasks() -> Workload:
    return Workload(
        "4,027 tools, 25 everyday tasks (Arcade)",
        (
            "https://blog.arcade.dev/anthropic-tool-search-4000-tools-test",
            "https://gist.github.com/EricGustin/8075a6a038627769e99e2524b53224c0",
        ),
        list(_lines(*tools_and_tasks(real_catalogue()))),
        paragraphs(_DIFFERENCES),
    )


def _lines(tools: Sequence[ToolDefinition], queries: Sequence[AgentQuery]) -> Iterator[Line]:
    index = ToolSearchIndex([document_of(tool) for tool in tools], encoder=open_encoder(BUILT_IN))
    yield Line("tools", f"{TOOLS:,}", f"{len(tools):,}")
    for ranking in _RANKINGS:
        hits = [[hit.name for hit in index.search(each.text, limit=_FIRST, strategy=ranking)] for each in queries]
        yield Line(f"found among the first {_FIRST}: {ranking}", "", found(queries, hits))
    schemas = [
        {"name": each.name, "description": each.description, "input_schema": each.input_schema} for each in tools
    ]
    bm25 = RankBm25([tool.name for tool in tools], list(map(with_parameters, schemas)), plain_words)
    here = found(queries, [bm25.search(each.text, _FIRST) for each in queries])
    yield Line("found: BM25 (Anthropic's; rank-bm25 here)", "64% (16/25)", here)
    yield Line("found: regex (Anthropic's)", "56% (14/25)", "")
    work = labelled_conversations(tools, queries, index, Preset(turns=1, needs=1), len(queries))
    by_way = played_in(tools, [_asked_once(each) for each in work], _ENDPOINT, without=[EVERY])
    for way in (FOUND_BEFORE, *searching(by_way)):
        costs = costs_of(by_way[way], _ENDPOINT.model, "cold")
        yield Line(f"{way}: tasks whose tool the model can call", "", f"{costs.turns - costs.failed} of {costs.turns}")
        yield Line(f"{way}: tokens a task", "", f"{tokens_of(by_way[way]) / costs.turns:,.0f}")
        yield Line(f"{way}: $ for 1,000 tasks, caching cold", "", f"{1_000 * costs.dollars / costs.turns:.2f}")
    yield Line("tokens of the definitions", "", f"{definition_tokens(tools, 'anthropic'):,}")


def tools_and_tasks(catalogue: Iterable[ToolDefinition]) -> tuple[list[ToolDefinition], list[AgentQuery]]:
    """The tasks are always the same; their right tools are among the tools."""
    catalogue = list(catalogue)
    queries = queries_for(("github", "google-workspace"), (tool.name for tool in catalogue))
    drawn = random.Random(SEED).sample(queries, min(TASKS, len(queries)))
    needed = {name for query in drawn for name in query.relevant}
    first = [tool for tool in catalogue if tool.name in needed]
    return first + evenly([tool for tool in catalogue if tool.name not in needed], TOOLS - len(first)), drawn


def found(queries: Sequence[AgentQuery], hits: Sequence[Collection[str]]) -> str:
    right = sum(not query.relevant.isdisjoint(names) for query, names in zip(queries, hits, strict=True))
    return f"{right / len(queries):.0%} ({right}/{len(queries)})"


def _asked_once(conversation: Dialogue) -> Dialogue:
    """The model does not search again where its first query finds nothing."""
    (turn,) = conversation.turns
    steps = tuple(Step(tuple(replace(use, queries=use.queries[:1]) for use in step.calls)) for step in turn.steps)
    return Dialogue((replace(turn, steps=steps),))
