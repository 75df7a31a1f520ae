"""The loopback APIs themselves: what the real ones refuse they refuse, and the official SDKs understand them."""

from typing import Any

import anthropic
import openai
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.kit.loopback import Call, Failure, LoopbackApi, Reply

OBJECT = {"type": "object", "properties": {}}
ASKED = {"role": "user", "content": "?"}
SAID = {"role": "assistant", "content": "!"}


def function(name: str, parameters: Any = OBJECT) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def chat_calls(*ids: str) -> dict[str, Any]:
    calls = [{"id": i, "type": "function", "function": {"name": "add", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "3"}


@pytest.mark.parametrize(
    ("reason", "body"),
    [
        ("does not match the pattern", {"tools": [function("a.b")]}),
        ("does not match the pattern", {"tools": [function("a" * 65)]}),
        ("type 'object' at its root", {"tools": [function("add", {"type": "string"})]}),
        ("JSON schema is invalid", {"tools": [function("add", OBJECT | {"required": "a"})]}),
        ("must be unique", {"tools": [function("add"), function("add")]}),
        ("a list that is not empty", {"tools": []}),
        ("only allowed when 'tools' are specified", {"tool_choice": "auto"}),
        ("did not have response messages: 1", {"messages": [ASKED, chat_calls("1")]}),
        ("did not have response messages: 2", {"messages": [ASKED, chat_calls("1", "2"), result("1"), ASKED]}),
        ("must be a response to a preceding message", {"messages": [ASKED, result("1")]}),
        ("must be a response", {"messages": [ASKED, chat_calls("1"), result("1"), result("1")]}),
        ("expected a string, got null", {"messages": [ASKED, {"role": "assistant", "content": None}]}),
        ("Extra inputs", {"extra_body": {"tool_context": {}}}),
    ],
)
async def test_chat_completions_refuses(api: LoopbackApi, reason: str, body: dict[str, Any]) -> None:
    async with AsyncOpenAI(api_key="k", base_url=api.openai_url) as client:
        with pytest.raises(openai.BadRequestError, match=reason):
            await client.chat.completions.create(**({"model": "m", "messages": [ASKED]} | body))


def response_function(name: str, parameters: Any = OBJECT, **more: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": parameters, "strict": False} | more


CALL = {"type": "function_call", "call_id": "1", "name": "add", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "1", "output": "3"}
SEARCH_CALL = {"type": "tool_search_call", "call_id": "1", "arguments": {}, "execution": "client"}
REASONING = {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x"}


@pytest.mark.parametrize(
    ("reason", "body"),
    [
        ("does not match the pattern", {"tools": [response_function("a.b")]}),
        ("additionalProperties", {"tools": [response_function("add", strict=True)]}),
        ("Deferred tools require tools.tool_search", {"tools": [response_function("add", defer_loading=True)]}),
        ("No tool output found for function call 1", {"input": [ASKED, CALL]}),
        ("No tool call found", {"input": [ASKED, OUTPUT]}),
        ("No tool call found", {"input": [ASKED, SEARCH_CALL, OUTPUT]}),
        ("without its required following item", {"input": [ASKED, REASONING, ASKED]}),
        ("is not persisted", {"input": [REASONING | {"encrypted_content": None}, CALL, OUTPUT], "store": False}),
    ],
)
async def test_responses_refuses(api: LoopbackApi, reason: str, body: dict[str, Any]) -> None:
    async with AsyncOpenAI(api_key="k", base_url=api.openai_url) as client:
        with pytest.raises(openai.BadRequestError, match=reason):
            await client.responses.create(**({"model": "m", "input": "?"} | body))


def tool(name: str, schema: Any = OBJECT, **more: Any) -> dict[str, Any]:
    return {"name": name, "input_schema": schema} | more


def uses(*ids: str) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": i, "name": "add", "input": {}} for i in ids],
    }


def results(*ids: str, content: Any = "3", after: Any = ()) -> dict[str, Any]:
    blocks = [{"type": "tool_result", "tool_use_id": i, "content": content} for i in ids]
    return {"role": "user", "content": [*after, *blocks]}


REFERENCE = [{"type": "tool_reference", "tool_name": "late"}]
LATE = tool("late", defer_loading=True)
TEXT = {"type": "text", "text": "so"}


@pytest.mark.parametrize(
    ("reason", "body"),
    [
        ("does not match the pattern", {"tools": [tool("a.b")]}),
        ("type 'object' at its root", {"tools": [tool("add", {})]}),
        ("must be unique", {"tools": [tool("add"), tool("add")]}),
        ("All tools cannot be deferred", {"tools": [LATE]}),
        ("roles must alternate", {"messages": [ASKED, SAID, SAID]}),
        ("roles must alternate", {"messages": [SAID, ASKED]}),
        ("without `tool_result` blocks", {"messages": [ASKED, uses("1")]}),
        ("immediately after: 2", {"messages": [ASKED, uses("1", "2"), results("1")]}),
        ("unexpected `tool_use_id`", {"messages": [results("1")]}),
        ("must come first", {"messages": [ASKED, uses("1"), results("1", after=[TEXT])]}),
        ("must be non-empty", {"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]}),
        ("must define tools", {"messages": [ASKED, uses("1"), results("1")], "tools": anthropic.omit}),
        ("'late' has no corresponding", {"messages": [ASKED, uses("1"), results("1", content=REFERENCE)]}),
        (
            "cannot be mixed",
            {"messages": [ASKED, uses("1"), results("1", content=[*REFERENCE, TEXT])], "tools": [tool("add"), LATE]},
        ),
    ],
)
async def test_messages_refuses(api: LoopbackApi, reason: str, body: dict[str, Any]) -> None:
    async with AsyncAnthropic(api_key="k", base_url=api.url) as client:
        asked: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [ASKED], "tools": [tool("add")]}
        with pytest.raises(anthropic.BadRequestError, match=reason):
            await client.messages.create(**(asked | body))


async def test_a_conversation_that_was_changed_is_refused(api: LoopbackApi) -> None:
    api.script(Reply(calls=[Call("add", {"b": 2, "a": 1})]), Reply("3"), Reply("3"))
    async with AsyncOpenAI(api_key="k", base_url=api.openai_url) as client:

        async def ask(question: str, *more: Any) -> Any:
            messages: list[Any] = [{"role": "user", "content": question}, *more]
            tools: Any = [function("add")]
            reply = await client.chat.completions.create(model="m", messages=messages, tools=tools)
            return reply.choices[0].message

        said = await ask("1 + 2?")
        answer = result(said.tool_calls[0].id)
        assert (await ask("1 + 2?", said.model_dump(), answer)).content == "3"
        with pytest.raises(openai.BadRequestError, match="has been changed"):
            await ask("1 + 3?", said.model_dump(), answer)
        api.remembers = False
        assert (await ask("1 + 3?", said.model_dump(), answer)).content == "3"


async def test_the_sdks_put_streams_together_to_what_was_scripted(api: LoopbackApi) -> None:
    reply = Reply("Let me see.", calls=[Call("add", {"a": 1}), Call("now")], thinking="Hm.")
    api.script(reply, reply, reply)
    openai_tools: Any = [function("add")]

    async with AsyncOpenAI(api_key="k", base_url=api.openai_url) as client:
        async with client.chat.completions.stream(model="m", messages=[ASKED], tools=openai_tools) as stream:
            chat = (await stream.get_final_completion()).choices[0].message
        async with client.responses.stream(model="m", input="?") as stream:
            response = await stream.get_final_response()
    async with (
        AsyncAnthropic(api_key="k", base_url=api.url) as client,
        client.messages.stream(model="m", max_tokens=9, messages=[ASKED]) as stream,
    ):
        message = await stream.get_final_message()

    assert chat.content == response.output_text == message.content[1].text == "Let me see."
    assert [call.function.arguments for call in chat.tool_calls or []] == ['{"a": 1}', "{}"]
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call", "function_call"]
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert message.content[2].input == {"a": 1}


async def test_failures_are_scripted_and_retried_by_the_sdk(api: LoopbackApi) -> None:
    api.script(Failure(429), Reply("there"), Failure(500, "down"))
    async with AsyncOpenAI(api_key="k", base_url=api.openai_url) as client:
        reply = await client.responses.create(model="m", input="?")
        with pytest.raises(openai.InternalServerError, match="down"):
            await client.with_options(max_retries=0).responses.create(model="m", input="?")
    assert reply.output_text == "there"
    assert len(api.requests) == 3
