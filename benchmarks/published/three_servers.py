"""114 tools of GitHub, Grafana and Notion (Stacklok)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from benchmarks.catalogues import evenly, real_catalogue
from benchmarks.published.side_by_side import (
    Line,
    Workload,
    cut,
    definition_tokens,
    money_lines,
    paragraphs,
    played_in,
    searching,
    text_of,
    tokens_of,
)
from toolsearch import ToolDefinition
from toolsearch.bench.conversations import Dialogue, Step, Turn, Use
from toolsearch.bench.ways import EVERY
from toolsearch.wire.capabilities import Endpoint

_PUBLISHED = {  # tokens of all requests, without search and with it
    "hello": (46_800, 11_200),
    "list the 10 latest issues": (102_000, 32_400),
    "summarize meeting notes": (240_600, 86_800),
    "search dashboards": (93_600, 13_700),
}
_ENDPOINT = Endpoint("anthropic", "claude-sonnet-4-5")
_GROUPS = (("github",), ("aws_cloudwatch", "aws_grafana"), ("google_docs", "google_drive"))
_OF_EACH = 38
_OWN_TOKENS = 10_500  # of the client's system text: 11,200 for "hello", less three tools


_DIFFERENCES = """
Published: the prompts, and the tokens of all requests, input and output. Not published: the definitions, the client
and its system text, the model, the number of requests, and the results.

In their place: 38 real tools each of GitHub, of AWS's dashboards (for Grafana) and of Google's documents (for
Notion); a system text of 10,500 tokens, since saying hello takes 11,200 with three tools; and as many requests, with
results as long, as the sums come to with every definition: 1, 2, 5 and 2.

13,700 tokens for finding dashboards are little more than one request there. Three are made here: search, call,
answer.

There 11 tools are shown; here what a search finds within its budget. Prices are those of claude-sonnet-4-5.
"""


def three_servers() -> Workload:
    return Workload(
        "114 tools of three servers (Stacklok)",
        (
            "https://stacklok.com/blog/mcp-optimizer-is-now-built-into-the-stacklok-platform",
            "https://dev.to/stacklok/cut-token-waste-from-your-ai-workflow-with-the-toolhive-mcp-optimizer-3oo6",
        ),
        list(_lines(three_server_tools(real_catalogue()))),
        paragraphs(_DIFFERENCES),
    )


def _lines(tools: Sequence[ToolDefinition]) -> Iterator[Line]:
    yield Line("tools", "114", f"{len(tools)}")
    tokens = definition_tokens(tools, "anthropic")
    yield Line("tokens of the definitions", "about 36,000 (46,800 less 10,800)", f"{tokens:,}")
    for name, conversation in prompts().items():
        without, with_search = _PUBLISHED[name]
        by_way = played_in(tools, [conversation], _ENDPOINT)
        every = by_way[EVERY]
        ours = {way: tokens_of(by_way[way]) for way in searching(by_way)}
        best = min(ours, key=ours.__getitem__)
        yield Line(f"{name}: every definition, tokens", f"{without:,}", f"{tokens_of(every):,}")
        yield Line(f"{name}: search, {best}, tokens", f"{with_search:,}", f"{ours[best]:,}")
        yield Line(f"{name}: saved", cut(with_search, without), cut(ours[best], tokens_of(every)))
        yield Line(f"{name}: tools that were not found", "", f"{len(by_way[best][0].missed)}")
        yield from money_lines(by_way, _ENDPOINT.model, f"{name}: ")


def three_server_tools(catalogue: Iterable[ToolDefinition]) -> list[ToolDefinition]:
    """As many of each group, with those that the prompts need."""
    catalogue = list(catalogue)
    needed = {
        use.name for each in prompts().values() for turn in each.turns for step in turn.steps for use in step.calls
    }
    chosen: list[ToolDefinition] = []
    for servers in _GROUPS:
        tools = [tool for tool in catalogue if tool.server in servers]
        first = [tool for tool in tools if tool.name in needed]
        chosen += first + evenly([tool for tool in tools if tool.name not in needed], _OF_EACH - len(first))
    return chosen


def prompts() -> dict[str, Dialogue]:
    issues = Use(
        "github__issues_list-for-repo",
        {"owner": "acme", "repo": "shop", "per_page": 10},
        text_of(8_400),
        ("list issues of a repository",),
    )
    find = Use("google_drive__files_list", {"q": "name contains 'meeting'"}, text_of(500), ("find files by name",))
    read = Use("google_docs__documents_get", {"documentId": "1a2b3c"}, text_of(2_000), ("read a document",))
    boards = Use("aws_cloudwatch__ListDashboards", {"DashboardNamePrefix": "rds"}, text_of(300), ("list dashboards",))
    return {
        "hello": _asked("hello"),
        "list the 10 latest issues": _asked("List the 10 most recent issues of my GitHub repo", issues),
        "summarize meeting notes": _asked("Summarize my meeting notes of October 19, 2025", find, read, read, read),
        "search dashboards": _asked("Search dashboards that have to do with RDS", boards),
    }


def _asked(user: str, *uses: Use) -> Dialogue:
    return Dialogue((Turn(user, tuple(Step((use,)) for use in uses), text_of(150)),), text_of(_OWN_TOKENS))
