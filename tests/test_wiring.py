"""From settings to what they describe: each setting reaches the object that it is about."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolsearch
from tests.kit.scripted_model import ScriptedModel, calls, says
from tests.kit.telemetry_recorder import Recorder
from toolsearch.calling.resolvers import AttachedTools, StaticToolCallbackResolver
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.index_directory import IndexDirectory
from toolsearch.catalog.requests_file import packed_tool, write_requests
from toolsearch.chat.tool_calling import ToolCallingAdvisor
from toolsearch.chat.tool_search import DEFAULT_SYSTEM_SUFFIX, ToolSearchAdvisor
from toolsearch.engine import ToolSearch
from toolsearch.errors import BadSettingError, SourceError
from toolsearch.settings import Settings
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.function_tools import tool_from_function
from toolsearch.wire.messages import SystemMessage
from toolsearch.wiring import (
    build_client,
    build_engine,
    build_eviction,
    build_manager,
    build_telemetry,
    build_tool_advisor,
    open_engine,
)


def settings(**variables):
    return Settings.from_environment({f"TOOLSEARCH_{name}": value for name, value in variables.items()})


def get_time(zone: str) -> str:
    """Current time in a time zone."""
    return f"noon in {zone}"


def fail() -> None:
    """Fail, always."""
    raise ValueError("no")


GET_TIME, FAIL = tool_from_function(get_time), tool_from_function(fail)
TIME = ("get_time", '{"zone": "UTC"}')


def call(name="get_time", arguments='{"zone": "UTC"}'):
    return ToolCall("c1", name, arguments)


async def test_limits_reach_the_manager():
    manager = build_manager(settings(LIMITS__PER_TOOL_OVERRIDES__get_time="1"))
    results = await manager.execute([call(), call()], AttachedTools([GET_TIME]))

    assert [result.error_code for result in results] == [None, "call_limit"]


async def test_a_failure_is_told_to_the_model():
    told = await build_manager(settings()).execute([call("fail", "{}")], AttachedTools([FAIL]))

    assert told[0].is_error


def test_sessions_go_by_number_and_with_a_ttl_by_idle_time_too():
    by_number = build_eviction(settings(EVICTION__MAX_SESSIONS="1"))
    by_number.on_access("a")
    assert by_number.on_access("b") == {"a"}

    both = build_eviction(settings(EVICTION__MAX_SESSIONS="1", EVICTION__TTL_S="3600"))
    both.on_access("a")
    assert both.on_access("b") == {"a"}


def test_an_engine_searches_as_it_was_set():
    with build_engine(
        settings(INDEX__STRATEGY="regex", SEARCH__LIMIT="2", BUDGET__MAX_TOOLS="9"), Catalog([GET_TIME])
    ) as engine:
        assert engine.strategies[0] == "regex"
        assert engine.options.limit == 2
        assert engine.options.budget.max_tools == 9


def test_requests_that_ship_are_indexed_unless_the_settings_say_no_or_the_index_has_none(tmp_path: Path) -> None:
    catalog, without = (
        Catalog.from_module("textwrap"),
        settings(INDEX__REQUESTS="false", INDEX__INDEX_DIR=str(tmp_path)),
    )
    build_engine(without, catalog).close()
    assert not IndexDirectory(tmp_path).read().requests.shipped

    for chosen, wanted in [(settings(), False), (settings(INDEX__REQUESTS="true"), True)]:
        with open_engine(chosen, tmp_path) as engine:
            engine.save()
        assert IndexDirectory(tmp_path).read().requests.shipped is wanted
    catalog.close()


def test_requests_of_files_are_indexed_as_the_settings_say_and_kept_with_the_index(tmp_path: Path) -> None:
    file, folder = tmp_path / "requests.jsonl", tmp_path / "index"
    write_requests(file, [packed_tool(GET_TIME.definition, ["wie spät ist es"])])
    chosen = settings(INDEX__REQUESTS_FILES=str(file), INDEX__INDEX_DIR=str(folder), INDEX__ENCODER="none")
    build_engine(chosen, Catalog([GET_TIME])).close()

    for given, found in [(settings(), ["get_time"]), (settings(INDEX__REQUESTS_FILES="[]"), [])]:
        with open_engine(given, folder) as engine:
            assert [hit.name for hit in engine.search("spät", strategy="keyword")] == found
    with pytest.raises(SourceError, match="cannot be read"):
        build_engine(settings(INDEX__REQUESTS_FILES=str(tmp_path / "none.jsonl")), Catalog([GET_TIME]))


def test_a_strategy_without_the_encoder_that_it_needs_is_refused():
    with pytest.raises(BadSettingError, match="needs an encoder"):
        build_engine(settings(INDEX__STRATEGY="semantic", INDEX__ENCODER="none"), Catalog([GET_TIME]))


async def test_every_engine_has_the_reader_of_the_settings(monkeypatch, tmp_path):
    opened = []
    monkeypatch.setattr("toolsearch.catalog.index_opening.open_reader", opened.append)
    chosen = settings(INDEX__READER="folder", ADVISOR__ENABLED="true", PASS_THROUGH__MAX_TOOLS="0")
    with build_engine(chosen, Catalog([GET_TIME])):
        assert opened == ["folder"]

    ToolSearch(Catalog([GET_TIME]), index_dir=tmp_path, reader=None).close()
    with open_engine(chosen, tmp_path):
        assert opened == ["folder"] * 2

    client = build_client(chosen, ScriptedModel(says("Hello.")), tools=[GET_TIME, FAIL])
    await client.prompt("Hello?").context(conversation_id="c").call()
    assert opened == ["folder"] * 3


def test_tools_are_searched_for_only_if_that_is_enabled():
    plain = build_tool_advisor(settings())
    searching = build_tool_advisor(settings(ADVISOR__ENABLED="true"))

    assert type(plain) is ToolCallingAdvisor
    assert isinstance(searching, ToolSearchAdvisor)


async def test_a_client_searches_for_tools_and_records_what_it_does():
    recorder = Recorder()
    model = ScriptedModel(calls(("toolSearchTool", '{"query": "time"}')), calls(TIME), says("It is noon."))
    client = build_client(
        settings(ADVISOR__ENABLED="true", INDEX__ENCODER="none", PASS_THROUGH__MAX_TOOLS="0"),
        model,
        tools=[GET_TIME, FAIL],
        system="Be brief.",
        telemetry=recorder.telemetry,
    )

    response = await client.prompt("And now?").context(conversation_id="c").call()

    assert response.text == "It is noon."
    assert [[tool.name for tool in prompt.options.tools] for prompt in model.prompts] == [
        ["toolSearchTool"],
        ["toolSearchTool", "get_time"],
        ["toolSearchTool", "get_time"],
    ]
    assert model.sent[0][0] == SystemMessage(f"Be brief.\n\n{DEFAULT_SYSTEM_SUFFIX}")
    assert [span.name for span in recorder.spans] == [
        "search_tools",
        "chat unknown",
        "search_tools",
        "execute_tool toolSearchTool",
        "chat unknown",
        "execute_tool get_time",
        "chat unknown",
    ]


async def test_an_engine_serves_a_client_with_its_own_catalog_and_sessions():
    chosen = settings(ADVISOR__ENABLED="true", PASS_THROUGH__MAX_TOOLS="0", ADVISOR__SYSTEM_SUFFIX="")
    model = ScriptedModel(calls(TIME), says("It is noon."))
    with build_engine(chosen, Catalog([GET_TIME, FAIL])) as engine:
        client = build_client(chosen, model, engine=engine)
        await client.prompt("What time is it?").context(conversation_id="c").call()

        assert engine.sessions.ids() == ["c"]
    assert not any(isinstance(message, SystemMessage) for message in model.sent[0])


async def test_a_tool_that_only_the_resolver_knows_does_not_run():
    client = build_client(
        settings(), ScriptedModel(calls(TIME), says("done")), resolver=StaticToolCallbackResolver([GET_TIME])
    )

    response = await client.prompt("What time is it?").call()

    assert response.steps[-1].results[0].is_error


@pytest.mark.parametrize("captured", ["content", "definitions"])
def test_each_kind_of_content_is_captured_by_a_setting_of_its_own(captured):
    telemetry = build_telemetry(settings(**{f"TELEMETRY__CAPTURE_{captured.upper()}": "true"}))

    assert telemetry.capture_content is (captured == "content")
    assert telemetry.capture_definitions is (captured == "definitions")


@pytest.mark.parametrize(("variables", "opened_by"), [({}, "keyword"), ({"INDEX__ENCODER": "built-in"}, "hybrid")])
def test_an_index_is_opened_with_the_encoder_that_it_was_made_with_unless_settings_name_one(
    tmp_path, variables, opened_by
):
    build_engine(settings(INDEX__ENCODER="none", INDEX__INDEX_DIR=str(tmp_path)), [GET_TIME]).close()

    with open_engine(settings(**variables, SEARCH__LIMIT="3"), tmp_path) as engine:
        assert engine.strategies[0] == opened_by
        assert engine.options.limit == 3


def test_nothing_else_builds_an_engine_except_for_the_tools_of_a_request_or_of_a_framework():
    package = Path(toolsearch.__file__).parent
    builders = [
        str(path.relative_to(package)) for path in package.rglob("*.py") if "ToolSearch(" in path.read_text("utf-8")
    ]

    adapters = [f"adapters/{framework}.py" for framework in ("fastmcp", "litellm", "pydantic_ai")]
    assert sorted(builders) == [*adapters, "chat/tool_search.py", "wiring.py"]
