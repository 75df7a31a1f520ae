"""A tool with parameters that no API takes: what the model is shown works, and the tool is called by its own names."""

import json
from typing import Any

import pytest

from tests.kit.session_tools import ALWAYS_SEARCH, FORMATS, SEARCH
from tests.kit.strict.one_tool import problems_of_tool
from toolsearch import Catalog, JsonObject, Session, SessionOptions, Tool, ToolContext, ToolDefinition, ToolSearch

CALLS = ToolDefinition(
    "list_calls",
    "List phone calls.",
    {
        "type": "object",
        "properties": {
            "StartTime<": {"type": "string"},
            "StartTime": {"type": "string"},
            "filter[by]": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"first name": {"type": "string"}},
                    "required": ["first name"],
                },
            },
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        "required": ["StartTime<"],
        "additionalProperties": False,
    },
)
SENT = {"StartTime_lt": "12:00", "filter_by": [{"first_name": "Ada"}], "labels": {"first_name": "stays"}}
OWN = {"StartTime<": "12:00", "filter[by]": [{"first name": "Ada"}], "labels": {"first_name": "stays"}}


class Recorder:
    def __init__(self) -> None:
        self.called: list[Any] = []

    async def call(self, arguments: JsonObject, context: ToolContext) -> str:  # noqa: ARG002  nothing of it is needed
        self.called.append(arguments)
        return "none"


@pytest.fixture
def calls() -> Recorder:
    return Recorder()


@pytest.fixture
def session(calls: Recorder) -> Session:
    catalog = Catalog([Tool(CALLS, calls)])
    return ToolSearch(catalog, encoder=None, options=SessionOptions(pass_through=ALWAYS_SEARCH)).session("a")


def reply(wire_format: str, name: str, arguments: Any) -> Any:
    text = json.dumps(arguments)
    if wire_format == "openai":
        return {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": name, "arguments": text}}]}
    if wire_format == "openai-responses":
        return [{"type": "function_call", "call_id": "1", "name": name, "arguments": text}]
    if wire_format == "anthropic":
        content = [{"type": "tool_use", "id": "1", "name": name, "input": arguments}]
        return {"role": "assistant", "content": content, "stop_reason": "tool_use"}
    return [{"name": name, "arguments": arguments}]


@pytest.mark.parametrize("wire_format", FORMATS)
@pytest.mark.parametrize("given", [SENT, OWN])
async def test_on_every_wire_the_list_can_be_sent_and_the_call_has_the_tools_own_names(
    session: Session, calls: Recorder, wire_format: Any, given: Any
) -> None:
    session.search("select:list_calls")

    listed = session.request(wire_format)["tools"]
    await session.execute(reply(wire_format, "list_calls", given))

    assert [problems_of_tool(wire_format, entry) for entry in listed] == [[]] * len(listed)
    assert calls.called == [OWN]


@pytest.mark.parametrize("model", ["claude-opus-5", "claude-sonnet-5", "gpt-5"])
async def test_what_answers_and_messages_add_later_can_be_sent_too(session: Session, model: str) -> None:
    wire_format: Any = "anthropic" if model.startswith("claude") else "openai-responses"
    first = session.request(wire_format, model=model)["tools"]
    written = await session.execute(reply(wire_format, SEARCH, {"query": "select:list_calls"}))

    said = json.dumps([first, written])
    assert '"StartTime_lt"' in said
    assert '"StartTime<":' not in said


async def test_the_names_in_an_answer_are_those_that_the_call_tool_takes(session: Session, calls: Recorder) -> None:
    session.request("anthropic", model="")  # whose list is fixed
    (answer,) = await session.execute(reply("anthropic", SEARCH, {"query": "select:list_calls"}))
    await session.execute(reply("anthropic", "callTool", {"name": "list_calls", "arguments": SENT}))

    text = json.dumps(answer)
    assert "StartTime_lt" in text
    assert "filter[by]" not in text.replace("The tool's 'filter[by]'", "")
    assert calls.called == [OWN]


async def test_a_search_names_the_parameters_as_they_are_sent(session: Session) -> None:
    session.request("openai")
    (answer,) = await session.execute(reply("openai", SEARCH, {"query": "list phone calls"}))

    assert "list_calls(StartTime_lt*, StartTime, filter_by, labels)" in answer["content"]


async def test_faults_are_told_by_the_tools_own_names_and_nothing_is_called(session: Session, calls: Recorder) -> None:
    result = await session.call("list_calls", {"filter_by": [{"first_name": 3}]})

    assert result.error_code == "bad_arguments"
    assert calls.called == []


async def test_what_a_framework_is_told_of_new_tools_can_be_sent(session: Session) -> None:
    session.search("select:list_calls")

    added = session.delta("openai").added

    assert "StartTime_lt" in next(each for each in added if each.name == "list_calls").input_schema["properties"]
