"""A conversation that was held with one API goes on with another."""

import json
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.properties import generated as some
from tests.wire.properties.contract import quick
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.wire import anthropic, openai_chat, openai_responses
from toolsearch.wire.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from toolsearch.wire.reply_parts import arguments_object

FORMATS: dict[str, Any] = {
    "openai": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
}


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """What every API can say."""
    messages: list[Message] = [SystemMessage(draw(some.SAID))]
    for turn in range(draw(st.integers(1, 2))):
        asked = [replace(call, id=f"{turn}-{n}") for n, call in enumerate(draw(st.lists(some.CALLS, max_size=2)))]
        calls = tuple(replace(call, arguments=arguments_object(call)) for call in asked)
        results = tuple(ToolResult(call.id, call.name, (some.text(draw(some.SAID)),)) for call in calls)
        pictures = draw(st.lists(some.IMAGES, max_size=1).map(tuple))
        messages += [UserMessage(draw(some.SAID), pictures), AssistantMessage(draw(some.SAID), calls)]
        messages += [ToolMessage(results)] if results else []
    return messages


@pytest.mark.parametrize(("first", "second"), list(permutations(FORMATS, 2)))
@quick
@given(messages=conversations())
def test_what_is_read_from_one_format_is_said_in_another(first: str, second: str, messages: list[Message]) -> None:
    for each in (first, second):
        written = json.loads(json.dumps(FORMATS[each].write_messages(messages)))
        messages_read = FORMATS[each].read_messages(written)

        assert list(map(_with_objects, messages_read)) == list(map(_with_objects, messages))
        messages = messages_read


def _with_objects(message: Message) -> Message:
    if not isinstance(message, AssistantMessage):
        return message
    calls = [ToolCall(call.id, call.name, arguments_object(call)) for call in message.tool_calls]
    return replace(message, tool_calls=tuple(calls))
