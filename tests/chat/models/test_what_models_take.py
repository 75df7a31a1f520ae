"""What the models send by the table of capabilities, to APIs that refuse what the providers refuse."""

import logging
from typing import Any

import pytest
from anthropic import AsyncAnthropic

from tests.kit.chat_models import ADD, NATIVE, NOW, QUESTION, answered, pieces, prompt
from tests.kit.loopback import Call, LoopbackApi, Reply
from toolsearch.chat import (
    AnthropicModel,
    AssistantMessage,
    ChatOptions,
    Message,
    OpenAIChatModel,
    OpenAIResponsesModel,
    SystemMessage,
    ToolChangeMessage,
    UserMessage,
    aggregate,
)
from toolsearch.errors import BadSettingError, ChatModelError

INLINE = "inline-tools-2026-09-15"
LIST = ChatOptions(tools=(NOW,))
ADDED = ToolChangeMessage((ADD.definition,))
WITHDRAWN = ToolChangeMessage(removed=("add",))


def claude(api: LoopbackApi, model: str = "claude-opus-5-5", **more: Any) -> AnthropicModel:
    return AnthropicModel(model, base_url=api.url, api_key="k", **{"cloud": "", **more})


def betas(api: LoopbackApi) -> list[str | None]:
    return [request.headers.get("anthropic-beta") for request in api.requests]


# Tools that messages add


@pytest.mark.parametrize("streamed", [False, True])
async def test_claude_calls_a_tool_that_a_message_added_and_its_thinking_holds(
    api: LoopbackApi, streamed: bool
) -> None:
    """The list is one in all requests, and the header is sent once there is something that needs it."""
    model = claude(api)
    api.script(
        Reply(calls=[Call("now")], thinking="What time?"),
        Reply(calls=[Call("add", {"a": 1, "b": 2})], thinking="A tool came."),
        Reply("3", thinking="Good."),
    )
    messages: list[Message] = [SystemMessage("Be brief."), QUESTION]
    for text, change in (("noon", ADDED), ("3", WITHDRAWN), ("", None)):
        asked = prompt(*messages, options=LIST)
        reply = aggregate(await pieces(model, asked)) if streamed else await model.call(asked)
        messages += [*answered(reply, text), change] if change else []

    assert api.refusals == []
    assert reply.text == "3"
    assert api.tools == [["now"]] * 3
    assert betas(api) == [None, INLINE, INLINE]
    assert [message["role"] for message in api.bodies[2]["messages"]] == [
        "user", "assistant", "user", "system", "assistant", "user", "system",
    ]  # fmt: skip


async def test_responses_calls_a_tool_that_an_item_added(api: LoopbackApi) -> None:
    model = OpenAIResponsesModel("gpt-5.6", base_url=api.openai_url, api_key="k", cloud="")
    api.script(Reply(calls=[Call("now")]), Reply(calls=[Call("add", {"a": 1, "b": 2})]), Reply("3"))
    first = await model.call(prompt(QUESTION, options=LIST))
    messages = [QUESTION, *answered(first, "noon"), ADDED]
    second = await model.call(prompt(*messages, options=LIST))

    await model.call(prompt(*messages, *answered(second, "3"), WITHDRAWN, options=LIST))

    assert api.refusals == []
    assert api.tools == [["now"]] * 3
    assert [item["type"] for item in api.bodies[2]["input"]].count("additional_tools") == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda api: claude(api, "claude-opus-4-6"),
        lambda api: claude(api, cloud=None),
        lambda api: OpenAIResponsesModel("gpt-5.6", base_url=api.openai_url, api_key="k"),
        lambda api: OpenAIChatModel("gpt-5", base_url=api.openai_url, api_key="k"),
    ],
    ids=["an older model", "another address of anthropic", "another address of responses", "chat completions"],
)
async def test_nobody_else_is_sent_a_change_of_tools(api: LoopbackApi, make: Any) -> None:
    """The one who writes the list of tools has to have the tool in it."""
    api.script(Reply("Yes."))

    await make(api).call(prompt(QUESTION, ADDED, options=ChatOptions(tools=(NOW, ADD))))

    assert api.refusals == []
    assert betas(api) == [None]
    assert "addition" not in str(api.bodies[0])
    assert "additional_tools" not in str(api.bodies[0])


# Betas


async def test_betas_of_the_client_of_the_model_and_of_the_prompt_stand_beside_what_is_needed(api: LoopbackApi) -> None:
    own = AsyncAnthropic(base_url=api.url, api_key="k", default_headers={"Anthropic-Beta": "one"})
    options = ChatOptions(tools=(NOW,), extra={"extra_headers": {"ANTHROPIC-BETA": "three, one", "x-trace": "7"}})
    api.script(Reply("Yes."), Reply("Yes."), Reply("Yes."))

    async with own as client:
        model = claude(api, client=client, betas=["two"])
        await model.call(prompt(QUESTION, ADDED, options=options))
        await model.call(prompt(QUESTION, options=LIST))
        await claude(api, client=client).call(prompt(QUESTION, options=LIST))

    assert betas(api) == [f"three,one,two,{INLINE}", "one,two", "one"]
    assert api.requests[0].headers["x-trace"] == "7"


@pytest.mark.parametrize(("cloud", "beta"), [("", None), ("azure", None), ("bedrock", "tool-search-tool-2025-10-19")])
async def test_deferred_tools_need_a_header_at_some_clouds_alone(
    api: LoopbackApi, cloud: Any, beta: str | None
) -> None:
    api.script(Reply("Yes."), Reply("Yes."))
    model = claude(api, "claude-opus-4-6", cloud=cloud)

    await model.call(prompt(QUESTION, options=NATIVE))
    await model.call(prompt(QUESTION, options=LIST))

    assert betas(api) == [beta, None]


# Tool choices


@pytest.mark.parametrize("choice", ["required", "now"])
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_choice_that_the_model_refuses_is_auto_and_the_answer_and_the_log_say_so(
    api: LoopbackApi, choice: str, streamed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    api.script(Reply("Yes."))
    asked = prompt(QUESTION, options=ChatOptions(tools=(NOW,), tool_choice=choice))

    with caplog.at_level(logging.WARNING):
        reply = aggregate(await pieces(claude(api), asked)) if streamed else await claude(api).call(asked)

    assert api.bodies[0]["tool_choice"] == {"type": "auto"}
    assert reply.metadata["choice_sent"] == "auto"
    assert f"tool choice {choice!r}: 'auto' was sent" in caplog.text


@pytest.mark.parametrize(
    ("model", "choice", "sent"),
    [
        ("claude-opus-5", "required", {"type": "any"}),
        ("claude-haiku-5-5", "now", {"type": "tool", "name": "now"}),
        ("claude-opus-5-5", "none", {"type": "none"}),
        ("claude-opus-5-5", "auto", {"type": "auto"}),
    ],
)
async def test_a_choice_that_the_model_takes_is_sent_as_it_is(
    api: LoopbackApi, model: str, choice: str, sent: Any
) -> None:
    api.script(Reply("Yes."))

    reply = await claude(api, model).call(prompt(QUESTION, options=ChatOptions(tools=(NOW,), tool_choice=choice)))

    assert api.bodies[0]["tool_choice"] == sent
    assert "choice_sent" not in reply.metadata


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("model", "sent", "told"),
    [("gpt-5.5", "auto", {"choice_sent": "auto"}), ("gpt-5.6", {"type": "function", "name": "add"}, {})],
)
async def test_a_tool_that_an_item_has_added_can_be_chosen_where_the_model_takes_it(
    api: LoopbackApi, model: str, sent: Any, told: Any, streamed: bool
) -> None:
    responses = OpenAIResponsesModel(model, base_url=api.openai_url, api_key="k", cloud="")
    asked = prompt(QUESTION, ADDED, options=ChatOptions(tools=(NOW,), tool_choice="add"))
    api.script(Reply("Yes."))

    reply = aggregate(await pieces(responses, asked)) if streamed else await responses.call(asked)

    assert api.bodies[0]["tool_choice"] == sent
    assert {key: value for key, value in reply.metadata.items() if key == "choice_sent"} == told


async def test_a_choice_of_a_tool_that_claude_knows_from_a_message_alone_is_auto(api: LoopbackApi) -> None:
    api.script(Reply("Yes."))
    options = ChatOptions(tools=(NOW,), tool_choice="add")

    await claude(api, "claude-opus-5").call(prompt(QUESTION, ADDED, options=options))

    assert api.bodies[0]["tool_choice"] == {"type": "auto"}


async def test_a_choice_of_a_tool_that_nobody_knows_is_left_to_the_provider_to_refuse(api: LoopbackApi) -> None:
    with pytest.raises(ChatModelError, match="'typo' not found"):
        await claude(api, "claude-opus-5").call(prompt(options=ChatOptions(tools=(NOW,), tool_choice="typo")))


async def test_the_model_that_a_prompt_names_is_the_one_that_counts(api: LoopbackApi) -> None:
    api.script(Reply("Yes."))
    options = ChatOptions(model="claude-opus-5", tools=(NOW,), tool_choice="required")

    await claude(api, "claude-opus-5-5").call(prompt(QUESTION, options=options))

    assert api.bodies[0]["tool_choice"] == {"type": "any"}


# System messages


async def test_a_late_system_message_stays_in_place_or_is_the_users(api: LoopbackApi) -> None:
    """It is never moved to the front, where it would change what the model has read before all else."""
    said = [
        SystemMessage("Be brief."),
        QUESTION,
        AssistantMessage("3."),
        UserMessage("Why?"),
        SystemMessage("In French."),
    ]
    for model in ("claude-opus-5", "claude-opus-4-6"):
        api.script(Reply("Parce que."))
        await claude(api, model).call(prompt(*said))

    assert api.refusals == []
    assert [body["system"] for body in api.bodies] == ["Be brief.", "Be brief."]
    new, old = (body["messages"][2:] for body in api.bodies)
    assert new == [
        {"role": "user", "content": [{"type": "text", "text": "Why?"}]},
        {"role": "system", "content": [{"type": "text", "text": "In French."}]},
    ]
    told = {"type": "text", "text": "<system>\nIn French.\n</system>"}
    assert old == [{"role": "user", "content": [{"type": "text", "text": "Why?"}, told]}]


@pytest.mark.parametrize(
    ("cloud", "roles"), [("", ["system", "system", "user", "system"]), (None, ["system", "user", "user"])]
)
async def test_compatible_endpoints_are_sent_one_system_message_at_the_front(
    api: LoopbackApi, cloud: Any, roles: list[str]
) -> None:
    api.script(Reply("Yes."))
    model = OpenAIChatModel("m", base_url=api.openai_url, api_key="k", cloud=cloud)

    await model.call(
        prompt(SystemMessage("Be brief."), SystemMessage("Be kind."), QUESTION, SystemMessage("In French."))
    )

    assert [message["role"] for message in api.bodies[0]["messages"]] == roles


# Function tools on Chat Completions


async def test_tools_for_a_model_that_takes_none_on_chat_completions_are_refused_with_the_ways_out(
    api: LoopbackApi,
) -> None:
    model = OpenAIChatModel("gpt-5.6-sol", base_url=api.openai_url, api_key="k", cloud="")

    for effort in ({}, {"reasoning_effort": "low"}):
        with pytest.raises(BadSettingError, match=r"use OpenAIResponsesModel, or .*'reasoning_effort': 'none'"):
            await model.call(prompt(QUESTION, options=ChatOptions(tools=(NOW,), extra=effort)))
    with pytest.raises(BadSettingError, match="OpenAIResponsesModel"):
        await pieces(model, prompt(QUESTION, options=LIST))
    assert api.requests == []


async def test_the_same_model_takes_tools_without_reasoning_or_no_tools(api: LoopbackApi) -> None:
    model = OpenAIChatModel("gpt-5.6-sol", base_url=api.openai_url, api_key="k", cloud="")
    api.script(Reply("Yes."), Reply("Yes."))

    await model.call(prompt(QUESTION, options=ChatOptions(tools=(NOW,), extra={"reasoning_effort": "none"})))
    await model.call(prompt(QUESTION, options=ChatOptions()))

    assert api.refusals == []
