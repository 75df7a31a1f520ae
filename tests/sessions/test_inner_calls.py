"""Calls by the call tool, and what a session runs that does not expand what was not searched for."""

import asyncio
from typing import Any

import pytest

from tests.kit.clock import Clock
from tests.kit.session_tools import SEARCH, engine_of
from toolsearch import (
    Allow,
    Budget,
    CallLimits,
    Catalog,
    Reach,
    SessionOptions,
    Tool,
    ToolCall,
    ToolCallingManager,
    ToolContext,
    ToolDefinition,
    ToolSearch,
)
from toolsearch.errors import BadToolError

CALL = "callTool"


def by_call_tool(name: str, arguments: Any = None) -> dict[str, Any]:
    return {"name": CALL, "arguments": {"name": name, "arguments": {} if arguments is None else arguments}}


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"][0]["text"] for message in messages]


def test_the_call_tool_runs_a_tool_and_the_tool_is_what_was_used() -> None:
    session = engine_of(exposure="fixed").session("a")
    assert texts(session.execute_sync([by_call_tool("convert_time", {"hour": 7})])) == ["8"]
    assert session.discovered == ["convert_time"]
    assert session.state.discovered.tools["convert_time"].is_called


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "missing name"),
        ("{broken", "not"),
        ({"name": 5}, "name: expected string"),
        ({"name": ""}, "give its 'name'"),
        ({"name": CALL, "arguments": {"name": "convert_time"}}, "runs a tool that toolSearchTool has found"),
        ({"name": "convert_time", "arguments": [1]}, "object"),
    ],
)
def test_a_call_that_names_no_tool_to_run_says_what_the_call_tool_needs(arguments: Any, says: str) -> None:
    result = asyncio.run(engine_of().session("a").call(CALL, arguments))
    assert (result.is_error, result.error_code) == (True, "bad_arguments")
    assert says in result.text


def test_hooks_and_limits_know_the_tool_that_runs() -> None:
    asked: list[str] = []

    def note(call: ToolCall, tool: Tool, context: ToolContext) -> Allow:
        asked.append(f"{call.name} {tool.name}")
        return Allow()

    manager = ToolCallingManager(before=[note], limits=CallLimits(per_tool_overrides={"convert_time": 1}))
    engine = ToolSearch(engine_of().catalog, encoder=None, manager=manager)
    session = engine.session("a")
    results = session.execute_sync([by_call_tool("convert_time", {"hour": 7})])
    results += session.execute_sync([{"name": "convert_time", "arguments": {"hour": 7}}])
    assert asked == ["convert_time convert_time"]
    assert texts(results)[0] == "8"
    assert "1 times a turn" in texts(results)[1]


def test_no_tool_of_a_catalog_can_have_the_name_of_the_call_tool() -> None:
    with pytest.raises(BadToolError, match="the name 'callTool' is taken by tool search itself"):
        Catalog([ToolDefinition(CALL)])


def test_a_search_and_its_target_in_one_reply_do_not_authorise_each_other() -> None:
    session = engine_of(expand_undiscovered=False).session("a")
    search = {"name": SEARCH, "arguments": {"query": "select:convert_time"}}
    target = {"name": "convert_time", "arguments": {"hour": 1}}

    assert "is not loaded; call toolSearchTool" in texts(session.execute_sync([search, target]))[1]
    assert texts(session.execute_sync([target])) == ["2"]
    other = engine_of(expand_undiscovered=False).session("a")
    assert (
        "is not loaded; call toolSearchTool"
        in texts(other.execute_sync([search, by_call_tool("convert_time", {"hour": 1})]))[1]
    )


@pytest.mark.parametrize("mode", ["append", "fixed"])
def test_what_the_model_still_sees_runs_although_it_was_evicted_and_nothing_else_does(mode: Any) -> None:
    session = engine_of(expand_undiscovered=False, exposure=mode).session("a")
    session.tools()
    session.execute_sync([{"name": SEARCH, "arguments": {"query": "select:convert_time"}}])
    session.tools()
    session.state.discovered.drop(["convert_time"])

    assert asyncio.run(session.call("convert_time", {"hour": 1})).text == "2"
    assert asyncio.run(session.call("pay_bill", {"amount": 1})).error_code == "undiscovered_tool"


@pytest.mark.parametrize("is_inner", [False, True])
def test_a_tool_that_leaves_the_reach_while_its_call_is_being_approved_does_not_run(*, is_inner: bool) -> None:
    def narrow(call: ToolCall, tool: Tool, context: ToolContext) -> Allow:
        engine.session("a", reach=Reach.parse(deny=["convert_time"]))
        return Allow()

    engine = ToolSearch(
        engine_of().catalog,
        encoder=None,
        manager=ToolCallingManager(before=[narrow]),
        options=SessionOptions(budget=Budget(max_tools=5)),
    )
    call = by_call_tool("convert_time", {"hour": 7}) if is_inner else {"name": "convert_time", "arguments": {"hour": 7}}
    (text,) = texts(engine.session("a").execute_sync([call]))
    assert text == "no tool named 'convert_time'"


def test_a_tool_that_is_gone_is_told_from_one_that_never_was(clock: Clock) -> None:
    engine = engine_of()
    session = engine.session("a")
    session.search("select:convert_time")
    session.tools()
    engine.catalog.remove("convert_time")
    assert asyncio.run(session.call("convert_time", {"hour": 1})).error_code == "tool_gone"
    assert asyncio.run(session.call("convert_tim", {"hour": 1})).error_code == "unknown_tool"
