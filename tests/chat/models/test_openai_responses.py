"""OpenAI's Responses on the wire: items, reasoning, and tools that our own search loads."""

from typing import Any

import pytest
from openai import AsyncOpenAI

from tests.kit.chat_models import ADD, NATIVE, NOW, PIXEL, QUESTION, answered, found, pieces, prompt, text_result
from tests.kit.loopback import Call, LoopbackApi, Reply
from toolsearch import ToolCall, ToolResult
from toolsearch.chat import AssistantMessage, ChatOptions, OpenAIResponsesModel, ToolMessage, aggregate

SEARCH = "toolSearchTool"


@pytest.fixture(scope="module")
def client() -> AsyncOpenAI:
    """Making one takes long, since it reads the certificates of all authorities."""
    return AsyncOpenAI(api_key="k")


@pytest.fixture
def model(api: LoopbackApi) -> OpenAIResponsesModel:
    return OpenAIResponsesModel("gpt-5.4", base_url=api.openai_url, api_key="k", cloud="")


@pytest.mark.parametrize("streamed", [False, True])
async def test_reasoning_goes_back_encrypted(model: OpenAIResponsesModel, api: LoopbackApi, streamed: bool) -> None:
    api.script(Reply(calls=[Call("now")], thinking="What time?"), Reply("noon"))
    first = aggregate(await pieces(model, prompt(QUESTION))) if streamed else await model.call(prompt(QUESTION))

    await model.call(prompt(QUESTION, *answered(first, "noon")))

    _, reasoning, call, output = api.bodies[1]["input"]
    assert (reasoning["type"], reasoning["encrypted_content"]) == ("reasoning", "gAAAA==")
    assert output == {"type": "function_call_output", "call_id": call["call_id"], "output": "noon"}
    assert api.bodies[1]["store"] is False


async def test_images_in_results_are_sent(model: OpenAIResponsesModel, api: LoopbackApi) -> None:
    said = AssistantMessage("", (ToolCall("1", "now"),))
    api.script(Reply("A pixel."))

    await model.call(prompt(QUESTION, said, ToolMessage((ToolResult("1", "now", (PIXEL,)),))))

    [image] = api.bodies[0]["input"][-1]["output"]
    assert image == {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL['data']}"}


async def converse(model: OpenAIResponsesModel, streamed: bool) -> str:
    messages: list[Any] = [QUESTION]
    for _ in range(3):
        asked = prompt(*messages, options=NATIVE)
        reply = aggregate(await pieces(model, asked)) if streamed else await model.call(asked)
        results = [
            found(call.id, "add", "gone") if call.name == SEARCH else text_result(call.id, call.name, "3")
            for call in reply.message.tool_calls
        ]
        messages += [reply.message, ToolMessage(tuple(results))]
    return reply.text


@pytest.mark.parametrize("streamed", [False, True])
async def test_deferred_tools_are_loaded_by_a_search_of_ours(
    model: OpenAIResponsesModel, api: LoopbackApi, streamed: bool
) -> None:
    """The list of tools holds the search alone, in each request; the definition comes with the answer to it."""
    api.script(Reply(calls=[Call(SEARCH, {"query": "sum"})]), Reply(calls=[Call("add", {"a": 1, "b": 2})]), Reply("3"))

    assert await converse(model, streamed) == "3"

    assert api.refusals == []
    assert api.tools == [["tool_search"]] * 3
    [search] = api.bodies[0]["tools"]
    assert (search["execution"], search["parameters"]["required"]) == ("client", ["queries"])
    _, call, output = api.bodies[1]["input"]
    assert (call["type"], call["arguments"]) == ("tool_search_call", {"query": "sum"})
    assert (output["type"], output["call_id"], output["status"]) == ("tool_search_output", call["call_id"], "completed")
    assert [tool["name"] for tool in output["tools"]] == ["add"]
    assert output["tools"][0]["parameters"] == ADD.definition.input_schema
    assert api.bodies[2]["input"][:3] == api.bodies[1]["input"]


async def test_a_search_of_the_apis_kind_becomes_a_plain_call_where_nothing_is_deferred(
    model: OpenAIResponsesModel, api: LoopbackApi
) -> None:
    """And a plain call of the search tool stays one where tools are deferred."""
    plain, native = ChatOptions(tools=(*NATIVE.tools, NOW)), NATIVE
    api.remembers = False
    for first, then, kinds in (
        (native, plain, ["function_call", "function_call_output"]),
        (plain, native, ["function_call", "function_call_output"]),
    ):
        api.script(Reply(calls=[Call(SEARCH, {"query": "time"})]), Reply("noon"))
        reply = await model.call(prompt(QUESTION, options=first))
        results = ToolMessage((found(reply.message.tool_calls[0].id, "now"),))
        await model.call(prompt(QUESTION, reply.message, results, options=then))
        assert [item["type"] for item in api.bodies[-1]["input"][1:]] == kinds
    assert api.refusals == []


async def test_parallel_searches_are_answered_in_order_with_the_reason_for_nothing_last(
    model: OpenAIResponsesModel, api: LoopbackApi
) -> None:
    api.script(Reply(calls=[Call(SEARCH, {"query": "x"}), Call("now"), Call(SEARCH, {"query": "sum"})]), Reply("3"))
    first = await model.call(prompt(QUESTION, options=NATIVE))
    one, two, three = (call.id for call in first.message.tool_calls)
    results = ToolMessage((found(one), text_result(two, "now", "noon"), found(three, "add")))

    await model.call(prompt(QUESTION, first.message, results, options=NATIVE))

    assert api.refusals == []
    answers = api.bodies[1]["input"][4:]
    assert [item.get("call_id") for item in answers] == [one, two, three, None]
    assert answers[3]["role"] == "developer"


async def test_a_forced_search_is_asked_for_as_the_api_can(model: OpenAIResponsesModel, api: LoopbackApi) -> None:
    options = ChatOptions(tools=NATIVE.tools, deferred_tools=NATIVE.deferred_tools, tool_choice=SEARCH)
    api.script(Reply("3"))

    await model.call(prompt(options=options))

    assert api.bodies[0]["tool_choice"] == "required"


@pytest.mark.parametrize(
    ("name", "native"),
    [
        ("gpt-5.4", True),
        ("gpt-5.4-mini-2026-03-05", True),
        ("gpt-5.10", True),
        ("gpt-6-astra", True),
        ("gpt-5.4-nano", False),
        ("gpt-5.3-codex", False),
        ("gpt-5", False),
        ("gpt-4o", False),
        ("o4-mini", False),
        ("gpt", False),
        ("openai/gpt-5.10", False),
    ],
)
def test_native_search_is_told_by_the_models_name(name: str, native: bool, client: AsyncOpenAI) -> None:
    assert OpenAIResponsesModel(name, client=client).native_tool_search is native
    assert OpenAIResponsesModel(name, api_key="k", native_tool_search=not native).native_tool_search is not native
