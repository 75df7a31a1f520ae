"""The search tool as models are shown it, and what it takes."""

import json

import pytest

from toolsearch.discovery.search_tool import AskedSearch, SearchArguments, search_tool_definition
from toolsearch.errors import BadQueryError, BadSettingError
from toolsearch.sessions.options import SessionOptions
from toolsearch.tokens import count_json, default_counter
from toolsearch.wire.formats import TOOL_FORMATS, render_definition


@pytest.mark.parametrize("tool_format", TOOL_FORMATS)
def test_the_definition_costs_at_most_200_tokens(tool_format: str) -> None:
    definition = render_definition(search_tool_definition(), tool_format)

    assert count_json(definition, default_counter()) <= 200


def test_the_definition_asks_for_a_query_per_capability_and_for_all_of_them_in_one_call() -> None:
    definition = search_tool_definition(max_limit=20)
    properties = definition.input_schema["properties"]

    assert "ONE short query per capability" in definition.description
    assert "in one call" in definition.description
    assert "select:name1,name2" in properties["queries"]["description"]
    assert "/pattern/" in properties["queries"]["description"]
    assert definition.input_schema["required"] == ["queries"]
    assert list(properties) == ["queries", "limit", "server"]
    assert properties["limit"]["description"] == "Tools per query, 1-20, default 5."


def test_an_operators_hint_comes_last_in_the_description() -> None:
    plain, hinted = search_tool_definition(), search_tool_definition(hint="Our tools book trains.")

    assert hinted.description == f"{plain.description} Our tools book trains."
    assert hinted.input_schema == plain.input_schema


def test_the_definition_is_the_same_bytes_each_time() -> None:
    first, second = (json.dumps(render_definition(search_tool_definition(), "openai")) for _ in range(2))

    assert first == second


# What it takes


def queries_of(arguments: dict) -> list[str]:
    return [search.query for search in SearchArguments.parse(arguments).searches]


def test_a_query_alone_gets_the_defaults() -> None:
    asked = SearchArguments((AskedSearch("list branches", None, 5, None),), "")

    assert SearchArguments.parse({"query": "  list branches\n"}) == asked
    assert SearchArguments.parse({"queries": ["list branches"]}) == asked


def test_strategy_limit_and_server_hold_for_each_query_and_null_is_left_out() -> None:
    full = {"queries": ["q", "r"], "strategy": "regex", "limit": 3.0, "server": "git"}
    empty = {"queries": ["q"], "query": None, "strategy": None, "limit": None, "server": None}

    assert SearchArguments.parse(full).searches == (
        AskedSearch("q", "regex", 3, "git"),
        AskedSearch("r", "regex", 3, "git"),
    )
    assert SearchArguments.parse(empty).searches == (AskedSearch("q"),)


@pytest.mark.parametrize(
    ("arguments", "queries"),
    [
        ({"queries": ["send mail", " send mail\n", " ", "list branches"]}, ["send mail", "list branches"]),
        ({"queries": "send mail"}, ["send mail"]),
        ({"queries": '["send mail", "list branches"]'}, ["send mail", "list branches"]),
        ({"queries": "[send mail"}, ["[send mail"]),
        ({"queries": ["/two  spaces/"]}, ["/two  spaces/"]),
        ({"queries": ["send mail"], "query": "list branches"}, ["send mail", "list branches"]),
        ({"queries": [], "query": "list branches"}, ["list branches"]),
    ],
)
def test_queries_are_read_however_they_are_sent_and_each_once(arguments: dict, queries: list[str]) -> None:
    assert queries_of(arguments) == queries


def test_one_call_takes_eight_queries_and_says_so_for_more() -> None:
    assert len(queries_of({"queries": [f"q{i}" for i in range(8)]})) == 8
    with pytest.raises(BadQueryError, match=r"these are 9 queries.*at most 8"):
        SearchArguments.parse({"queries": [f"q{i}" for i in range(9)]})


def test_asking_for_the_servers_is_no_search() -> None:
    asked = SearchArguments.parse({"queries": ["servers:", "send mail"]})

    assert asked.lists_servers == ""
    assert [search.query for search in asked.searches] == ["send mail"]
    assert SearchArguments.parse({"queries": ["servers"]}).lists_servers is None
    assert SearchArguments.parse({"queries": ["servers: git"]}).lists_servers == "git"
    assert SearchArguments.parse({"server": "*"}) == SearchArguments((), lists_servers="")


@pytest.mark.parametrize(("text", "limit"), [("3", 3), (" 7\n", 7), ("-2", 1), ("", 5)])
def test_a_limit_may_be_text_since_some_clients_send_nothing_else(text: str, limit: int) -> None:
    assert SearchArguments.parse({"query": "q", "limit": text}).searches[0].limit == limit


@pytest.mark.parametrize("word", ["any", "all", "All", " ANY ", "*", ""])
def test_any_server_is_none_in_particular(word: str) -> None:
    """A strict client has the model fill in every argument, also one for which it has no wish."""
    asked = SearchArguments.parse({"query": "q", "server": word}, servers=["git", "time"])

    assert asked.searches[0].server is None


def test_a_server_that_is_really_named_all_can_be_asked_for() -> None:
    asked = SearchArguments.parse({"query": "q", "server": "all"}, servers=["all", "git"])

    assert asked.searches[0].server == "all"


@pytest.mark.parametrize(("asked", "used"), [(0, 1), (-7, 1), (10, 10), (11, 10), (10**30, 10)])
def test_a_limit_out_of_range_is_clamped_and_the_model_is_told_once(asked: int, used: int) -> None:
    arguments = SearchArguments.parse({"queries": ["q", "r"], "limit": asked})

    assert [search.limit for search in arguments.searches] == [used, used]
    assert arguments.note == ("" if asked == used else f"The limit {asked} is out of range; {used} was used (1-10).")


def test_selecting_by_name_asks_for_as_many_tools_as_are_named() -> None:
    def limits(*queries: str, **arguments: int) -> list[int]:
        asked = SearchArguments.parse({"queries": queries, **arguments})
        return [search.limit for search in asked.searches]

    assert limits("select:a,b,c,d,e,f,g", "send mail") == [7, 5]
    assert limits("select:a,b", limit=1) == [1]
    twelve = SearchArguments.parse({"query": "select:" + ",".join("abcdefghijkl")})
    assert "12 is out of range; 10" in twelve.note


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, "queries must be texts of a few words each"),
        ({"query": " \n"}, "queries must be texts"),
        ({"queries": []}, "queries must be texts"),
        ({"queries": ["a", 3]}, "queries must be texts"),
        ({"queries": {"a": "b"}}, "queries must be texts"),
        ({"query": ["a", "b"]}, "queries must be texts"),
        ({"query": "x" * 1_001}, "has 1001 characters; at most 1000"),
        ({"queries": ["a", "x" * 1_001]}, "has 1001 characters; at most 1000"),
        ({"queries": "[" * 200_000}, "has 200000 characters; at most 1000"),
        ({"query": "q", "limit": "many"}, "limit must be a whole number"),
        ({"query": "q", "limit": "2.5"}, "limit must be a whole number"),
        ({"query": "q", "limit": "9" * 5_000}, "limit must be a whole number"),
        ({"query": "q", "limit": True}, "limit must be a whole number"),
        ({"query": "q", "limit": 2.5}, "limit must be a whole number"),
        ({"query": "q", "limit": float("inf")}, "limit must be a whole number"),
        ({"query": "q", "strategy": "bm25"}, "one of hybrid, keyword, semantic, regex"),
        ({"query": "q", "strategy": []}, "one of hybrid, keyword, semantic, regex"),
        ({"query": "q", "server": 3}, "server must be the name of one server"),
        ({"query": "q", "maxResults": 3}, "unknown argument 'maxResults'; use queries, limit and server"),
    ],
)
def test_arguments_that_cannot_be_used_say_what_can(arguments: dict, complaint: str) -> None:
    with pytest.raises(BadQueryError, match=complaint):
        SearchArguments.parse(arguments)


def test_an_operators_hint_is_bounded_since_it_is_sent_with_every_request() -> None:
    assert SessionOptions(search_hint="x" * 400).search_hint
    with pytest.raises(BadSettingError, match="search_hint has 401 characters; at most 400"):
        SessionOptions(search_hint="x" * 401)
