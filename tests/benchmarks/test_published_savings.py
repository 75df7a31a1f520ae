"""The published workloads: that ours has what is known of theirs."""

import pytest

from benchmarks import published_savings
from benchmarks.agent_queries import AgentQuery
from benchmarks.labelled import LabelledQuery, LabelledSet
from benchmarks.published import cached_prompts
from benchmarks.published.cached_prompts import catalogues, selection
from benchmarks.published.everyday_tasks import found
from benchmarks.published.five_servers import SERVERS, sized
from benchmarks.published.side_by_side import Workload, cut, text_of
from benchmarks.published.three_servers import prompts, three_server_tools
from benchmarks.published.weather import weather, weather_conversation, weather_tools
from toolsearch.bench.costs import Played
from toolsearch.bench.prompts import BilledPrompt
from toolsearch.errors import SourceError
from toolsearch.tokens import default_counter
from toolsearch.tools.definition import ToolDefinition


def test_the_weather_is_asked_for_among_28_tools() -> None:
    names = {tool.name for tool in weather_tools()}
    needed = {use.name for step in weather_conversation().turns[0].steps for use in step.calls}

    assert len(names) == 28
    assert needed == {"weather", "clothing", "currentTime"} < names


def test_the_weather_takes_as_many_requests_as_were_published() -> None:
    here = {line.what: line.here for line in weather().lines}

    assert here["gpt-5-mini: every definition, requests"] == "3"
    assert here["gpt-5-mini: search, append, requests"] == "5"
    assert here["claude-sonnet-4-5: search, deferred, requests"] == "5"
    assert here["gemini-3-pro-preview: saved"] == ""


def test_five_servers_have_58_tools_and_55_000_tokens() -> None:
    assert tuple(map(sum, zip(*SERVERS.values(), strict=True))) == (58, 55_000)


def test_tools_of_a_wanted_length_are_those_nearest_to_it() -> None:
    tokens = {"a": 20, "b": 70, "c": 80, "d": 140}

    found = sized([ToolDefinition(name) for name in tokens], tokens, count=2, wanted=150)

    assert [tool.name for tool in found] == ["b", "c"]


def test_three_servers_have_the_tools_that_the_prompts_need() -> None:
    needed = [use.name for each in prompts().values() for step in each.turns[0].steps for use in step.calls]
    servers = ("github", "aws_cloudwatch", "google_drive")
    others = [ToolDefinition(f"{server}__other_{n}", server=server) for server in servers for n in range(60)]
    catalogue = [*others, *(ToolDefinition(name, server=name.partition("__")[0]) for name in dict.fromkeys(needed))]

    names = [tool.name for tool in three_server_tools(catalogue)]

    assert len(names) == len(set(names)) == 114
    assert set(needed) <= set(names)
    assert [len(each.turns[0].steps) + 1 for each in prompts().values()] == [1, 2, 5, 2]


def test_what_is_found_is_told_as_a_share_and_a_count() -> None:
    queries = [AgentQuery("1", "", frozenset({"a", "b"}), "words"), AgentQuery("2", "", frozenset({"c"}), "words")]

    assert found(queries, [["x", "b"], ["x"]]) == "50% (1/2)"


def test_small_catalogues_have_the_published_sizes_and_requests() -> None:
    tools = [{"id": f"t{n}", "description": "", "input_schema": {}} for n in range(200)]
    queries = [LabelledQuery(f"do {n}", frozenset({f"t{n}"})) for n in range(150)]
    drawn = catalogues(LabelledSet("s", tools, [*queries, LabelledQuery("both", frozenset({"t1", "t2"}))]))

    assert [len(listed) for listed, _ in drawn] == [40, 54, 95, 101]
    assert sum(len(asked) for _, asked in drawn) == 290
    for listed, asked in drawn:
        assert {name for query in asked for name in query.relevant} <= {tool.name for tool in listed}


def test_a_choice_ends_before_the_answer() -> None:
    first, second = BilledPrompt((), 0, 0.0, 0), BilledPrompt((), 0, 1.0, 0)

    assert selection(Played((first, second), ((), ()))).prompts == (first,)
    assert selection(Played((first,), ((),))).prompts == (first,)


def test_without_the_labelled_sets_a_workload_is_left_out_with_a_message(tmp_path, monkeypatch, capsys) -> None:
    with pytest.raises(SourceError, match="no labelled set sealtools"):
        cached_prompts.cached_prompts(tmp_path)

    def missing() -> Workload:
        raise SourceError("there is none")

    monkeypatch.setattr(published_savings, "WORKLOADS", {"cached": missing})
    assert published_savings.main([]) == 2
    assert "cached is left out" in capsys.readouterr().err


def test_a_share_that_is_lost_is_negative() -> None:
    assert (cut(25, 100), cut(150, 100)) == ("75%", "-50%")


def test_a_text_has_about_as_many_tokens_as_it_should() -> None:
    assert default_counter().count(text_of(2_000)) == pytest.approx(2_000, rel=0.1)
