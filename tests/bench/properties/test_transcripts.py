"""A conversation that is written in any of the formats is read back equal, and no log makes reading fail."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.wire.properties import generated as some
from toolsearch.bench.conversations import Dialogue, Step, Turn, Use
from toolsearch.bench.logs import Transcript, read_transcript
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.wire import anthropic, openai_chat, openai_responses
from toolsearch.wire.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage

quick = settings(deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
FORMATS = pytest.mark.parametrize(
    "wire", [anthropic, openai_chat, openai_responses], ids=["anthropic", "openai", "openai-responses"]
)

USES = st.builds(Use, some.NAMES, some.OBJECTS, some.TEXTS)
STEPS = st.builds(Step, st.lists(USES, min_size=1, max_size=3).map(tuple), some.SAID | st.just(""))
WITH_STEPS = st.builds(Turn, some.SAID, st.lists(STEPS, min_size=1, max_size=2).map(tuple), some.SAID | st.just(""))
ANSWERED = st.builds(Turn, some.SAID, st.just(()), some.SAID)
CONVERSATIONS = st.builds(
    Dialogue, st.lists(WITH_STEPS | ANSWERED, min_size=1, max_size=3).map(tuple), some.SAID | st.just("")
)
SECRET = "hunter2"
LOGGED = st.recursive(
    some.SCALARS | st.just(SECRET),
    lambda each: (
        st.lists(each, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *["messages", "input", "role", "content", "type", "text", "system", "instructions", "request"],
                    *["response", "message", "choices", "output", "tool_calls", "function", "name", "arguments", "id"],
                    *["tool_use_id", "call_id", "tool_call_id", "tools", "tool", "source", "image_url", SECRET],
                ]
            ),
            each
            | st.sampled_from(
                [
                    *["user", "assistant", "system", "tool", "developer", "text", "tool_use", "tool_result", "image"],
                    *["function_call", "function_call_output", "reasoning", "message", "input_text", "output_text"],
                    *["additional_tools", "tool_search_call", "tool_search_output", "tool_reference", "image_url"],
                ]
            ),
            max_size=5,
        )
    ),
    max_leaves=12,
)


def messages_of(conversation: Dialogue) -> Iterator[Message]:
    numbers = count(1)
    if conversation.system:
        yield SystemMessage(conversation.system)
    for turn in conversation.turns:
        yield UserMessage(turn.user)
        for step in turn.steps:
            made = [(ToolCall(f"c{next(numbers)}", use.name, use.arguments), use) for use in step.calls]
            yield AssistantMessage(step.text, tuple(call for call, _ in made))
            yield ToolMessage(
                tuple(ToolResult(call.id, call.name, ({"type": "text", "text": use.result},)) for call, use in made)
            )
        if turn.answer:
            yield AssistantMessage(turn.answer)


def entries_of(request: dict[str, Any]) -> list[Any]:
    entries = request.get("input", request.get("messages"))
    assert isinstance(entries, list)
    return entries


@FORMATS
@quick
@given(conversation=CONVERSATIONS)
def test_a_request_is_read_back_equal(wire: Any, conversation: Dialogue) -> None:
    request = wire.write_messages(list(messages_of(conversation)))

    assert read_transcript(json.dumps(request)) == Transcript((conversation,))


@FORMATS
@quick
@given(conversation=CONVERSATIONS)
def test_messages_are_read_back_equal_in_a_list_and_line_by_line(wire: Any, conversation: Dialogue) -> None:
    """What the system says stands beside the messages at Anthropic, so it is not said here."""
    spoken = Dialogue(conversation.turns)
    entries = entries_of(wire.write_messages(list(messages_of(spoken))))

    assert read_transcript(json.dumps(entries)) == Transcript((spoken,))
    assert read_transcript("\n".join(map(json.dumps, entries))) == Transcript((spoken,))


@FORMATS
@quick
@given(conversation=CONVERSATIONS)
def test_the_requests_of_a_loop_are_read_back_as_one_conversation(wire: Any, conversation: Dialogue) -> None:
    messages = list(messages_of(conversation))
    asked = [at for at, message in enumerate(messages) if isinstance(message, AssistantMessage)]
    requests = [wire.write_messages(messages[:end]) for end in [*asked, len(messages)]]

    assert read_transcript("\n".join(map(json.dumps, requests))) == Transcript((conversation,))


@quick
@given(lines=st.lists(LOGGED, max_size=4))
def test_no_log_makes_reading_fail_or_is_quoted(lines: list[Any]) -> None:
    transcript = read_transcript("\n".join(map(json.dumps, lines)))

    assert SECRET not in repr(transcript.skipped)
