"""Calls out of replies and results into messages, held against the official SDKs' own types."""

from typing import Any

import pytest
from anthropic.types import ImageBlockParam, MessageParam, TextBlockParam, ToolResultBlockParam
from anthropic.types import Message as AnthropicMessage
from mcp.types import CallToolRequestParams, CallToolResult
from openai.types.chat import ChatCompletion, ChatCompletionToolMessageParam
from openai.types.responses import Response
from openai.types.responses.response_input_param import FunctionCallOutput

from tests.kit.sdk_types import accepted
from toolsearch import ToolCall, ToolResult
from toolsearch.errors import BadArgumentsError, BadSettingError
from toolsearch.wire import parse_tool_calls, render_results

CHAT: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}},
                    {"id": "c2", "type": "function", "function": {"name": "now", "arguments": ""}},
                ],
            },
        }
    ],
}
RESPONSE: dict[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt",
    "status": "completed",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'},
        {"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "now", "arguments": ""},
    ],
}
ANTHROPIC: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
    "content": [
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
        {"type": "tool_use", "id": "c2", "name": "now", "input": {}},
    ],
}
AS_TEXT = [ToolCall("c1", "add", '{"a": 1}'), ToolCall("c2", "now", "")]
AS_OBJECTS = [ToolCall("c1", "add", {"a": 1}), ToolCall("c2", "now", {})]

TEXT = ToolResult("c1", "add", ({"type": "text", "text": "2"},))
FAILED = ToolResult("c2", "now", ({"type": "text", "text": "no clock"},), is_error=True, error_code="tool_failed")
PICTURE = ToolResult(
    "c3", "draw", ({"type": "text", "text": "a dot"}, {"type": "image", "data": "iVBO", "mimeType": "image/png"})
)
OTHERS = ToolResult(
    "c4",
    "mixed",
    (
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "in a file"}},
        {"type": "resource", "resource": {"uri": "x:y", "blob": "AAAA", "mimeType": "application/zip"}},
        {"type": "resource_link", "uri": "https://example.com/a", "name": "a"},
    ),
    structured={"n": 1},
)


# Reading


def test_an_openai_chat_completion_is_read_whole_and_in_parts():
    completion = ChatCompletion.model_validate(CHAT)
    message = completion.choices[0].message

    for reply in (completion, message, message.tool_calls, CHAT, CHAT["choices"][0]["message"], completion.to_dict()):
        assert parse_tool_calls(reply) == ("openai", AS_TEXT)


def test_an_openai_response_is_read_whole_and_in_parts():
    response = Response.model_validate(RESPONSE)

    for reply in (response, response.output, RESPONSE, RESPONSE["output"]):
        assert parse_tool_calls(reply) == ("openai-responses", AS_TEXT)


def test_an_anthropic_message_is_read_whole_and_in_parts():
    message = AnthropicMessage.model_validate(ANTHROPIC)
    as_history = {"role": "assistant", "content": message.content}

    for reply in (message, message.content, as_history, ANTHROPIC, ANTHROPIC["content"]):
        assert parse_tool_calls(reply) == ("anthropic", AS_OBJECTS)


def test_calls_in_mcp_shape_are_read_and_get_ids_by_position():
    request = CallToolRequestParams(name="add", arguments={"a": 1})
    expected = [ToolCall("call_1", "add", {"a": 1}), ToolCall("call_2", "now", "")]

    assert parse_tool_calls([request, {"name": "now"}]) == ("mcp", expected)
    assert parse_tool_calls({"name": "add", "arguments": {"a": 1}}) == ("mcp", expected[:1])


def test_our_own_calls_pass():
    assert parse_tool_calls(AS_TEXT) == ("mcp", AS_TEXT)
    assert parse_tool_calls(AS_TEXT[0]) == ("mcp", AS_TEXT[:1])


def test_a_reply_without_calls_has_none():
    text = {"role": "assistant", "content": "Done."}
    chat = {**CHAT, "choices": [{"index": 0, "finish_reason": "stop", "message": text}]}

    assert parse_tool_calls(ChatCompletion.model_validate(chat)) == ("openai", [])
    assert parse_tool_calls(text) == ("openai", [])
    assert parse_tool_calls({**ANTHROPIC, "content": ANTHROPIC["content"][:1]}) == ("anthropic", [])
    assert parse_tool_calls({**RESPONSE, "output": RESPONSE["output"][:1]}) == ("openai-responses", [])
    assert parse_tool_calls([]) == ("mcp", [])


def test_of_several_choices_the_first_with_calls_counts():
    text = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hm."}}

    assert parse_tool_calls({"choices": [text, *CHAT["choices"]]}) == ("openai", AS_TEXT)


def test_arguments_of_a_wrong_kind_are_left_to_the_check_of_arguments():
    _, [call] = parse_tool_calls({"name": "add", "arguments": [1]})

    assert call.arguments == "[1]"


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("add(1, 2)", "in a str"),
        (None, "in a NoneType"),
        ([1], "in a list with a int in it"),
        ({"tool": "add"}, r"in an item without a tool's name \(number 1\)"),
        ({"type": {}, "tool": "add"}, r"in an item without a tool's name \(number 1\)"),
        ([AS_TEXT[0], {"type": "tool_use", "id": "1", "name": "a", "input": {}}], "several formats at once"),
    ],
)
def test_anything_else_is_refused_with_what_is_accepted(reply: object, told: str):
    with pytest.raises(BadArgumentsError, match=told):
        parse_tool_calls(reply)


# Rendering


def test_openai_gets_one_tool_message_per_call_with_all_of_it_as_text():
    messages = render_results([TEXT, FAILED, PICTURE], "openai")

    assert messages == [
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
        {"role": "tool", "tool_call_id": "c2", "content": "Error: no clock"},
        {
            "role": "tool",
            "tool_call_id": "c3",
            "content": "a dot\n[image (image/png, 3 bytes) left out: it cannot be sent here as text]",
        },
    ]
    accepted(list[ChatCompletionToolMessageParam], messages)


def test_openai_responses_gets_outputs_and_images_as_such():
    messages = render_results([TEXT, PICTURE], "openai-responses")

    assert messages == [
        {"type": "function_call_output", "call_id": "c1", "output": "2"},
        {
            "type": "function_call_output",
            "call_id": "c3",
            "output": [
                {"type": "input_text", "text": "a dot"},
                {"type": "input_image", "image_url": "data:image/png;base64,iVBO"},
            ],
        },
    ]
    accepted(list[FunctionCallOutput], messages)


def test_anthropic_gets_one_user_message_with_a_block_per_call_in_order():
    messages = render_results([TEXT, FAILED, PICTURE], "anthropic")

    source = {"type": "base64", "media_type": "image/png", "data": "iVBO"}
    assert messages == [
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [{"type": "text", "text": "2"}],
                    "is_error": False,
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "c2",
                    "content": [{"type": "text", "text": "no clock"}],
                    "is_error": True,
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "c3",
                    "content": [{"type": "text", "text": "a dot"}, {"type": "image", "source": source}],
                    "is_error": False,
                },
            ],
        }
    ]
    accepted(list[MessageParam], messages)
    for block in messages[0]["content"]:  # one by one, since pydantic looks into an Iterable only when it is used
        accepted(ToolResultBlockParam, block)
        accepted(list[TextBlockParam | ImageBlockParam], block["content"])


def test_mcp_gets_call_tool_results():
    messages = render_results([TEXT, FAILED, OTHERS], "mcp")

    assert messages[1] == {"content": [{"type": "text", "text": "no clock"}], "isError": True}
    assert messages[2]["structuredContent"] == {"n": 1}
    read = [CallToolResult.model_validate(message) for message in messages]
    assert [result.is_error for result in read] == [False, True, False]
    assert [block.type for block in read[2].content] == ["audio", "resource", "resource", "resource_link"]


def test_what_a_format_has_no_place_for_is_named_in_text():
    [message] = render_results([OTHERS], "openai")

    assert message["content"].splitlines() == [
        "[audio (audio/wav, 3 bytes) left out: it cannot be sent here as text]",
        "in a file",
        "[resource (application/zip, 3 bytes) left out: it cannot be sent here as text]",
        "a: https://example.com/a",
    ]


def test_anthropic_is_sent_no_empty_text_which_it_would_refuse():
    [message] = render_results([ToolResult("c1", "quiet", ({"type": "text", "text": ""},))], "anthropic")

    assert message["content"][0]["content"] == []


def test_no_results_are_no_messages():
    assert [render_results([], each) for each in ("openai", "openai-responses", "anthropic", "mcp")] == [[]] * 4


def test_an_unknown_format_is_refused_with_the_known_ones():
    with pytest.raises(BadSettingError, match="there are 'openai', 'openai-responses', 'anthropic', 'mcp'"):
        render_results([TEXT], "gemini")
