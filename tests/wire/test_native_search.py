"""Tool search in the provider's own way, held against the official SDKs' types."""

from dataclasses import replace
from typing import Any

import pytest
from anthropic.types import Message, MessageParam, ToolReferenceBlockParam, ToolResultBlockParam
from openai.types.responses import Response, ToolParam
from openai.types.responses.response_input_item_param import ResponseInputItemParam

from tests.kit.sdk_types import accepted
from toolsearch.discovery.search_tool import search_tool_definition
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.wire.formats import render_results, render_tool_list, render_tools
from toolsearch.wire.native_search import NativeSearch
from toolsearch.wire.replies import parse_tool_calls

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = ToolDefinition("weather", description="The weather of a city.", input_schema=SCHEMA)
CLOCK = ToolDefinition("clock", description="The time.")
FORMATS: Any = ["openai", "openai-responses", "anthropic", "mcp"]
NATIVE = NativeSearch({"weather": WEATHER, "clock": CLOCK})


def search_result(call_id: str, *names: str, text: str = "2 tools found.", **changes: Any) -> ToolResult:
    content = ({"type": "text", "text": text},)
    return ToolResult(call_id, "toolSearchTool", content, structured={"tools": list(names)}, **changes)


FOUND = search_result("s1", "clock", "weather")
MORE = replace(
    search_result("s4", "clock", text="Loaded: clock."),
    content=({"type": "text", "text": "Loaded: clock."}, {"type": "text", "text": "- weather(city*) [fits]"}),
)
NOTHING = search_result("s2", text="No tool found.")
FAILED = search_result("s3", text="query must be a text", is_error=True)
OTHER = ToolResult("c1", "weather", ({"type": "text", "text": "sunny"},), structured={"tools": ["clock"]})


def response(execution: str) -> dict[str, Any]:
    arguments = {"query": "weather"}
    search = {"type": "tool_search_call", "id": "ts_1", "call_id": "s1", "status": "completed"}
    return {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "created_at": 1,
        "model": "gpt",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "output": [
            {**search, "execution": execution, "arguments": arguments},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": "{}"},
        ],
    }


def test_a_tool_search_that_openai_leaves_to_the_client_is_a_call_of_the_search_tool():
    calls = [ToolCall("s1", "toolSearchTool", {"query": "weather"}), ToolCall("c1", "weather", "{}")]

    for reply in (response("client"), Response.model_validate(response("client"))):
        assert parse_tool_calls(reply) == ("openai-responses", calls)


def test_a_tool_search_that_openai_runs_itself_is_passed_over():
    assert parse_tool_calls(response("server")) == ("openai-responses", [ToolCall("c1", "weather", "{}")])


def test_a_tool_search_that_anthropic_runs_itself_is_passed_over():
    found = {"type": "tool_search_tool_search_result", "tool_references": []}
    content = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_regex", "input": {"query": "x"}},
        {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": found},
        {"type": "tool_use", "id": "c1", "name": "weather", "input": {}},
    ]
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": content}
    usage = {"input_tokens": 1, "output_tokens": 1}

    read = Message.model_validate({**message, "stop_reason": "tool_use", "stop_sequence": None, "usage": usage})

    assert parse_tool_calls(read) == ("anthropic", [ToolCall("c1", "weather", {})])


def test_openai_is_sent_the_definitions_found_in_the_order_of_the_search():
    messages = render_results([OTHER, FOUND], "openai-responses", native_search=NATIVE)

    definition = {"type": "function", "strict": False, "defer_loading": True}
    empty = {"type": "object", "properties": {}}
    assert messages == [
        {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
        {
            "type": "tool_search_output",
            "call_id": "s1",
            "execution": "client",
            "status": "completed",
            "tools": [
                {**definition, "name": "clock", "description": "The time.", "parameters": empty},
                {**definition, "name": "weather", "description": "The weather of a city.", "parameters": SCHEMA},
            ],
        },
    ]
    for message in messages:
        accepted(ResponseInputItemParam, message)


def test_openai_is_told_after_all_outputs_why_a_search_loaded_nothing():
    messages = render_results([NOTHING, FAILED, OTHER], "openai-responses", native_search=NATIVE)

    assert [message.get("tools") for message in messages[:2]] == [[], []]
    assert messages[2]["type"] == "function_call_output"
    assert messages[3:] == [
        {"type": "message", "role": "developer", "content": "toolSearchTool: No tool found."},
        {"type": "message", "role": "developer", "content": "toolSearchTool: Error: query must be a text"},
    ]
    for message in messages:
        accepted(ResponseInputItemParam, message)


def test_anthropic_is_sent_references_to_the_tools_found():
    [message] = render_results([FOUND, OTHER], "anthropic", native_search=NATIVE)

    found, other = message["content"]
    assert found == {
        "type": "tool_result",
        "tool_use_id": "s1",
        "content": [
            {"type": "tool_reference", "tool_name": "clock"},
            {"type": "tool_reference", "tool_name": "weather"},
        ],
        "is_error": False,
    }
    assert other["content"] == [{"type": "text", "text": "sunny"}]
    accepted(ToolResultBlockParam, found)
    accepted(list[ToolReferenceBlockParam], found["content"])


def test_anthropic_is_told_after_all_results_what_else_a_search_has_found():
    [message] = render_results([MORE, FOUND, OTHER], "anthropic", native_search=NATIVE)

    assert [block["type"] for block in message["content"]] == ["tool_result"] * 3 + ["text"]
    assert message["content"][0]["content"] == [{"type": "tool_reference", "tool_name": "clock"}]
    assert message["content"][3]["text"] == "toolSearchTool: - weather(city*) [fits]"
    accepted(MessageParam, message)


def test_openai_is_told_after_all_outputs_what_else_a_search_has_found():
    messages = render_results([MORE, FOUND, OTHER], "openai-responses", native_search=NATIVE)

    assert [message["type"] for message in messages[:3]] == ["tool_search_output"] * 2 + ["function_call_output"]
    assert [tool["name"] for tool in messages[0]["tools"]] == ["clock"]
    assert messages[3:] == [
        {"type": "message", "role": "developer", "content": "toolSearchTool: - weather(city*) [fits]"}
    ]
    for message in messages:
        accepted(ResponseInputItemParam, message)


@pytest.mark.parametrize("wire_format", FORMATS)
def test_where_nothing_of_an_answer_is_deferred_all_of_it_is_told(wire_format: Any):
    [answered] = render_results([MORE], wire_format, native_search=NativeSearch({"other": WEATHER}))[:1]
    [told] = render_results([MORE], "openai")

    assert told["content"] == "Loaded: clock.\n- weather(city*) [fits]"
    if wire_format == "openai-responses":  # where a search of the API's own has no output but tools
        assert answered["tools"] == []
        answered = render_results([MORE], wire_format, native_search=NativeSearch({"other": WEATHER}))[1]
    assert "- weather(city*) [fits]" in str(answered)


def test_anthropic_reads_the_text_of_a_search_that_loaded_nothing():
    [message] = render_results([NOTHING, FAILED], "anthropic", native_search=NATIVE)

    assert [(block["content"][0]["text"], block["is_error"]) for block in message["content"]] == [
        ("No tool found.", False),
        ("query must be a text", True),
    ]


def test_a_tool_that_was_not_announced_is_never_referred_to_and_none_twice():
    gone = search_result("s1", "weather", "gone", "weather")

    [message] = render_results([gone], "anthropic", native_search=NATIVE)
    [output] = render_results([gone], "openai-responses", native_search=NATIVE)

    assert message["content"][0]["content"] == [{"type": "tool_reference", "tool_name": "weather"}]
    assert [tool["name"] for tool in output["tools"]] == ["weather"]


@pytest.mark.parametrize("wire_format", ["openai", "mcp"])
def test_formats_without_a_native_search_are_answered_as_ever(wire_format: Any):
    assert render_results([FOUND], wire_format, native_search=NATIVE) == render_results([FOUND], wire_format)


def test_what_is_deferred_is_in_anthropics_list_and_in_no_other():
    search, call = search_tool_definition(), ToolDefinition("callTool")

    lists = {each: render_tool_list([search, call], [WEATHER, CLOCK], each) for each in FORMATS}

    assert [(tool["name"], tool.get("defer_loading")) for tool in lists["anthropic"]] == [
        ("toolSearchTool", None), ("callTool", None), ("weather", True), ("clock", True),
    ]  # fmt: skip
    assert [tool["type"] for tool in lists["openai-responses"]] == ["tool_search", "function"]
    assert [tool["function"]["name"] for tool in lists["openai"]] == ["toolSearchTool", "callTool"]
    accepted(list[ToolParam], lists["openai-responses"])


@pytest.mark.parametrize("wire_format", FORMATS)
def test_where_nothing_is_deferred_the_search_tool_is_one_like_others_and_so_are_its_results(wire_format: Any):
    """An output of a search of the API's own, for a call of a function, would be refused."""
    search = search_tool_definition()

    assert render_tool_list([search, WEATHER], [], wire_format) == render_tools([search, WEATHER], wire_format)
    assert render_results([FOUND], wire_format, native_search=NativeSearch()) == render_results([FOUND], wire_format)


def test_a_search_of_the_apis_own_that_can_load_nothing_yet_is_answered_as_one():
    [output, said] = render_results([NOTHING], "openai-responses", native_search=NativeSearch(is_declared=True))

    assert (output["type"], output["tools"]) == ("tool_search_output", [])
    assert said["content"] == "toolSearchTool: No tool found."


def test_without_native_search_a_search_is_answered_in_text():
    [output] = render_results([FOUND], "openai-responses")
    [message] = render_results([FOUND], "anthropic")

    assert output == {"type": "function_call_output", "call_id": "s1", "output": "2 tools found."}
    assert message["content"][0]["content"] == [{"type": "text", "text": "2 tools found."}]
