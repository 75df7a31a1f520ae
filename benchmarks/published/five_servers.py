"""58 tools of five servers, about 55,000 tokens (Anthropic)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from benchmarks.catalogues import evenly, real_catalogue
from benchmarks.published.side_by_side import (
    Line,
    Workload,
    cut,
    definition_tokens,
    largest,
    money_lines,
    paragraphs,
    played_in,
    searching,
    text_of,
    tokens_of,
)
from toolsearch import ToolDefinition
from toolsearch.bench.conversations import Dialogue, Step, Turn, Use, sample_arguments
from toolsearch.bench.ways import EVERY
from toolsearch.wire.capabilities import Endpoint

SERVERS = {  # tools, and the tokens of their definitions
    "GitHub": (35, 26_000),
    "Slack": (11, 21_000),
    "Sentry": (5, 3_000),
    "Grafana": (5, 3_000),
    "Splunk": (2, 2_000),
}
_ENDPOINT = Endpoint("anthropic", "claude-opus-4-5")
_OTHERS = 4_000  # of the real tools that are not GitHub's: enough for definitions of any length, and counted in seconds


_DIFFERENCES = """
Published: how many tools each server has, and how many tokens they take. The definitions are not. Here they are real
tools of GitHub, AWS and Google whose lengths come to about the same sums.

The 77,000 and 8,700 tokens are told of more than 50 tools that take 72,000 tokens, not of these 58. What is counted
there is the context when work begins, not what all requests of a task cost.

The task is not described. Here it is one question that takes one tool.

The rise in accuracy (Opus 4 from 49 to 74%, Opus 4.5 from 79.5 to 88.1%) takes a model and is not measured.
"""


def five_servers() -> Workload:
    return Workload(
        "58 tools of five servers, about 55,000 tokens (Anthropic)",
        ("https://www.anthropic.com/engineering/advanced-tool-use",),
        list(_lines(five_server_tools(real_catalogue()))),
        paragraphs(_DIFFERENCES),
    )


def _lines(tools: Sequence[ToolDefinition]) -> Iterator[Line]:
    by_way = played_in(tools, [_question(tools[0])], _ENDPOINT)
    every = by_way[EVERY]
    yield Line("tools", "58", f"{len(tools)}")
    yield Line("tokens of the definitions", "about 55,000", f"{definition_tokens(tools, 'anthropic'):,}")
    yield Line("every definition: tokens of the longest request", "77,000", f"{largest(every):,}")
    for way in searching(by_way):
        ours = by_way[way]
        yield Line(f"search, {way}: tokens of the longest request", "8,700", f"{largest(ours):,}")
        yield Line(f"search, {way}: saved in the longest request", "85 to 95%", cut(largest(ours), largest(every)))
        yield Line(f"search, {way}: saved in all requests", "", cut(tokens_of(ours), tokens_of(every)))
    yield from money_lines(by_way, _ENDPOINT.model)


def five_server_tools(catalogue: Iterable[ToolDefinition]) -> list[ToolDefinition]:
    """GitHub's first; in place of the other servers' tools, which are not published, real ones of the same length."""
    catalogue = list(catalogue)
    github = [tool for tool in catalogue if tool.server == "github"]
    others = evenly([tool for tool in catalogue if tool.server != "github"], _OTHERS)
    tokens = {tool.name: definition_tokens([tool], "anthropic") for tool in (*github, *others)}
    chosen: dict[str, ToolDefinition] = {}
    for server, (count, wanted) in SERVERS.items():
        left = [tool for tool in (github if server == "GitHub" else others) if tool.name not in chosen]
        chosen |= {tool.name: tool for tool in sized(left, tokens, count, wanted)}
    return list(chosen.values())


def sized(
    candidates: Iterable[ToolDefinition], tokens: Mapping[str, int], count: int, wanted: int
) -> list[ToolDefinition]:
    """*count* of *candidates*, those whose *tokens* are nearest to the mean of the *wanted* ones; ties by name."""
    return sorted(candidates, key=lambda tool: (abs(tokens[tool.name] - wanted / count), tool.name))[:count]


def _question(tool: ToolDefinition) -> Dialogue:
    query = tool.description.partition(".")[0].lower()
    use = Use(tool.name, sample_arguments(tool.input_schema), text_of(200), (query,))
    return Dialogue((Turn(f"Please {query}.", (Step((use,)),), text_of(60)),))
