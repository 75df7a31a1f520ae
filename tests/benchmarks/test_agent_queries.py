"""Queries as agents write them: what their files hold, and what is measured with them."""

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import agent_queries
from benchmarks.agent_queries import CATALOGUES, STYLES, AgentQuery, AgentSet, measure, read_agent_set, read_queries
from benchmarks.catalogues import real_catalogue
from tests.kit.lines import has_line
from toolsearch.errors import SourceError
from toolsearch.tools.definition import ToolDefinition
from toolsearch_indexes.encoders.static import HashingEncoder

FILES = Path(agent_queries.__file__).parent / "agent_queries"


def rows(name: str) -> list[dict]:
    return [json.loads(line) for line in (FILES / f"{name}.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("name", CATALOGUES)
def test_each_query_is_short_has_a_right_tool_and_is_there_once(name):
    queries = rows(name)

    assert all(2 <= len(row["query"].split()) <= 8 and row["relevant"] for row in queries)
    assert max(Counter(row["query"] for row in queries).values()) == 1
    assert max(Counter(row["id"] for row in queries).values()) == 1


@pytest.mark.parametrize("name", CATALOGUES)
def test_each_style_has_at_least_a_quarter_of_the_queries(name):
    styles = Counter(row["style"] for row in rows(name))

    assert set(styles) == set(STYLES)
    assert min(styles.values()) * 4 >= styles.total()


@pytest.fixture(scope="module")
def real_tools() -> list[ToolDefinition]:
    try:
        return real_catalogue()
    except SourceError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", ["aws-core", "github", "google-workspace", "mixed"])
def test_the_installed_packages_have_the_tools_of_nearly_all_queries(name, real_tools, monkeypatch):
    monkeypatch.setattr(agent_queries, "real_catalogue", lambda: real_tools)

    agent_set = read_agent_set(name)

    assert agent_set.skipped * 20 <= len(agent_set.queries)


def test_the_published_mcp_servers_have_the_tools_of_nearly_all_queries():
    try:
        agent_set = read_agent_set("mcp-servers")
    except SourceError as error:
        pytest.skip(str(error))

    assert agent_set.skipped * 20 <= len(agent_set.queries)


def test_a_query_none_of_whose_tools_are_there_is_skipped_and_a_missing_alternative_is_passed_over(tmp_path):
    path = tmp_path / "set.jsonl"
    given = [
        {"id": "1", "query": "turn off instance", "relevant": ["stop", "halt"], "style": "need"},
        {"id": "2", "query": "old thing", "relevant": ["gone"], "style": "words"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in given))

    assert read_queries(path, {"stop", "start"}) == (
        [AgentQuery("1", "turn off instance", frozenset({"stop"}), "need")],
        1,
    )


def test_quality_is_told_by_style_and_over_all():
    tools = [ToolDefinition("stop_instance"), ToolDefinition("send_mail")]
    queries = [
        AgentQuery("1", "stop instance", frozenset({"stop_instance"}), "words"),
        AgentQuery("2", "unrelated request", frozenset({"send_mail"}), "need"),
    ]

    judged = measure(AgentSet("two", tools, queries, 0), HashingEncoder(16))["keyword"]

    assert {style: quality.recall_1 for style, quality in judged.items()} == {"words": 1.0, "need": 0.0, "all": 0.5}


def test_a_reader_adds_a_second_hybrid_search_and_keyword_is_measured_with_one_encoder_only(no_tool_serves):
    agent_set = AgentSet(
        "one",
        [ToolDefinition("stop_instance")],
        [AgentQuery("1", "stop an instance", frozenset({"stop_instance"}), "words")],
        0,
    )

    judged = measure(agent_set, HashingEncoder(16), " (small)", no_tool_serves)

    assert {search: by_style["all"].recall_1 for search, by_style in judged.items()} == {
        "semantic (small)": 1.0,
        "hybrid (small)": 1.0,
        "hybrid (small), read": 0.0,
    }
    assert list(measure(agent_set, HashingEncoder(16))) == ["keyword", "semantic", "hybrid"]


def test_a_catalogue_that_cannot_be_built_is_left_out_and_said(monkeypatch, capsys):
    def missing() -> list[ToolDefinition]:
        raise SourceError("the package botocore is not installed")

    monkeypatch.setattr(agent_queries, "CATALOGUES", {"aws-core": missing})

    assert agent_queries.main(["--catalogues", "aws-core"]) == 2
    assert has_line(capsys.readouterr().err, "aws-core is left out", "botocore")
