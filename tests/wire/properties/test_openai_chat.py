"""Chat Completions in both directions, held against the official SDK's types."""

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionFunctionToolParam, ChatCompletionMessageParam

from tests.wire.properties import generated as some
from tests.wire.properties.contract import FormatContract, quick
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.wire import openai_chat
from toolsearch.wire.content import ProviderPart
from toolsearch.wire.messages import AssistantMessage, ProviderItems, SystemMessage, ToolMessage, UserMessage
from toolsearch.wire.openai_chat import answers
from toolsearch.wire.openai_chat.answers import StreamedAnswer
from toolsearch.wire.reply_parts import arguments_text


class TestOpenAIChat(FormatContract):
    format = openai_chat
    answers = answers
    sdk_tool = ChatCompletionFunctionToolParam
    sdk_message = ChatCompletionMessageParam
    sdk_answer = ChatCompletion

    def said_call(self, call: ToolCall) -> ToolCall:
        return ToolCall(call.id, call.name, arguments_text(call))

    def said_results(self, call: ToolCall) -> st.SearchStrategy[ToolResult]:
        return st.builds(lambda said: ToolResult(call.id, call.name, (some.text(said),)), some.TEXTS)

    def verbatim(self, message: AssistantMessage) -> ProviderItems:
        calls: list[Any] = openai_chat.write_calls(message.tool_calls)
        signed = [{**call, "extra_content": {"signature": "abc="}} for call in calls]
        sent = {"content": message.text, "role": "assistant", "reasoning_content": "Hm.\n", "tool_calls": signed}
        return ProviderItems("openai", (sent,))


FILE = {"type": "file", "file": {"file_id": "f1"}}
LINKED = {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}}
REQUEST: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}, LINKED, FILE]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "type": "custom", "custom": {"name": "grep", "input": "x"}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "y"},
        {"role": "assistant", "content": "A cat.", "refusal": None},
    ]
}


def test_what_only_openai_reads_goes_back_to_it_as_it_came() -> None:
    messages = openai_chat.read_messages(REQUEST)

    assert json.dumps(openai_chat.write_messages(messages)) == json.dumps(REQUEST)


def test_another_provider_is_told_in_words_of_what_only_openai_reads() -> None:
    from toolsearch.wire import anthropic

    said = anthropic.write_messages(openai_chat.read_messages(REQUEST)[:2])["messages"]

    assert [block["text"] for block in said[0]["content"]] == [
        "[image_url (unknown type) left out: it cannot be sent here as text]",
        "[file (unknown type) left out: it cannot be sent here as text]",
        "What is this?",
    ]


def test_a_developer_is_read_as_the_system_and_texts_in_parts_as_one() -> None:
    parts = [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}]

    read = openai_chat.read_messages({"messages": [{"role": "developer", "content": parts}]})

    assert read == [SystemMessage("Be brief.\nBe kind.")]


def test_results_in_a_row_are_one_message_and_know_their_tools() -> None:
    calls = [{"id": f"{n}", "type": "function", "function": {"name": f"t{n}", "arguments": "{}"}} for n in (1, 2)]
    results = [{"role": "tool", "tool_call_id": n, "content": f"r{n}"} for n in ("1", "2", "3")]

    read = openai_chat.read_messages(
        {"messages": [{"role": "assistant", "content": None, "tool_calls": calls}, *results]}
    )

    assert read[1:] == [
        ToolMessage(
            (
                ToolResult("1", "t1", (some.text("r1"),)),
                ToolResult("2", "t2", (some.text("r2"),)),
                ToolResult("3", "", (some.text("r3"),)),
            )
        )
    ]


def test_a_failure_and_a_picture_in_a_result_are_said_in_words() -> None:
    failed = ToolResult("1", "t", (some.text("no clock"),), is_error=True)
    picture = ToolResult("2", "t", ({"type": "image", "data": "iVBO", "mimeType": "image/png"},))

    read = openai_chat.read_results(openai_chat.write_results([failed, picture]), {})

    assert [(result.text, result.is_error) for result in read] == [
        ("Error: no clock", False),
        ("[image (image/png, 3 bytes) left out: it cannot be sent here as text]", False),
    ]


def test_a_picture_that_is_looked_at_as_closely_as_any_is_a_picture() -> None:
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO", "detail": "auto"}}

    [read] = openai_chat.read_messages({"messages": [{"role": "user", "content": [part]}]})

    assert read == UserMessage("", ({"type": "image", "data": "iVBO", "mimeType": "image/png"},))


def test_a_picture_that_has_to_be_fetched_stays_an_address() -> None:
    user = {"role": "user", "content": [{"type": "text", "text": "Look."}, LINKED]}

    [message] = openai_chat.read_messages({"messages": [user]})

    assert message == UserMessage("Look.", (ProviderPart("openai", LINKED),))


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"role": "function", "content": "x"}, "number 1 has the role 'function'"),
        ({"role": "tool"}, "content"),
        ({"role": "assistant", "tool_calls": True}, "its tool_calls must be a list"),
        ({"role": "assistant", "tool_calls": [{"type": ["function"]}]}, "item number 1, which has no type"),
    ],
)
def test_a_message_that_cannot_be_read_is_refused_with_its_reason(message: dict[str, Any], reason: str) -> None:
    from toolsearch.errors import BadArgumentsError

    with pytest.raises(BadArgumentsError, match=reason):
        openai_chat.read_messages({"messages": [message]})


def _cut(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


@quick
@given(said=some.TEXTS, calls=st.lists(some.CALLS, max_size=2), size=st.integers(1, 5))
def test_an_answer_in_pieces_is_the_answer_that_is_whole(said: str, calls: list[ToolCall], size: int) -> None:
    written = [ToolCall(call.id, call.name, arguments_text(call).strip() or "{}") for call in calls]
    entries = cast("list[Any]", openai_chat.write_calls(written))
    ends = "tool_calls" if calls else "stop"
    deltas: list[dict[str, Any]] = [{"content": piece} for piece in _cut(said, size)]
    for index, entry in enumerate(entries):
        function = entry["function"]
        deltas.append({"tool_calls": [{**entry, "index": index, "function": {"name": function["name"]}}]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in _cut(function["arguments"], size)
        ]
    streamed = StreamedAnswer()
    for delta, told in [*((delta, None) for delta in deltas), ({}, ends)]:
        streamed.add({"id": "1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": told}]})
    message = {"role": "assistant", "content": said} | (
        {"content": said or None, "tool_calls": entries} if calls else {}
    )
    whole = {"id": "1", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": ends}]}

    assert _comparable(streamed.answer()) == _comparable(answers.read_answer(whole))


def _comparable(answer: Any) -> Any:
    """The entries of the calls may hold their fields in another order."""
    items = [{key: value for key, value in item.items() if value is not None} for item in answer.message.verbatim.items]
    return answer.text, answer.message.tool_calls, answer.finish_reason, answer.metadata, items
