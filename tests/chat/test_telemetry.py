"""A model with telemetry: one span per call, whole or streamed, whatever becomes of it."""

from __future__ import annotations

import json

import pytest
from opentelemetry.trace import get_current_span

from tests.kit.chat_models import ADD
from tests.kit.scripted_model import ScriptedModel, calls, says
from tests.kit.telemetry_recorder import Recorder
from toolsearch import ToolCall, ToolResult
from toolsearch.chat import (
    AssistantMessage,
    ChatOptions,
    Prompt,
    SystemMessage,
    TelemetryModel,
    ToolMessage,
    Usage,
    UserMessage,
)
from toolsearch.errors import ChatModelError

HELLO = Prompt((UserMessage("hello"),), ChatOptions(temperature=0.25))


def wrapped(*replies, recorder):
    model = ScriptedModel(*replies)
    return model, TelemetryModel(model, recorder.telemetry, name="m-1")


async def test_a_call_is_a_span_with_its_model_and_usage():
    recorder = Recorder()
    _, model = wrapped(says("hi", usage=Usage(10, 2, cached_tokens=4)), recorder=recorder)

    assert (await model.call(HELLO)).text == "hi"

    attributes = recorder.span("chat m-1").attributes
    assert attributes["gen_ai.provider.name"] == "scripted"
    assert attributes["gen_ai.request.temperature"] == 0.25
    assert attributes["gen_ai.usage.input_tokens"] == 10
    assert attributes["gen_ai.usage.output_tokens"] == 2
    assert attributes["gen_ai.usage.cache_read.input_tokens"] == 4
    assert attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert not any("messages" in name for name in attributes)


async def test_the_model_that_a_prompt_names_goes_before_the_default():
    recorder = Recorder()
    _, model = wrapped(says("hi"), recorder=recorder)

    await model.call(Prompt((), ChatOptions(model="m-2")))

    assert recorder.span("chat m-2")


async def test_a_stream_is_one_span_that_is_not_around_what_its_reader_does():
    recorder = Recorder()
    _, model = wrapped(calls(("get_time", "{}"), usage=Usage(10, 2)), recorder=recorder)
    before = get_current_span()

    async for _ in model.stream(HELLO):
        assert get_current_span() is before

    attributes = recorder.span("chat m-1").attributes
    assert attributes["gen_ai.usage.output_tokens"] == 2
    assert attributes["gen_ai.response.finish_reasons"] == ("tool_calls",)


async def test_a_stream_that_is_left_early_is_closed_and_is_no_error():
    recorder = Recorder()
    scripted, model = wrapped(says("hello"), recorder=recorder)

    stream = model.stream(HELLO)
    await anext(stream)
    await stream.aclose()

    assert scripted.closed_streams == 1
    assert "error.type" not in recorder.span("chat m-1").attributes


async def test_a_model_that_fails_marks_the_span_and_the_error_passes():
    recorder = Recorder()
    _, model = wrapped(ChatModelError("refused"), recorder=recorder)

    with pytest.raises(ChatModelError):
        await model.call(HELLO)

    assert recorder.span("chat m-1").attributes["error.type"] == "chat_model_error"
    ((labels, _),) = recorder.points("gen_ai.client.operation.duration")
    assert labels["error.type"] == "chat_model_error"


async def test_messages_are_captured_as_the_conventions_write_them():
    recorder = Recorder(capture_content=True)
    _, model = wrapped(says("noon"), recorder=recorder)
    call = ToolCall("c1", "get_time", "{}")
    result = ToolResult("c1", "get_time", ({"type": "text", "text": "12:00"},))
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}

    await model.call(
        Prompt(
            (
                SystemMessage("be brief"),
                UserMessage("when?", (image,)),
                AssistantMessage("", (call,)),
                ToolMessage((result,)),
            )
        )
    )

    attributes = recorder.span("chat m-1").attributes
    assert json.loads(attributes["gen_ai.input.messages"]) == [
        {"role": "system", "parts": [{"type": "text", "content": "be brief"}]},
        {"role": "user", "parts": [{"type": "text", "content": "when?"}, {"type": "image"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "get_time", "arguments": "{}"}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "12:00"}]},
    ]
    assert json.loads(attributes["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "noon"}], "finish_reason": "stop"}
    ]


@pytest.mark.parametrize("captured", [True, False])
async def test_the_tools_of_a_request_are_recorded_only_where_that_was_asked_for(captured: bool):
    recorder = Recorder(capture_definitions=captured, capture_content=not captured)
    _, model = wrapped(says("3"), recorder=recorder)
    await model.call(Prompt((UserMessage("1 + 2?"),), ChatOptions(tools=(ADD,))))

    attributes = recorder.span("chat m-1").attributes
    assert ("gen_ai.input.messages" in attributes) is not captured
    assert ("gen_ai.tool.definitions" in attributes) is captured
    if captured:
        assert json.loads(attributes["gen_ai.tool.definitions"]) == [
            {
                "type": "function",
                "name": "add",
                "description": "Add two numbers.",
                "parameters": ADD.definition.input_schema,
            }
        ]


async def test_two_apis_of_one_provider_have_its_one_name():
    recorder = Recorder()
    scripted, model = wrapped(says("hi"), recorder=recorder)
    scripted.provider = "openai-responses"

    await model.call(HELLO)

    assert recorder.span("chat m-1").attributes["gen_ai.provider.name"] == "openai"
    assert model.provider == "openai-responses"
    assert model.native_tool_search is False
