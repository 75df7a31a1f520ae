"""What an engine and its sessions tell OpenTelemetry, worked through one conversation."""

from __future__ import annotations

import logging

import pytest

from tests.kit.telemetry_recorder import Recorder
from toolsearch.catalog.catalog import Catalog
from toolsearch.discovery.pass_through import PassThrough
from toolsearch.engine import ToolSearch
from toolsearch.errors import BadQueryError, BadSettingError
from toolsearch.sessions.options import SessionOptions
from toolsearch.tokens import HeuristicTokenCounter, definition_tokens
from toolsearch.tools.definition import Tool, ToolDefinition

TOOLS = {
    "get_weather": "Weather of a city",
    "send_mail": "Send a letter by mail",
    "list_files": "List files of a folder",
}


class Echo:
    async def call(self, _arguments, _context):
        return "done"


def open_engine(recorder, **options):
    catalog = Catalog(Tool(ToolDefinition(name, description=text), callback=Echo()) for name, text in TOOLS.items())
    return ToolSearch(
        catalog,
        encoder=None,
        options=SessionOptions(pass_through=PassThrough(max_tools=0), **options),
        counter=HeuristicTokenCounter(),
        telemetry=recorder.telemetry,
    )


def test_a_search_is_told_with_the_strategy_that_ranked():
    recorder = Recorder()
    with open_engine(recorder) as engine:
        engine.search("weather", limit=2)
        engine.search("quux", limit=2)

    first, second = recorder.spans
    assert first.attributes["toolsearch.strategy"] == "keyword"  # what "auto" is without an encoder
    assert (first.attributes["toolsearch.hits"], second.attributes["toolsearch.hits"]) == (1, 0)
    assert recorder.points("toolsearch.searches.empty") == [({"toolsearch.strategy": "keyword"}, 1)]


def test_a_query_that_cannot_be_used_marks_its_span():
    recorder = Recorder()
    with open_engine(recorder) as engine, pytest.raises(BadQueryError):
        engine.search("/(/")

    assert recorder.span("search_tools").attributes["error.type"] == "bad_pattern"


async def test_tools_that_are_found_and_then_called_are_counted_once_each():
    recorder = Recorder()
    with open_engine(recorder) as engine:
        session = engine.session("s")
        await session.call("toolSearchTool", {"query": "weather"})
        await session.call("toolSearchTool", {"query": "select:get_weather,send_mail"})
        await session.call("get_weather")
        await session.call("get_weather")
        await session.call("list_files")  # nobody searched for it

    assert recorder.points("toolsearch.tools.discovered") == [({}, 2)]
    assert recorder.points("toolsearch.tools.used") == [({}, 1)]


async def test_searches_that_no_model_asked_for_are_marked_and_none_counts_as_empty():
    recorder = Recorder()
    with open_engine(recorder) as engine:
        session = engine.session("s")
        session.begin_turn("Send a letter by mail.", "openai-responses", model="gpt-5.6")
        session.begin_turn("quux")
        await session.call("toolSearchTool", {"query": "weather"})
        for name in ("send_mail", "get_weather"):
            await session.call(name)

    plain, marked = {"toolsearch.strategy": "keyword"}, {"toolsearch.anticipated": True}
    assert recorder.points("toolsearch.searches") == [(plain | marked, 2), (plain, 1)]
    assert recorder.points("toolsearch.searches.empty") == []
    assert recorder.points("toolsearch.tools.discovered") == [(marked, 1), ({}, 1)]
    assert recorder.points("toolsearch.tools.used") == [(marked, 1), ({}, 1)]
    searches = [span.attributes for span in recorder.spans if span.name == "search_tools"]
    assert ["toolsearch.anticipated" in each for each in searches] == [True, True, False]
    assert ["toolsearch.abstained" in each for each in searches] == [False, False, True]


async def test_tokens_saved_are_what_all_definitions_would_have_cost_less_what_was_sent_and_written():
    recorder = Recorder()
    with open_engine(recorder) as engine:
        session = engine.session("s")
        everything = sum(
            definition_tokens(tool, engine.counter) for tool in engine.view(session.state.reach).definitions
        )
        session.tools()
        await session.call("toolSearchTool", {"query": "weather"})
        session.tools()
        await session.call("get_weather")
        savings = session.savings()

    assert savings.all_tools_tokens == everything  # of two requests one was for the search alone
    assert recorder.points("toolsearch.tokens.sent") == [({}, savings.sent_tokens)]
    assert recorder.points("toolsearch.tokens.saved") == [({}, savings.saved_tokens)]


def test_what_scores_less_than_the_least_score_is_not_found():
    recorder = Recorder()
    with open_engine(recorder) as engine:
        best, *_ = engine.search("send mail")
    with open_engine(recorder, min_score=best.score) as engine:
        assert [reference.name for reference in engine.search("send mail")] == ["send_mail"]
    with pytest.raises(BadSettingError, match="min_score"):
        open_engine(recorder, min_score=1.5)


def test_searches_and_requests_are_logged_for_debugging_without_what_was_asked(caplog):
    caplog.set_level(logging.DEBUG, logger="toolsearch")
    with open_engine(Recorder()) as engine:
        session = engine.session("s")
        session.search("weather")
        session.tools()
        session.end_turn()

    assert "searched by keyword for at most 5 tools: 1 found" in caplog.messages
    assert any(message.startswith("session s: a request with ") for message in caplog.messages)
    assert "session s: the turn has ended, 0 tools are evicted" in caplog.messages
    assert "weather" not in caplog.text
