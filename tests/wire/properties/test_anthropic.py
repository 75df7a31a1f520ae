"""Anthropic's Messages in both directions, held against the official SDK's types."""

import json
from itertools import pairwise
from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from anthropic.types import MessageParam, ToolParam
from anthropic.types.beta import BetaMessageParam
from hypothesis import strategies as st

from tests.wire.properties import generated as some
from tests.wire.properties.contract import FormatContract
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.wire import anthropic
from toolsearch.wire.answers import ChatResponse
from toolsearch.wire.anthropic import answers
from toolsearch.wire.messages import (
    AssistantMessage,
    Message,
    ProviderItems,
    SystemMessage,
    ToolChangeMessage,
    ToolMessage,
    UserMessage,
)
from toolsearch.wire.native_search import NativeSearch
from toolsearch.wire.reply_parts import arguments_object


class TestAnthropic(FormatContract):
    format = anthropic
    answers = answers
    sdk_tool = ToolParam
    sdk_message = MessageParam
    sdk_answer = AnthropicMessage
    sdk_change = BetaMessageParam
    says_removals = True

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


def test_what_a_search_says_beside_references_is_read_as_part_of_it() -> None:
    native = NativeSearch({"weather": ToolDefinition("weather")})
    asked = AssistantMessage("", (ToolCall("1", "toolSearchTool", {"queries": ["weather"]}),))
    content = (some.text("Loaded, to be called by name: weather."), some.text("- clock() [fits]"))
    found = ToolResult("1", "toolSearchTool", content, structured={"tools": ["weather"]})
    messages = [UserMessage("Weather?"), asked, ToolMessage((found,)), UserMessage("Quickly!")]
    written = anthropic.write_messages(messages, native)

    assert [block["type"] for block in written["messages"][2]["content"]] == ["tool_result", "text", "text"]
    assert anthropic.read_messages(json.loads(json.dumps(written))) == messages


def test_a_text_of_the_users_own_is_no_part_of_a_search_that_has_loaded_nothing() -> None:
    result = {"type": "tool_result", "tool_use_id": "1", "content": "sunny", "is_error": False}
    said = {"type": "text", "text": "toolSearchTool: is nice"}

    read = anthropic.read_messages({"messages": [{"role": "user", "content": [result, said]}]})

    assert read[1:] == [UserMessage("toolSearchTool: is nice")]


# What stands between a user's message and the model's answer

WEATHER, CLOCK = ToolDefinition("weather", "The weather."), ToolDefinition("clock", "The time.")
ASKED = AssistantMessage("", (ToolCall("1", "look", {}),))
RESULT = ToolMessage((ToolResult("1", "look", (some.text("a cat"),)),))
CHANGE = ToolChangeMessage((WEATHER,), ("clock",))
ADDED_BY_VALUE = {
    "type": "tool_addition",
    "tool": {"type": "tool_definition", "definition": anthropic.write_tool(WEATHER)},
}
REMOVED = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "clock"}}


def roles(*messages: Message) -> list[tuple[str, list[str]]]:
    written = anthropic.write_messages(messages)["messages"]
    return [(entry["role"], [block["type"] for block in entry["content"]]) for entry in written]


def test_a_change_withdraws_before_it_adds_and_a_deferred_tool_is_added_by_its_name() -> None:
    [by_value] = anthropic.write_change(CHANGE)
    [by_name] = anthropic.write_change(ToolChangeMessage((WEATHER,)), NativeSearch({"weather": WEATHER}))

    assert by_value == {"role": "system", "content": [REMOVED, ADDED_BY_VALUE]}
    reference = {"type": "tool_reference", "name": "weather"}
    assert by_name == {"role": "system", "content": [{"type": "tool_addition", "tool": reference}]}
    assert anthropic.read_messages({"messages": [by_name]}, {"weather": WEATHER}) == [ToolChangeMessage((WEATHER,))]


def test_a_system_message_stands_after_all_that_the_user_says_and_before_the_answer() -> None:
    """Wherever it stands in the conversation: the API takes it nowhere else."""
    late, user, answer = SystemMessage("It is late."), UserMessage("Hi."), AssistantMessage("Yes.")
    end = [("user", ["text"]), ("system", ["text"])]

    assert roles(user, late, answer) == [*end, ("assistant", ["text"])]
    assert roles(user, late, UserMessage("Well?"), answer) == [
        ("user", ["text", "text"]), ("system", ["text"]), ("assistant", ["text"]),
    ]  # fmt: skip
    assert roles(user, answer, late, user) == [("user", ["text"]), ("assistant", ["text"]), *end]
    assert roles(user, answer, user, late) == [("user", ["text"]), ("assistant", ["text"]), *end]
    assert roles(user, answer, late, answer, user) == [("user", ["text"]), ("assistant", ["text", "text"]), *end]
    assert roles(CHANGE, user, answer) == [
        ("user", ["text"]), ("system", ["tool_removal", "tool_addition"]), ("assistant", ["text"]),
    ]  # fmt: skip


def test_nothing_stands_between_a_call_and_its_result() -> None:
    after = [("user", ["tool_result"]), ("system", ["tool_removal", "tool_addition"])]

    assert roles(UserMessage("Look."), ASKED, CHANGE, RESULT)[2:] == after
    assert roles(UserMessage("Look."), ASKED, UserMessage("Now!"), RESULT)[2:] == [("user", ["tool_result", "text"])]


def test_a_conversation_that_grows_is_sent_again_as_it_was() -> None:
    messages = [
        *[SystemMessage("Be brief."), SystemMessage("Be kind."), UserMessage("Look."), ASKED, RESULT, CHANGE],
        *[AssistantMessage("A cat."), UserMessage("And?"), SystemMessage("It is late."), AssistantMessage("A dog.")],
    ]
    requests = [
        json.dumps(anthropic.write_messages(messages[:end])["messages"])[:-1] for end in (3, 6, 9, len(messages))
    ]

    assert anthropic.write_messages(messages)["system"] == "Be brief.\n\nBe kind."
    for shorter, longer in pairwise(requests):
        assert longer.startswith(shorter)


def test_whether_a_request_needs_the_header_is_told_by_what_it_holds() -> None:
    def has_changes(*messages: Message) -> bool:
        return anthropic.has_changes(anthropic.write_messages(messages)["messages"])

    assert has_changes(UserMessage("Hi."), CHANGE)
    assert not has_changes(UserMessage("tool_addition"), SystemMessage("It is late."), AssistantMessage("Yes."))


def test_texts_and_changes_of_one_system_message_are_read_one_by_one() -> None:
    content = [some.text("It is late."), REMOVED, ADDED_BY_VALUE, some.text("Be quick.")]

    read = anthropic.read_messages({"messages": [{"role": "system", "content": content}]}, {"weather": WEATHER})

    assert read == [SystemMessage("It is late."), CHANGE, SystemMessage("Be quick.")]


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "tool_definition", "definition": {"name": "wipe", "input_schema": {}}},
        {"type": "tool_definition", "definition": 3},
        {"type": "tool_reference", "name": ["weather"]},
        {"type": "mcp_tool_reference", "server_name": "evil", "name": "weather"},
        {"type": "mcp_toolset_reference", "server_name": "evil"},
        {},
        3,
    ],
)
def test_a_tool_that_the_reader_does_not_know_is_not_added(tool: Any) -> None:
    block = {"type": "tool_addition", "tool": tool}

    assert anthropic.read_messages({"messages": [{"role": "system", "content": [block]}]}, {"weather": WEATHER}) == []
