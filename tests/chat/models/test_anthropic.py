"""Anthropic's Messages on the wire: turns, signed thinking, and tools that are loaded by reference."""

from typing import Any

import pytest
from anthropic import AsyncAnthropic

from tests.kit.chat_models import (
    ADD,
    NATIVE,
    NOW,
    PIXEL,
    QUESTION,
    SEARCH_TOOL,
    answered,
    found,
    pieces,
    prompt,
    text_result,
)
from tests.kit.clock import Clock
from tests.kit.loopback import Call, LoopbackApi, PromptCache, Reply, TokenCounts
from toolsearch.chat.model import ChatOptions, Prompt
from toolsearch.chat.models.anthropic_messages import AnthropicModel, AnthropicTurn
from toolsearch.errors import BadSettingError
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.wire.answers import Usage, aggregate
from toolsearch.wire.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage

SEARCH = "toolSearchTool"


@pytest.fixture
def model(api: LoopbackApi) -> AnthropicModel:
    return AnthropicModel("claude-opus-4-6", base_url=api.url, api_key="k", cloud="")


@pytest.fixture(scope="module")
def client() -> AsyncAnthropic:
    """Making one takes long, since it reads the certificates of all authorities."""
    return AsyncAnthropic(api_key="k")


async def test_results_and_the_next_question_share_a_turn(model: AnthropicModel, api: LoopbackApi) -> None:
    """Roles take turns; results come first in theirs, and system texts stand apart."""
    api.script(Reply("At noon."))
    said = AssistantMessage("", (ToolCall("1", "add", {"a": 1}), ToolCall("2", "now")))
    failed = text_result("2", "now", "no clock", is_error=True)
    pixel = ToolResult("1", "add", (PIXEL,))

    await model.call(
        prompt(SystemMessage("Be brief."), QUESTION, said, ToolMessage((pixel, failed)), UserMessage("Well?"))
    )

    body = api.bodies[0]
    assert body["system"] == "Be brief."
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    image, error, text = body["messages"][2]["content"]
    assert image["content"][0]["source"] == {"type": "base64", "media_type": "image/png", "data": PIXEL["data"]}
    assert (error["tool_use_id"], error["is_error"]) == ("2", True)
    assert text == {"type": "text", "text": "Well?"}


@pytest.mark.parametrize("streamed", [False, True])
async def test_thinking_goes_back_signed(model: AnthropicModel, api: LoopbackApi, streamed: bool) -> None:
    api.script(Reply(calls=[Call("now")], thinking="What time?"), Reply("noon"))
    first = aggregate(await pieces(model, prompt(QUESTION))) if streamed else await model.call(prompt(QUESTION))

    await model.call(prompt(QUESTION, *answered(first, "noon")))

    thinking, use = api.bodies[1]["messages"][1]["content"]
    assert thinking == {"type": "thinking", "thinking": "What time?", "signature": "signature_1=="}
    assert (use["name"], use["input"]) == ("now", {})


async def test_an_empty_text_is_not_sent_back(model: AnthropicModel, api: LoopbackApi) -> None:
    api.script(Reply(" ", calls=[Call("now")]), Reply("noon"))
    api.remembers = False
    first = await model.call(prompt(QUESTION))

    await model.call(prompt(QUESTION, AssistantMessage(""), *answered(first, "")))

    assert api.refusals == []


@pytest.mark.parametrize("streamed", [False, True])
async def test_deferred_tools_are_loaded_by_reference(model: AnthropicModel, api: LoopbackApi, streamed: bool) -> None:
    """The list of tools is the same in each request, and an answer names only what the list holds."""
    api.script(Reply(calls=[Call(SEARCH, {"query": "sum"})]), Reply(calls=[Call("add", {"a": 1, "b": 2})]), Reply("3"))
    messages: list[Any] = [QUESTION]
    for _ in range(3):
        asked = prompt(*messages, options=NATIVE)
        reply = aggregate(await pieces(model, asked)) if streamed else await model.call(asked)
        results = [
            found(call.id, "add", "gone") if call.name == SEARCH else text_result(call.id, call.name, "3")
            for call in reply.message.tool_calls
        ]
        messages += [reply.message, ToolMessage(tuple(results))]

    assert api.refusals == []
    assert reply.text == "3"
    assert api.bodies[0]["tools"] == api.bodies[1]["tools"] == api.bodies[2]["tools"]
    assert [(tool["name"], tool.get("defer_loading")) for tool in api.bodies[0]["tools"]] == [
        (SEARCH, None), ("add", True), ("now", True),
    ]  # fmt: skip
    [loaded] = api.bodies[1]["messages"][2]["content"]
    assert loaded["content"] == [{"type": "tool_reference", "tool_name": "add"}]


async def test_a_search_that_found_nothing_to_load_says_so(model: AnthropicModel, api: LoopbackApi) -> None:
    """Also one that found what is shown anyway, such as a pinned tool: only deferred tools can be referred to."""
    api.script(Reply(calls=[Call(SEARCH, {"query": "x"}), Call(SEARCH, {"query": "time"})]), Reply("Sorry."))
    options = ChatOptions(tools=(SEARCH_TOOL, NOW), deferred_tools=(ADD,))
    first = await model.call(prompt(QUESTION, options=options))
    one, two = first.message.tool_calls

    results = ToolMessage((found(one.id), found(two.id, "now")))
    await model.call(prompt(QUESTION, first.message, results, options=options))

    nothing, shown = api.bodies[1]["messages"][2]["content"]
    assert nothing["content"] == [{"type": "text", "text": "0 tools found."}]
    assert shown["content"] == [{"type": "text", "text": "1 tools found."}]
    assert api.refusals == []


async def test_betas_are_named_in_the_header(api: LoopbackApi) -> None:
    model = AnthropicModel("m", base_url=api.url, api_key="k", betas=["one", "two"])
    api.script(Reply("Yes."))

    await model.call(prompt())

    assert api.requests[0].headers["anthropic-beta"] == "one,two"


async def test_arguments_that_are_no_object_still_can_be_told(model: AnthropicModel, api: LoopbackApi) -> None:
    """Another provider's model wrote them, and its conversation goes on here."""
    said = AssistantMessage("", (ToolCall("1", "add", "{broken"), ToolCall("2", "add", "[1]"), ToolCall("3", "now")))
    results = ToolMessage(tuple(text_result(call.id, call.name, "no") for call in said.tool_calls))
    api.script(Reply("Yes."))

    await model.call(prompt(QUESTION, said, results))

    uses = api.bodies[0]["messages"][1]["content"]
    assert [use["input"] for use in uses] == [{"arguments": "{broken"}, {"arguments": "[1]"}, {}]


@pytest.mark.parametrize(
    ("name", "native"),
    [
        ("claude-sonnet-4-5-20250929", True),
        ("claude-opus-4-5", True),
        ("claude-haiku-4-5@20251001", True),
        ("eu.anthropic.claude-opus-4-6-v1:0", True),
        ("claude-opus-5", True),
        ("claude-fable-5-2", True),
        ("claude-sonnet-4-20250514", False),
        ("claude-opus-4-1-20250805", False),
        ("claude-3-5-sonnet-20241022", False),
        ("claude-instant-1-2", False),
        ("claude-mythos-preview", False),
        ("my-model", False),
    ],
)
def test_native_search_is_told_by_the_models_name(name: str, native: bool, client: AsyncAnthropic) -> None:
    assert AnthropicModel(name, client=client).native_tool_search is native
    assert AnthropicModel(name, client=client, native_tool_search=not native).native_tool_search is not native


# Turns that the API pauses

SEARCHING = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "weather"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
PAUSED = Reply("Let me look. ", blocks=[SEARCHING], ended="pause_turn", usage=TokenCounts(input=100, output=10))


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_paused_turn_goes_on_and_is_one_answer(api: LoopbackApi, streamed: bool) -> None:
    """What was said so far is sent back as it came, and no more than that; so it is in the next turn."""
    model = AnthropicModel("m", base_url=api.url, api_key="k")
    ended = Reply("It rains. ", blocks=[FOUND], calls=[Call("now")], usage=TokenCounts(input=130, output=5))
    api.script(PAUSED, Reply("Hm. ", ended="pause_turn"), ended, Reply("At noon."))

    asked = prompt(QUESTION)
    response = aggregate(await pieces(model, asked)) if streamed else await model.call(asked)
    last = await model.call(prompt(QUESTION, *answered(response, "noon")))

    assert (response.text, response.finish_reason) == ("Let me look. Hm. It rains. ", "tool_calls")
    assert [call.name for call in response.message.tool_calls] == ["now"]
    assert response.usage == Usage(330, 35)
    first, second, third, fourth = api.bodies
    said = [{"type": "text", "text": "Let me look. "}, SEARCHING]
    assert second == {**first, "messages": [*first["messages"], {"role": "assistant", "content": said}]}
    assert third["messages"][-1]["content"] == [*said, {"type": "text", "text": "Hm. "}]
    assert [block["type"] for block in fourth["messages"][1]["content"]] == [
        "text", "server_tool_use", "text", "text", "web_search_tool_result", "tool_use",
    ]  # fmt: skip
    assert last.text == "At noon."
    assert api.refusals == []


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_turn_that_pauses_again_and_again_ends(api: LoopbackApi, streamed: bool) -> None:
    model = AnthropicModel("m", base_url=api.url, api_key="k", max_continuations=2)
    api.script(PAUSED, PAUSED, PAUSED, Reply("never"))

    response = aggregate(await pieces(model, prompt(QUESTION))) if streamed else await model.call(prompt(QUESTION))

    assert len(api.requests) == 3
    assert (response.text, response.finish_reason) == ("Let me look. " * 3, "other")


async def test_a_paused_reply_that_calls_a_tool_of_ours_is_not_sent_back_without_its_result(api: LoopbackApi) -> None:
    api.script(Reply(calls=[Call("now")], ended="pause_turn"))

    response = await AnthropicModel("m", base_url=api.url, api_key="k").call(prompt(QUESTION))

    assert response.finish_reason == "other"
    assert response.message.tool_calls[0].unfinished == "pause_turn"


@pytest.mark.parametrize(
    ("asked", "continued"),
    [({}, "box_1"), ({"container": {"skills": [1]}}, {"skills": [1], "id": "box_1"}), ({"container": "old"}, "box_1")],
)
def test_a_turn_goes_on_in_its_container(asked: dict[str, object], continued: object) -> None:
    turn = AnthropicTurn({"messages": [{"role": "user", "content": "Go."}], **asked}, max_continuations=5)
    said = [{"type": "text", "text": "Hm."}]

    assert turn.add({"content": said, "stop_reason": "pause_turn", "container": {"id": "box_1", "expires_at": "later"}})
    assert turn.request["container"] == continued


def test_a_number_of_continuations_below_0_is_refused() -> None:
    with pytest.raises(BadSettingError, match="max_continuations"):
        AnthropicModel("m", api_key="k", max_continuations=-1)


async def test_what_a_model_wrote_to_a_tool_goes_back_with_its_nulls(api: LoopbackApi) -> None:
    model = AnthropicModel("m", base_url=api.url, api_key="k")
    api.script(Reply(calls=[Call("now", {"zone": None})]), Reply("Noon."))

    response = await model.call(prompt(QUESTION))
    await model.call(prompt(QUESTION, *answered(response, "noon")))

    assert api.bodies[1]["messages"][1]["content"][0]["input"] == {"zone": None}


async def test_prompts_are_kept_for_the_next_request_if_they_are_to_be(api: LoopbackApi, clock: Clock) -> None:
    api.cache = PromptCache(clock)
    api.script(*[Reply("Yes.")] * 5)
    said = AssistantMessage("Yes.")
    model = AnthropicModel("claude-opus-5", base_url=api.url, api_key="k", cloud="", cache_prompt=True)
    for _ in range(2):
        await model.call(prompt(QUESTION, said, QUESTION))
    hour = ChatOptions(extra={"cache_control": {"type": "ephemeral", "ttl": "1h"}})
    await model.call(Prompt((QUESTION,), hour))
    plain = AnthropicModel("claude-opus-5", base_url=api.url, api_key="k", cloud="")
    for _ in range(2):
        await plain.call(prompt(UserMessage("Without a mark?")))

    marks = [body.get("cache_control") for body in api.bodies]
    assert marks == [{"type": "ephemeral"}] * 2 + [{"type": "ephemeral", "ttl": "1h"}, None, None]
    assert [use.read > 0 for use in api.cache.uses] == [False, True, False, False, False]
