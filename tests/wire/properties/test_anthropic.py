"""Anthropic's Messages in both directions, held against the official SDK's types."""

import json
from typing import Any

from anthropic.types import Message as AnthropicMessage
from anthropic.types import MessageParam, ToolParam
from hypothesis import strategies as st

from tests.wire.properties import generated as some
from tests.wire.properties.contract import FormatContract
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.wire import anthropic
from toolsearch.wire.answers import ChatResponse
from toolsearch.wire.anthropic import answers
from toolsearch.wire.arguments import arguments_object
from toolsearch.wire.messages import AssistantMessage, ProviderItems, SystemMessage, ToolMessage, UserMessage
from toolsearch.wire.native_search import NativeSearch


class TestAnthropic(FormatContract):
    format = anthropic
    answers = answers
    sdk_tool = ToolParam
    sdk_message = MessageParam
    sdk_answer = AnthropicMessage

    def said_call(self, call: ToolCall) -> ToolCall:
        return ToolCall(call.id, call.name, arguments_object(call))

    def said_results(self, call: ToolCall) -> st.SearchStrategy[ToolResult]:
        blocks = st.lists(st.builds(some.text, some.SAID) | some.IMAGES, max_size=3).map(tuple)
        return st.builds(
            lambda content, is_error: ToolResult(call.id, call.name, content, is_error=is_error), blocks, st.booleans()
        )

    def verbatim(self, message: AssistantMessage) -> ProviderItems:
        thinking = {"type": "thinking", "thinking": "Hm.\n", "signature": "abc="}
        own = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
        calls = anthropic.write_calls(message.tool_calls)
        return ProviderItems("anthropic", (thinking, {"text": message.text, "type": "text"}, own, *calls))

    def written_answer(self, answer: ChatResponse) -> dict[str, Any]:
        return answers.write_answer(answer)

    def entries_of(self, written: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [block for message in written for block in message["content"]]


DOCUMENT = {"type": "document", "source": {"type": "file", "file_id": "f1"}, "cache_control": {"type": "ephemeral"}}
LINKED = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
CACHED = {"type": "text", "text": "What is this?", "cache_control": {"type": "ephemeral"}}
DIRECT = {"type": "direct"}
REQUEST: dict[str, Any] = {
    "messages": [
        {"role": "user", "content": [DOCUMENT, LINKED, CACHED]},
        {
            "role": "assistant",
            "content": [
                {"type": "redacted_thinking", "data": "xyz"},
                {
                    "type": "tool_use",
                    "id": "1",
                    "name": "look",
                    "input": {"b": 1, "a": None},
                    "caller": {"type": "direct"},
                },
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "1", "content": [DOCUMENT], "is_error": False}, LINKED],
        },
    ],
    "system": "Be brief.",
}


def test_what_only_anthropic_reads_goes_back_to_it_as_it_came() -> None:
    messages = anthropic.read_messages(REQUEST)

    assert json.dumps(anthropic.write_messages(messages)) == json.dumps(REQUEST)


def test_another_provider_is_told_in_words_of_what_only_anthropic_reads() -> None:
    from toolsearch.wire import openai_chat

    said = openai_chat.write_messages(anthropic.read_messages(REQUEST))["messages"]

    assert said[1]["content"] == [
        {"type": "text", "text": "[document (unknown type) left out: it cannot be sent here as text]"},
        {"type": "text", "text": "[image (unknown type) left out: it cannot be sent here as text]"},
        {"type": "text", "text": "What is this?"},
    ]
    assert said[2]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"b": 1, "a": null}'}
    assert said[3]["content"] == "[document (unknown type) left out: it cannot be sent here as text]"


def test_results_stand_before_what_the_user_says_besides() -> None:
    result = {"type": "tool_result", "tool_use_id": "1", "content": "sunny"}
    content = [{"type": "text", "text": "And now?"}, result]

    read = anthropic.read_messages({"messages": [{"role": "user", "content": content}]})

    assert read == [ToolMessage((ToolResult("1", "", (some.text("sunny"),)),)), UserMessage("And now?")]


def test_system_texts_in_blocks_are_one_and_those_in_the_conversation_stay_in_their_place() -> None:
    system = [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind.", "cache_control": {}}]
    messages = [{"role": "user", "content": "Hi."}, {"role": "system", "content": "It is late."}]

    read = anthropic.read_messages({"system": system, "messages": messages})

    assert read == [SystemMessage("Be brief.\n\nBe kind."), UserMessage("Hi."), SystemMessage("It is late.")]


def test_references_to_found_tools_are_read_as_their_names() -> None:
    weather = ToolDefinition("weather")
    native = NativeSearch({"weather": weather})
    found = ToolResult("1", "toolSearchTool", (), structured={"tools": ["weather"]})
    written = anthropic.write_results([found], native)

    [read] = anthropic.read_results(written[0]["content"], {})

    assert read == found
    assert anthropic.write_results([read], native) == written
