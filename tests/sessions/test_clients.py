"""A session in the loop of the official clients: what a model's API is sent, request by request, by a real SDK.

The API is a server on the loopback interface whose model follows a script: search, call two tools at once, answer.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.kit.loopback import Call, LoopbackApi, Reply
from toolsearch import Catalog, PassThrough, Session, SessionOptions, ToolSearch

SEARCH = "toolSearchTool"
QUESTION = "What is 7 o'clock one zone further east? And pay the bill."
ANSWER = "8. There is no money."
SCRIPT = (
    Reply(
        "Let me see.", [Call(SEARCH, {"queries": ["convert time zone", "pay a bill"]}, "1")], thinking="Tools first."
    ),
    Reply(calls=[Call("convert_time", {"hour": 7}, "2"), Call("pay_bill", {"amount": 5}, "3")]),
    Reply(ANSWER),
)


def convert_time(hour: int) -> int:
    """Convert an hour from one time zone to another."""
    return hour + 1


def pay_bill(amount: float) -> str:
    """Pay a bill with money."""
    raise RuntimeError(f"no {amount:g} left")


@pytest.fixture
def session() -> Session:
    engine = ToolSearch(
        Catalog.from_functions([convert_time, pay_bill]), options=SessionOptions(pass_through=PassThrough(max_tools=0))
    )
    return engine.session("user-42")


Step = Callable[[], Awaitable[str | None]]


async def until_answered(step: Step) -> str:
    """Make one request after the other until the model calls no more tools, and return what it said."""
    while (text := await step()) is None:
        pass
    return text


def assert_what_became_of(session: Session, api: LoopbackApi, path: str, *, grows: bool = True) -> None:
    """The list of tools grew once, at its end, and stayed as long as the turn did; or it did not grow."""
    found = ["convert_time", "pay_bill"]
    assert api.refusals == []
    assert [request.path for request in api.requests] == [path] * 3
    assert api.tools == ([[SEARCH], [SEARCH, *found], [SEARCH, *found]] if grows else [[SEARCH, "callTool"]] * 3)
    assert session.discovered == found
    counters = session.state.counters
    assert (counters.requests, counters.search_rounds, counters.calls, counters.failed_calls) == (3, 1, 2, 1)


async def test_openai_chat_completions(api: LoopbackApi, session: Session) -> None:
    api.script(*SCRIPT)
    messages: list[Any] = [{"role": "user", "content": QUESTION}]

    async with AsyncOpenAI(api_key="k", base_url=api.openai_url, max_retries=0) as client:

        async def step() -> str | None:
            tools: Any = session.tools(format="openai")
            reply = await client.chat.completions.create(model="m", messages=messages, tools=tools)
            messages.append(reply.choices[0].message.model_dump(exclude_none=True))
            results = await session.execute(reply)
            messages.extend(results)
            return None if results else reply.choices[0].message.content

        assert await until_answered(step) == ANSWER

    assert_what_became_of(session, api, "/v1/chat/completions")
    _, _, search, _, converted, paid = api.bodies[2]["messages"]
    assert (search["role"], search["tool_call_id"]) == ("tool", "1")
    assert search["content"].count("loaded]") == 2
    assert converted == {"role": "tool", "tool_call_id": "2", "content": "8"}
    assert paid == {"role": "tool", "tool_call_id": "3", "content": "Error: no 5 left"}


async def test_openai_responses(api: LoopbackApi, session: Session) -> None:
    api.script(*SCRIPT)
    items: list[Any] = [{"role": "user", "content": QUESTION}]

    async with AsyncOpenAI(api_key="k", base_url=api.openai_url, max_retries=0) as client:

        async def step() -> str | None:
            tools: Any = session.tools(format="openai-responses")
            reply = await client.responses.create(model="m", input=items, tools=tools)
            items.extend(item.model_dump(exclude_none=True) for item in reply.output)
            results = await session.execute(reply)
            items.extend(results)
            return None if results else reply.output_text

        assert await until_answered(step) == ANSWER

    assert_what_became_of(session, api, "/v1/responses")
    results = [item for item in api.bodies[2]["input"] if item.get("type") == "function_call_output"]
    assert [result["call_id"] for result in results] == ["1", "2", "3"]
    assert results[0]["output"].count("loaded]") == 2
    assert [result["output"] for result in results[1:]] == ["8", "Error: no 5 left"]


async def test_anthropic_messages(api: LoopbackApi, session: Session) -> None:
    """No model is named, so the list must not change, and what was found is run by the call tool."""
    search, found, answer = SCRIPT
    by_call_tool = [Call("callTool", {"name": each.name, "arguments": each.arguments}, each.id) for each in found.calls]
    api.script(search, Reply(calls=by_call_tool), answer)
    messages: list[Any] = [{"role": "user", "content": QUESTION}]

    async with AsyncAnthropic(api_key="k", base_url=api.url, max_retries=0) as client:

        async def step() -> str | None:
            tools: Any = session.tools(format="anthropic")
            reply = await client.messages.create(model="m", max_tokens=100, messages=messages, tools=tools)
            messages.append({"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in reply.content]})
            results = await session.execute(reply)
            messages.extend(results)
            return None if results else "".join(block.text for block in reply.content if block.type == "text")

        assert await until_answered(step) == ANSWER

    assert_what_became_of(session, api, "/v1/messages", grows=False)
    answer = api.bodies[2]["messages"][-1]
    assert answer["role"] == "user"  # both results in one message, as the API wants them
    assert [(block["tool_use_id"], block["is_error"]) for block in answer["content"]] == [("2", False), ("3", True)]
    assert answer["content"][0]["content"] == [{"type": "text", "text": "8"}]
    assert answer["content"][1]["content"] == [{"type": "text", "text": "no 5 left"}]
