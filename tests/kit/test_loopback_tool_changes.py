"""Tools that come and go in the midst of a conversation: what Anthropic and OpenAI take of it, and what they refuse.

Each test sends a good request first, and then the same with one thing wrong.
"""

from typing import Any

import anthropic
import openai
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.kit.loopback import Call, LoopbackApi, Reply, available_tools
from tests.kit.test_loopback import (
    ASKED,
    LATE,
    OBJECT,
    REFERENCE,
    SAID,
    TEXT,
    function,
    response_function,
    results,
    tool,
    uses,
)

INLINE = {"anthropic-beta": "inline-tools-2026-09-15"}
BY_REFERENCE = {"anthropic-beta": "mid-conversation-tool-changes-2026-07-01"}
BINDS = ["claude-fable-5-1", "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-mythos-5-2"]


def defined(name: str) -> dict[str, Any]:
    return {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": tool(name)}}


def changed(kind: str, name: str) -> dict[str, Any]:
    return {"type": f"tool_{kind}", "tool": {"type": "tool_reference", "name": name}}


def system(*blocks: Any) -> dict[str, Any]:
    return {"role": "system", "content": list(blocks)}


async def ask_claude(api: LoopbackApi, *messages: Any, model: str = "claude-opus-5", **more: Any) -> Any:
    api.script(Reply("yes"))
    asked: dict[str, Any] = {"model": model, "max_tokens": 9, "messages": list(messages), "tools": [tool("add")]}
    async with AsyncAnthropic(api_key="k", base_url=api.url, max_retries=0) as client:
        return await client.messages.create(**(asked | more))


async def refused_by_claude(api: LoopbackApi, reason: str, *messages: Any, **more: Any) -> None:
    with pytest.raises(anthropic.BadRequestError, match=reason):
        await ask_claude(api, *messages, **more)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ([ASKED, system(TEXT)], [ASKED, system(TEXT), ASKED]),
        ([ASKED, ASKED, system(TEXT), SAID, ASKED], [ASKED, system(TEXT), ASKED, SAID, ASKED]),
        ([ASKED, uses("1"), results("1"), system(TEXT)], [ASKED, uses("1"), system(TEXT), results("1")]),
        ([ASKED, SAID, ASKED], [ASKED, SAID, system(TEXT)]),
    ],
)
async def test_a_system_message_stands_between_users_and_the_model(api: LoopbackApi, good: Any, bad: Any) -> None:
    await ask_claude(api, *good)
    await refused_by_claude(api, "role 'system' must precede an 'assistant' message", *bad)


@pytest.mark.parametrize("model", ["claude-sonnet-5", "claude-haiku-4-5", "anthropic.claude-opus-5", "m"])
async def test_a_system_message_among_the_others_needs_a_model_that_takes_it(api: LoopbackApi, model: str) -> None:
    await ask_claude(api, ASKED, system(TEXT), model="claude-haiku-5-5")
    await refused_by_claude(api, 'Unexpected role "system"', ASKED, system(TEXT), model=model)


@pytest.mark.parametrize("header", [None, "advanced-tool-use-2025-11-20", BY_REFERENCE["anthropic-beta"]])
async def test_a_definition_in_a_message_needs_its_beta_header(api: LoopbackApi, header: str | None) -> None:
    await ask_claude(api, ASKED, system(defined("late")), extra_headers=INLINE)
    headers = {"anthropic-beta": header} if header else {}
    await refused_by_claude(api, "requires the beta header", ASKED, system(defined("late")), extra_headers=headers)


async def test_a_tool_is_added_by_reference_to_one_that_is_declared(api: LoopbackApi) -> None:
    declared = [tool("add"), LATE]
    await ask_claude(api, ASKED, system(changed("addition", "late")), tools=declared, extra_headers=BY_REFERENCE)
    assert available_tools(api.requests[-1]) == {"add", "late"}
    await refused_by_claude(
        api, "'late' not found in `tools`", ASKED, system(changed("addition", "late")), extra_headers=BY_REFERENCE
    )


async def test_a_tool_is_withdrawn_that_is_declared_or_was_defined_before(api: LoopbackApi) -> None:
    history = [ASKED, system(defined("late")), SAID, ASKED]
    await ask_claude(api, *history, system(changed("removal", "late")), extra_headers=INLINE)
    assert available_tools(api.requests[-1]) == {"add"}
    await ask_claude(api, ASKED, system(changed("removal", "add")), extra_headers=INLINE)
    await refused_by_claude(
        api, "'late' not found in `tools`", ASKED, system(changed("removal", "late")), extra_headers=INLINE
    )


async def test_a_definition_that_changed_is_withdrawn_before_it_comes_back(api: LoopbackApi) -> None:
    history = [ASKED, system(defined("late")), SAID, ASKED]
    gone = system(changed("removal", "late"))
    await ask_claude(api, *history, gone, SAID, ASKED, system(defined("late")), extra_headers=INLINE)
    await refused_by_claude(api, "must be unique", *history, system(defined("late")), extra_headers=INLINE)
    both = system(changed("removal", "late"), defined("late"))
    await refused_by_claude(api, "they must be unique", *history, both, extra_headers=INLINE)


async def test_a_tool_that_can_be_called_already_is_not_defined_again(api: LoopbackApi) -> None:
    await refused_by_claude(api, "must be unique", ASKED, system(defined("add")), extra_headers=INLINE)


async def test_a_reference_in_a_result_needs_a_model_that_takes_it(api: LoopbackApi) -> None:
    asked = [ASKED, uses("1"), results("1", content=REFERENCE)]
    await ask_claude(api, *asked, model="claude-haiku-4-5", tools=[tool("add"), LATE])
    assert available_tools(api.requests[-1]) == {"add", "late"}
    await refused_by_claude(
        api, "not supported on this model", *asked, model="claude-opus-4-2", tools=[tool("add"), LATE]
    )


async def test_a_deferred_tool_has_no_cache_mark(api: LoopbackApi) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    await ask_claude(api, ASKED, tools=[tool("add", **mark), LATE])
    await refused_by_claude(api, "cannot have cache_control", ASKED, tools=[tool("add"), LATE | mark])


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "add"}])
async def test_newer_models_refuse_a_forced_choice(api: LoopbackApi, choice: Any) -> None:
    await ask_claude(api, ASKED, tool_choice=choice, model="claude-haiku-5-5")
    await ask_claude(api, ASKED, tool_choice={"type": "auto"}, model="claude-opus-5-5")
    for model in ("claude-opus-5-5", "claude-sonnet-5-5", "claude-fable-5-1", "claude-mythos-5-1"):
        await refused_by_claude(api, "are not supported for this model", ASKED, tool_choice=choice, model=model)


async def test_a_choice_needs_tools(api: LoopbackApi) -> None:
    await refused_by_claude(
        api, "only be specified while providing tools", ASKED, tools=anthropic.omit, tool_choice={"type": "auto"}
    )
    with pytest.raises(openai.BadRequestError, match="must be specified with 'tools'"):
        await ask_gpt(api, ASKED, tools=openai.omit, tool_choice="required")


# Thinking


async def think(api: LoopbackApi, model: str) -> list[Any]:
    """A question, and the model's thoughtful answer."""
    api.script(Reply("Because.", thinking="Why?"))
    async with AsyncAnthropic(api_key="k", base_url=api.url) as client:
        asked: dict[str, Any] = {"messages": [ASKED], "tools": [tool("add")], "system": "Be brief."}
        reply = await client.messages.create(model=model, max_tokens=9, **asked)
    said = {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in reply.content]}
    return [ASKED, said, ASKED]


EDITS = [
    {"tools": [tool("add"), tool("late")]},
    {"tools": [tool("add", description="Adds.")]},
    {"system": "Be long."},
]


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("model", BINDS)
async def test_thinking_is_bound_to_tools_and_system_text(api: LoopbackApi, model: str, edit: Any) -> None:
    history = await think(api, model)
    await ask_claude(api, *history, model=model, system="Be brief.")
    await refused_by_claude(
        api, "Invalid signature in thinking block", *history, model=model, **({"system": "Be brief."} | edit)
    )


async def test_thinking_is_bound_to_the_messages_before_it(api: LoopbackApi) -> None:
    _, said, then = await think(api, "claude-opus-5-5")
    other = {"role": "user", "content": "And now?"}
    await refused_by_claude(api, "Invalid signature", other, said, then, model="claude-opus-5-5", system="Be brief.")


@pytest.mark.parametrize("edit", EDITS)
async def test_older_models_bind_thinking_to_nothing(api: LoopbackApi, edit: Any) -> None:
    history = await think(api, "claude-opus-5")
    await ask_claude(api, *history, **({"system": "Be brief."} | edit))


async def test_no_model_takes_thinking_that_was_changed(api: LoopbackApi) -> None:
    first, said, then = await think(api, "claude-opus-5")
    thinking, text = said["content"]
    for wrong in (thinking | {"thinking": "What?"}, thinking | {"signature": "x"}):
        message = said | {"content": [wrong, text]}
        await refused_by_claude(api, "Invalid signature", first, message, then, system="Be brief.")


async def test_a_dropped_thought_makes_those_after_it_invalid(api: LoopbackApi) -> None:
    first, said, then = await think(api, "claude-opus-5-5")
    api.script(Reply("So.", thinking="Hm."))
    async with AsyncAnthropic(api_key="k", base_url=api.url) as client:
        asked: dict[str, Any] = {"messages": [first, said, then], "tools": [tool("add")], "system": "Be brief."}
        reply = await client.messages.create(model="claude-opus-5-5", max_tokens=9, **asked)
    again = {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in reply.content]}
    await ask_claude(api, first, said, then, again, ASKED, model="claude-opus-5-5", system="Be brief.")
    without = said | {"content": said["content"][1:]}
    await refused_by_claude(
        api, "Invalid signature", first, without, then, again, ASKED, model="claude-opus-5-5", system="Be brief."
    )


async def test_a_deferred_tool_is_part_of_the_prompt_from_its_first_reference_on(api: LoopbackApi) -> None:
    """Another deferred tool that nothing refers to is no edit; another definition of the one referred to is."""
    api.script(Reply(calls=[Call("add")], thinking="Why?"), Reply("So.", thinking="Hm."))
    other = tool("other", defer_loading=True)
    asked: dict[str, Any] = {"model": "claude-opus-5-5", "max_tokens": 9}
    history: list[Any] = [ASKED]
    async with AsyncAnthropic(api_key="k", base_url=api.url) as client:
        for _ in range(2):
            reply = await client.messages.create(messages=history, tools=[tool("add"), LATE], **asked)
            blocks = [block.model_dump(exclude_none=True) for block in reply.content]
            history.append({"role": "assistant", "content": blocks})
            if reply.stop_reason == "tool_use":
                history.append(results(blocks[-1]["id"], content=REFERENCE))
    await ask_claude(api, *history, ASKED, model="claude-opus-5-5", tools=[tool("add"), LATE, other])
    changed_since = LATE | {"description": "Comes late."}
    await refused_by_claude(
        api, "Invalid signature", *history, ASKED, model="claude-opus-5-5", tools=[tool("add"), changed_since]
    )


# OpenAI


async def ask_gpt(api: LoopbackApi, *items: Any, model: str = "gpt-5.6", **more: Any) -> Any:
    api.script(Reply("yes"))
    async with AsyncOpenAI(api_key="k", base_url=api.openai_url, max_retries=0) as client:
        asked: dict[str, Any] = {"tools": [response_function("add")]}
        return await client.responses.create(model=model, input=list(items), **(asked | more))


async def refused_by_gpt(api: LoopbackApi, reason: str, *items: Any, **more: Any) -> None:
    with pytest.raises(openai.BadRequestError, match=reason):
        await ask_gpt(api, *items, **more)


def additional(*names: str, **more: Any) -> dict[str, Any]:
    return {"type": "additional_tools", "role": "developer", "tools": [*map(response_function, names)]} | more


async def test_additional_tools_are_for_the_endpoint_of_openai(api: LoopbackApi) -> None:
    await ask_gpt(api, ASKED, additional("late"))
    assert available_tools(api.requests[-1]) == {"add", "late"}
    await refused_by_gpt(api, "additional_tools", ASKED, additional("late"), model="llama-5")
    await refused_by_gpt(api, "only 'developer'", ASKED, additional("late", role="user"))


async def test_additional_tools_have_names_of_their_own(api: LoopbackApi) -> None:
    await refused_by_gpt(api, "must be unique", ASKED, additional("add"))
    await refused_by_gpt(api, "must be unique", ASKED, additional("late"), SAID, ASKED, additional("late"))


async def test_an_additional_tool_is_chosen_by_name_on_newer_models_only(api: LoopbackApi) -> None:
    choice = {"type": "function", "name": "late"}
    await ask_gpt(api, ASKED, additional("late"), tool_choice=choice)
    await refused_by_gpt(api, "tool_choice", ASKED, additional("late"), tool_choice=choice, model="gpt-5.4")


async def test_a_hosted_tool_search_needs_a_deferred_tool(api: LoopbackApi) -> None:
    deferred = response_function("late", defer_loading=True)
    await ask_gpt(api, ASKED, tools=[{"type": "tool_search"}, deferred])
    await refused_by_gpt(api, "requires at least one deferred tool", ASKED, tools=[{"type": "tool_search"}])
    await refused_by_gpt(api, "Deferred tools require tools.tool_search", ASKED, tools=[deferred])
    await refused_by_gpt(
        api, "is not supported with gpt-5.1", ASKED, tools=[{"type": "tool_search"}, deferred], model="gpt-5.1"
    )


async def test_a_tool_search_that_the_client_runs_needs_none(api: LoopbackApi) -> None:
    search = {"type": "tool_search", "execution": "client", "description": "Finds tools.", "parameters": OBJECT}
    await ask_gpt(api, ASKED, tools=[search])
    assert available_tools(api.requests[-1]) == {"toolSearchTool"}


async def test_two_hundred_functions_are_taken_and_no_more(api: LoopbackApi) -> None:
    await ask_gpt(api, ASKED, tools=[response_function(f"t{number}") for number in range(200)])
    await refused_by_gpt(api, "array too long", ASKED, tools=[response_function(f"t{number}") for number in range(201)])


@pytest.mark.parametrize(
    ("model", "good", "bad"),
    [("gpt-5.6-terra", "none", None), ("gpt-6", "none", "low"), ("gpt-5.4", None, "low"), ("gpt-5.1", "low", "?")],
)
async def test_chat_completions_takes_no_functions_while_newer_models_reason(
    api: LoopbackApi, model: str, good: str | None, bad: str | None
) -> None:
    async with AsyncOpenAI(api_key="k", base_url=api.openai_url, max_retries=0) as client:

        async def ask(effort: str | None, **more: Any) -> None:
            api.script(Reply("yes"))
            more |= {"reasoning_effort": effort} if effort else {}
            messages: list[Any] = [ASKED]
            await client.chat.completions.create(model=model, messages=messages, **more)

        await ask(bad)
        await ask(good, tools=[function("add", OBJECT)])
        if bad != "?":
            with pytest.raises(openai.BadRequestError, match="use /v1/responses or set reasoning_effort to 'none'"):
                await ask(bad, tools=[function("add", OBJECT)])
