"""Calls through a call tool."""

import pytest

from toolsearch.discovery.call_tools import InnerCall
from toolsearch.errors import BadArgumentsError, CallDeniedError
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.json_types import JsonObject


def test_parameters_beside_the_name_are_answered_with_where_they_go() -> None:
    with pytest.raises(BadArgumentsError, match=r"statistics__median.*'arguments'"):
        InnerCall.parse(ToolCall("1", "callTool", {"name": "statistics__median", "data": [1, 2]}))


def test_a_tool_without_parameters_needs_none() -> None:
    call = InnerCall.parse(ToolCall("1", "callTool", {"name": "uuid4"}))

    assert call is not None
    assert call.arguments == {}


@pytest.mark.parametrize(
    ("arguments", "inner"),
    [
        ({"name": "team__bills"}, {}),
        ({"name": "team__bills", "file": ""}, {}),
        ({"name": "team__bills", "file": None}, {}),
        ({"name": "team__bills", "file": "limits.md"}, {"file": "limits.md"}),
    ],
)
def test_a_skill_is_read_by_its_name_and_a_file(arguments: JsonObject, inner: JsonObject) -> None:
    assert InnerCall.parse(ToolCall("1", "readSkill", arguments)) == InnerCall("readSkill", "team__bills", inner)


@pytest.mark.parametrize("arguments", [{}, {"name": 5}, {"name": ""}, {"name": "team__bills", "amount": 5}])
def test_a_reading_that_says_anything_else_is_told_what_there_is(arguments: JsonObject) -> None:
    with pytest.raises(BadArgumentsError, match="'name' of a skill"):
        InnerCall.parse(ToolCall("1", "readSkill", arguments))


def test_a_reading_runs_nothing_but_skills() -> None:
    reading = InnerCall("readSkill", "team__bills", {})
    reading.require_allowed(Tool(ToolDefinition("team__bills", "How to pay bills.", kind="skill")))
    for kind in ("tool", "prompt", "resource"):
        with pytest.raises(CallDeniedError, match=f"is a {kind}"):
            reading.require_allowed(Tool(ToolDefinition("team__bills", "Pays bills.", kind=kind)))  # type: ignore[arg-type]
