"""How each provider is told of the schema of an answer, through its SDK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import Field

from tests.kit.chat_models import ADD, QUESTION
from tests.kit.loopback import Call, LoopbackApi, Reply
from toolsearch import JsonObject
from toolsearch.chat import (
    AnthropicModel,
    ChatClient,
    ChatModel,
    ChatOptions,
    OpenAIChatModel,
    OpenAIResponsesModel,
    Prompt,
    ResponseFormat,
    aggregate,
)
from toolsearch.errors import BadSettingError


@dataclass
class Sum:
    total: Annotated[int, Field(ge=0)]
    note: str = ""


STRICT = {
    "type": "object",
    "properties": {
        "total": {"type": "integer", "minimum": 0},
        "note": {"type": ["string", "null"], "description": 'Default: "".'},
    },
    "required": ["total", "note"],
    "additionalProperties": False,
}
TRANSFORMED = {
    "type": "object",
    "properties": {
        "total": {"type": "integer", "description": "{minimum: 0}"},
        "note": {"type": "string", "description": "{default: }"},
    },
    "required": ["total"],
    "additionalProperties": False,
}
WRITTEN: dict[str, JsonObject] = {
    "openai": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "Sum", "schema": STRICT, "strict": True},
        }
    },
    "openai-responses": {"text": {"format": {"type": "json_schema", "name": "Sum", "schema": STRICT, "strict": True}}},
    "anthropic": {"output_config": {"format": {"type": "json_schema", "schema": TRANSFORMED}}},
}


@pytest.fixture(params=WRITTEN)
def model(request: pytest.FixtureRequest, api: LoopbackApi) -> ChatModel:
    models: dict[str, ChatModel] = {
        "openai": OpenAIChatModel("m", base_url=api.openai_url, api_key="k"),
        "openai-responses": OpenAIResponsesModel("m", base_url=api.openai_url, api_key="k"),
        "anthropic": AnthropicModel("claude-opus-5", base_url=api.url, api_key="k"),
    }
    return models[request.param]


async def test_the_schema_is_sent_as_the_provider_has_it_in_each_round(model: ChatModel, api: LoopbackApi) -> None:
    """And not in words; what a request names by `extra` stands beside it."""
    api.script(Reply(calls=[Call("add", {"a": 1, "b": 2})]), Reply('{"total": 3, "note": null}'))

    def add(a: int, b: int) -> int:
        return a + b

    assert await ChatClient(model, tools=[add]).prompt("1 + 2?").entity(Sum) == Sum(3)
    assert api.refusals == []
    for body in api.bodies:
        assert WRITTEN[model.provider].items() <= body.items()
        assert "JSON Schema" not in str(body)


async def test_a_stream_is_asked_for_the_same(model: ChatModel, api: LoopbackApi) -> None:
    api.script(Reply('{"total": 3}'))
    wanted = ResponseFormat.of(Sum)
    client = ChatClient(model, options=ChatOptions(response_format=wanted))
    response = aggregate([chunk async for chunk in client.prompt("1 + 2?").stream()])

    assert wanted.read(response) == Sum(3)
    assert WRITTEN[model.provider].items() <= api.bodies[0].items()


async def test_extra_arguments_stand_beside_the_schema(api: LoopbackApi) -> None:
    responses = OpenAIResponsesModel("m", base_url=api.openai_url, api_key="k")
    claude = AnthropicModel("claude-opus-5", base_url=api.url, api_key="k")
    extras: list[tuple[ChatModel, dict[str, Any]]] = [
        (responses, {"text": {"verbosity": "low"}}),
        (claude, {"output_config": {"effort": "low"}}),
    ]
    for model, extra in extras:
        api.script(Reply('{"total": 3}'))
        await ChatClient(model, options=ChatOptions(extra=extra)).prompt("1 + 2?").entity(Sum)
        ((field, more),) = extra.items()
        assert api.bodies[-1][field] == {**WRITTEN[model.provider][field], **more}


async def test_an_endpoint_or_model_that_knows_no_schemas_is_told_in_words(api: LoopbackApi) -> None:
    models: list[ChatModel] = [
        OpenAIChatModel("m", base_url=api.openai_url, api_key="k", native_response_format=False),
        AnthropicModel("a-claude", base_url=api.url, api_key="k"),
    ]
    for model in models:
        api.script(Reply('{"total": 3}'))
        assert await ChatClient(model).prompt("1 + 2?").entity(Sum) == Sum(3)
        body = api.bodies[-1]
        assert "JSON Schema" in str(body)
        assert not body.keys() & WRITTEN[model.provider].keys()


async def test_a_bare_model_refuses_what_it_cannot_be_held_to(model: ChatModel) -> None:
    @dataclass
    class Counts:
        by_word: dict[str, int]

    wanted = ResponseFormat.of(Counts)
    with pytest.raises(BadSettingError, match="the schema of Counts; ask it through a ChatClient"):
        await model.call(Prompt((QUESTION,), ChatOptions(tools=(ADD,), response_format=wanted)))
