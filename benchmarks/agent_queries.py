"""Short queries as an agent writes them, over real catalogues: how many of the right tools does a search find?

python -m benchmarks.agent_queries [--encoder SPEC] [--reader SPEC] [--json FILE]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.catalogues import real_catalogue
from benchmarks.choosing import named, opened
from benchmarks.datasets import AGENT_QUERIES, MCP_SERVERS
from benchmarks.figure_tables import print_table
from benchmarks.recall import READ, add_encoder_option, add_reader_option, encoders_to_measure, reader_to_measure
from benchmarks.results import write_figures
from toolsearch.catalog.indexing import document_of
from toolsearch.catalog.sources.mcp import McpSource
from toolsearch.errors import SourceError
from toolsearch.evaluation.evaluation import Quality, quality
from toolsearch.tools.definition import ToolDefinition
from toolsearch_indexes.encoders.protocol import Encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Ranking
from toolsearch_indexes.reader import Reader

DEPTH = 10
STYLES = ("words", "synonyms", "need")


_AWS_CORE = ("aws_dynamodb", "aws_ec2", "aws_iam", "aws_lambda", "aws_s3", "aws_sqs")
_GOOGLE_WORKSPACE = ("google_calendar", "google_docs", "google_drive", "google_gmail", "google_sheets")
_MIXED = (
    *("github", "google_gmail", "google_calendar", "google_drive", "aws_ec2", "aws_s3"),
    *("aws_budgets", "aws_ce", "aws_cloudfront", "aws_cloudwatch", "aws_codebuild", "aws_ecs", "aws_kms", "aws_logs"),
    *("aws_polly", "aws_rds", "aws_rekognition", "aws_route53", "aws_secretsmanager", "aws_sesv2", "aws_sns"),
    *("aws_stepfunctions", "aws_textract", "aws_transcribe", "aws_translate"),
    *("google_bigquery", "google_blogger", "google_books", "google_chat", "google_classroom", "google_directory"),
    *("google_fitness", "google_forms", "google_meet", "google_people", "google_pubsub", "google_run"),
    *("google_slides", "google_storage", "google_tagmanager", "google_tasks", "google_vision", "google_walletobjects"),
    "google_youtube",
)
_OF_EACH = 20  # tools of a service in the mixed catalogue


_STRATEGIES: tuple[Ranking, ...] = ("keyword", "semantic", "hybrid")


@dataclass(frozen=True, slots=True)
class AgentQuery:
    """What an agent asks for, and the names of all tools that serve it equally well; at least one."""

    id: str
    text: str
    relevant: frozenset[str]
    style: str  # of STYLES: in the tool's own words, in synonyms, or as the need behind it


@dataclass(frozen=True, slots=True)
class AgentSet:
    """A catalogue of real tools by name, its queries, and how many more there are whose tools it does not have."""

    name: str
    tools: Sequence[ToolDefinition]
    queries: Sequence[AgentQuery]
    skipped: int


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    encoders, reader = encoders_to_measure(options.encoder), reader_to_measure(options.reader)
    results: dict[str, dict[str, dict[str, Quality]]] = {}
    for agent_set in read_agent_sets(parser, options.catalogues):
        if agent_set.skipped:
            print(f"{agent_set.name}: {agent_set.skipped} queries skipped, their tools are gone", file=sys.stderr)
        results[agent_set.name] = {
            name: judged
            for which, encoder in encoders.items()
            for name, judged in measure(agent_set, encoder, which, reader).items()
        }
    _print_table(results)
    if options.json:
        write_figures(options.json, "agent_queries", _plain(results))
    return 0 if results else 2


def read_agent_sets(parser: argparse.ArgumentParser, names: str) -> Iterator[AgentSet]:
    """Those that *names* has, by comma; what cannot be built here is left out with a message."""
    makers = {name: partial(read_agent_set, name) for name in CATALOGUES}
    for _, agent_set in opened(makers, named(parser, names, makers, "catalogue")):
        yield agent_set


def read_agent_set(name: str) -> AgentSet:
    """Build one of CATALOGUES from installed packages and read its queries.

    A right tool that the installed version lacks is passed over, and a query that has no other is skipped and counted.
    Raises SourceError if a package that the tools come from is not installed.
    """
    tools = CATALOGUES[name]()
    queries, skipped = read_queries(AGENT_QUERIES / f"{name}.jsonl", {tool.name for tool in tools})
    return AgentSet(name, tools, queries, skipped)


def read_queries(path: Path, names: Collection[str]) -> tuple[list[AgentQuery], int]:
    """Return the queries in *path* that a tool of *names* serves, and the number of the others."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    queries = [
        AgentQuery(row["id"], row["query"], relevant, row["style"])
        for row in rows
        if (relevant := frozenset(row["relevant"]).intersection(names))
    ]
    return queries, len(rows) - len(queries)


def all_requests() -> list[str]:
    """What is asked of any catalogue, whether or not it has a tool for it."""
    lines = [line for file in sorted(AGENT_QUERIES.glob("*.jsonl")) for line in file.read_text("utf-8").splitlines()]
    return [json.loads(line)["query"] for line in lines]


def measure(
    agent_set: AgentSet, encoder: Encoder, which: str = "", reader: Reader | None = None
) -> dict[str, dict[str, Quality]]:
    """Judge each strategy, and if there is a *reader*, hybrid also with it: by style, then ``all``.

    which  the encoder, as names of searches end; keyword search, which has none, is only measured where it is empty
    """
    index = ToolSearchIndex([document_of(tool) for tool in agent_set.tools], encoder=encoder)
    judged = {
        f"{strategy}{which}": _judge(agent_set.queries, partial(_search, index, strategy))
        for strategy in _STRATEGIES
        if not which or strategy != "keyword"
    }
    if reader:
        index.reader = reader
        judged[f"hybrid{which}{READ}"] = _judge(agent_set.queries, partial(_search, index, "hybrid"))
    return judged


def _judge(queries: Sequence[AgentQuery], search: Callable[[str], list[str]]) -> dict[str, Quality]:
    found = [(query.style, (search(query.text), query.relevant)) for query in queries]
    judged = {style: [ranking for of, ranking in found if of == style] for style in STYLES}
    judged["all"] = [ranking for _, ranking in found]
    return {style: quality(rankings) for style, rankings in judged.items() if rankings}


def _search(index: ToolSearchIndex, strategy: Ranking, text: str) -> list[str]:
    return [hit.name for hit in index.search(text, limit=DEPTH, strategy=strategy)]


def _services(servers: Collection[str]) -> list[ToolDefinition]:
    return [tool for tool in real_catalogue() if tool.server in servers]


def _mixed() -> list[ToolDefinition]:
    """Take _OF_EACH tools of each service, by hash, so that a version with more tools moves few of them."""
    by_hash = sorted(_services(_MIXED), key=lambda tool: hashlib.sha256(tool.name.encode()).digest())
    of_each = ([tool for tool in by_hash if tool.server == server][:_OF_EACH] for server in _MIXED)
    return sorted(chain.from_iterable(of_each), key=lambda tool: tool.name)


def _mcp_servers() -> list[ToolDefinition]:
    """Start five published MCP servers and ask them for their tools."""
    with tempfile.TemporaryDirectory() as folder:
        source = McpSource({"mcpServers": dict(_mcp_configs(folder))})
        try:
            report = source.load()
        finally:
            source.close()
    if report.refused:
        raise SourceError("; ".join(f"{refusal.name}: {refusal.reason}" for refusal in report.refused))
    return sorted(
        (each.definition for each in report.tools if each.definition.kind == "tool"), key=lambda tool: tool.name
    )


def _mcp_configs(folder: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    node = shutil.which("node")
    if node is None or not MCP_SERVERS.is_dir():
        raise SourceError("needs Node.js and the servers; run: npm ci --prefix tests/mcp_servers")
    for name, given in (("everything", ()), ("filesystem", (folder,)), ("memory", ())):
        script = MCP_SERVERS / f"server-{name}" / "dist" / "index.js"
        yield name, {"command": node, "args": [str(script), *given]}
    for name in ("git", "time"):
        yield name, {"command": sys.executable, "args": ["-m", f"mcp_server_{name}"]}


CATALOGUES: Mapping[str, Callable[[], list[ToolDefinition]]] = {
    "aws-core": partial(_services, _AWS_CORE),
    "github": partial(_services, ("github",)),
    "google-workspace": partial(_services, _GOOGLE_WORKSPACE),
    "mcp-servers": _mcp_servers,
    "mixed": _mixed,
}


def _plain(results: Mapping[str, Mapping[str, Mapping[str, Quality]]]) -> dict[str, Any]:
    return {
        name: {
            strategy: {
                style: {measured: round(value, 4) for measured, value in asdict(judged).items()}
                for style, judged in by_style.items()
            }
            for strategy, by_style in by_strategy.items()
        }
        for name, by_strategy in results.items()
    }


def _print_table(results: Mapping[str, Mapping[str, Mapping[str, Quality]]]) -> None:
    columns = ("catalogue", "strategy", "style", "recall@1", "recall@5", "recall@10", "nDCG@10", "MRR@10")
    rows = [
        (name, strategy, style, *(f"{value:.3f}" for value in asdict(judged).values()))
        for name, by_strategy in results.items()
        for strategy, by_style in by_strategy.items()
        for style, judged in by_style.items()
    ]
    print_table(columns, rows, by_first=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agent_queries", description=__doc__.partition("\n")[0])
    parser.add_argument("--catalogues", default=",".join(CATALOGUES), help="only these, by comma")
    add_encoder_option(parser)
    add_reader_option(parser)
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
