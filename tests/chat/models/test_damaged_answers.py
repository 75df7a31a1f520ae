"""Answers that are not of the API: null, lists with nulls in them, wrong types. Each is an error that says so."""

from typing import Any

import pytest

from tests.kit.chat_models import pieces, prompt
from tests.kit.loopback import LoopbackApi, Raw
from toolsearch.chat import AnthropicModel, OpenAIChatModel, OpenAIResponsesModel, aggregate
from toolsearch.errors import ChatModelError

MODELS: dict[str, Any] = {
    "openai": OpenAIChatModel,
    "openai-responses": OpenAIResponsesModel,
    "anthropic": AnthropicModel,
}
CALL = {"id": "1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
NO_OBJECTS: list[Any] = [None, [], [None], "text", 5, {}, {"error": None}]


def chat(**message: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"role": "assistant"} | message, "finish_reason": "stop"}]}


def output(*items: Any) -> dict[str, Any]:
    return {"status": "completed", "output": list(items)}


def content(*blocks: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": list(blocks), "stop_reason": "end_turn"}


BODIES: dict[str, list[Any]] = {
    "openai": [
        *NO_OBJECTS,
        {"choices": None},
        {"choices": []},
        {"choices": [None]},
        {"choices": {}},
        {"choices": [{"message": None, "finish_reason": "stop"}]},
        {"choices": [{"finish_reason": "stop"}]},
        {"choices": [{"message": "Hi", "finish_reason": "stop"}]},
        {"choices": [{"message": {"content": "Hi"}, "finish_reason": 5}]},
        chat(content=["Hi"]),
        chat(tool_calls=[None]),
        chat(tool_calls=5),
        chat(tool_calls=[CALL | {"function": {"name": None, "arguments": "{}"}}]),
        chat(content="Hi") | {"usage": "much"},
    ],
    "openai-responses": [
        *NO_OBJECTS,
        {"status": "completed", "output": None},
        {"status": "completed", "output": {}},
        output(None),
        output("Hi"),
        output({"type": None}),
        output({"type": "message", "content": None}),
        output({"type": "message", "content": [None]}),
        output({"type": "message", "content": "Hi"}),
        output({"type": "function_call", "call_id": "1", "name": None, "arguments": "{}"}),
        output() | {"status": 5},
        output() | {"usage": []},
    ],
    "anthropic": [
        *NO_OBJECTS,
        content() | {"content": None},
        content() | {"content": "Hi"},
        content(None),
        content("Hi"),
        content({"type": None}),
        content({"type": "text", "text": ["Hi"]}),
        content({"type": "tool_use", "id": "1", "name": None, "input": {}}),
        content() | {"stop_reason": 5},
        content() | {"usage": "much"},
    ],
}


def model(provider: str, api: LoopbackApi) -> Any:
    return MODELS[provider]("m", base_url=api.url if provider == "anthropic" else api.openai_url, api_key="k")


@pytest.mark.parametrize(("provider", "body"), [(name, body) for name, bodies in BODIES.items() for body in bodies])
async def test_an_answer_that_is_none_is_an_error_of_the_model(api: LoopbackApi, provider: str, body: Any) -> None:
    api.script(Raw(body))

    with pytest.raises(ChatModelError, match=r"answer|reply|item") as caught:
        await model(provider, api).call(prompt())

    assert caught.value.code == "chat_model_error"


def piece(**delta: Any) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


STARTED = {
    "type": "message_start",
    "message": content() | {"id": "m", "stop_reason": None, "usage": {"input_tokens": 1, "output_tokens": 1}},
}
EVENTS: dict[str, list[list[Any]]] = {
    "openai": [
        [],
        [{"choices": [None]}],
        [{"choices": 5}],
        [piece(content=["Hi"])],
        [piece(tool_calls=[None])],
        [piece(tool_calls=[{"index": 0, "function": {"name": 5}}])],
        [piece(content="Hi"), {"choices": [{"index": 0, "delta": {}, "finish_reason": 5}]}],
    ],
    "openai-responses": [
        [],
        [{"type": "response.completed", "response": None}],
        [{"type": "response.completed", "response": {"status": "completed", "output": None}}],
        [{"type": "response.completed", "response": output(None)}],
        [{"type": "response.output_item.added", "output_index": 0, "item": None}],
    ],
    "anthropic": [
        [],
        [{"type": "message_start", "message": None}],
        [{"type": "content_block_start", "index": 0, "content_block": None}],
        [STARTED, {"type": "content_block_start", "index": 0, "content_block": None}],
        [STARTED, {"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "Hi"}}],
        [STARTED | {"message": STARTED["message"] | {"content": None}}, {"type": "message_stop"}],
    ],
}  # fmt: skip


@pytest.mark.parametrize(("provider", "events"), [(name, each) for name, all_ in EVENTS.items() for each in all_])
async def test_a_stream_that_is_none_is_an_error_of_the_model(api: LoopbackApi, provider: str, events: Any) -> None:
    api.script(Raw(events=events))

    with pytest.raises(ChatModelError):
        await pieces(model(provider, api), prompt())


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        ("openai", chat(content="Hi")),
        ("openai", chat(content="Hi", tool_calls=None) | {"usage": {"prompt_tokens": None}, "id": None}),
        ("openai-responses", output({"type": "message", "content": [{"type": "output_text", "text": "Hi"}]})),
        ("anthropic", content({"type": "text", "text": "Hi"})),
    ],
)
async def test_what_an_endpoint_leaves_out_and_nobody_needs_is_no_error(
    api: LoopbackApi, provider: str, body: Any
) -> None:
    api.script(Raw(body))

    response = await model(provider, api).call(prompt())

    assert (response.text, response.finish_reason) == ("Hi", "stop")


async def test_an_error_shows_where_the_fault_is_and_not_what_was_sent(api: LoopbackApi) -> None:
    api.script(Raw(chat(content={"secret": "sk-1"})))

    with pytest.raises(ChatModelError, match=r"choices\.0\.message\.content: .*string") as caught:
        await model("openai", api).call(prompt())

    assert "sk-1" not in str(caught.value)


async def test_a_stream_may_have_pieces_without_choices_and_with_nulls(api: LoopbackApi) -> None:
    nothing = {"choices": [{"index": 0, "delta": None, "finish_reason": None}]}
    reasoning = [piece(content="H", reasoning="so"), piece(content="i", reasoning=None)]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    api.script(Raw(events=[{"choices": None}, {"choices": []}, nothing, *reasoning, end]))

    response = aggregate(await pieces(model("openai", api), prompt()))

    assert response.text == "Hi"
    assert response.message.verbatim is not None
    assert response.message.verbatim.items[0]["reasoning"] == "so"
