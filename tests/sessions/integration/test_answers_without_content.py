"""Answers without content, and the requests after them, in loops of one's own with the real SDKs."""

import json
from itertools import pairwise
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.kit.loopback import Call, LoopbackApi, Raw, Reply
from tests.kit.tool_search import OPTIONS, TOOLS
from toolsearch import Catalog, Session, ToolSearch
from toolsearch.wire import sendable_messages

SEARCH = Reply(calls=[Call("toolSearchTool", {"query": "select:send_mail"})], thinking="I need mail.")
THOUGHT = {"type": "thinking", "thinking": "Better not.", "signature": "s"}


@pytest.fixture
def session() -> Session:
    return ToolSearch(Catalog(TOOLS), encoder=None, options=OPTIONS).session("a")


def message(content: list[Any], stop_reason: str) -> Raw:
    usage = {"input_tokens": 1, "output_tokens": 1}
    body = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": content, "usage": usage}
    return Raw(body | {"stop_reason": stop_reason, "stop_sequence": None})


def completion(said: dict[str, Any], finish_reason: str) -> Raw:
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **said}, "finish_reason": finish_reason}
    return Raw({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})


async def claude(api: LoopbackApi, session: Session, messages: list[Any], model: str, *, keeps_empty: bool) -> None:
    client = AsyncAnthropic(base_url=api.url, api_key="k", max_retries=0)
    while True:
        tools = session.request("anthropic", model=model)
        sent = sendable_messages(messages, "anthropic")
        reply = await client.messages.create(max_tokens=100, messages=sent, **tools)
        if reply.content or keeps_empty:
            messages.append({"role": "assistant", "content": reply.content})
        results = await session.execute(reply)
        if not results:
            session.end_turn()
            return
        messages += results


@pytest.mark.parametrize("keeps_empty", [True, False], ids=["appended", "left out"])
@pytest.mark.parametrize("stop_reason", ["refusal", "end_turn"])
@pytest.mark.parametrize("model", ["claude-fable-5-1", "claude-opus-4-8", "claude-haiku-4-5"])
async def test_claude_goes_on_after_an_empty_answer_that_follows_a_search(
    api: LoopbackApi, session: Session, model: str, stop_reason: str, keeps_empty: bool
) -> None:
    api.script(SEARCH, message([], stop_reason), Reply("Hello.", thinking="Again."), Reply("Bye."))
    messages: list[Any] = []

    for said in ("Write.", "Then say hello.", "Bye."):
        messages.append({"role": "user", "content": said})
        await claude(api, session, messages, model, keeps_empty=keeps_empty)

    sent = [body["messages"] for body in api.bodies]
    assert api.refusals == []
    assert all(later[: len(before)] == before for before, later in pairwise(sent))
    assert len({json.dumps(body["tools"]) for body in api.bodies}) == 1
    said_nothing = [{"type": "text", "text": "(no answer)"}]
    is_needed = keeps_empty or model != "claude-haiku-4-5"  # to which no message has added tools
    assert [entry["content"] for entry in sent[-1]].count(said_nothing) == is_needed


@pytest.mark.parametrize("content", [[{"type": "text", "text": ""}], [THOUGHT]], ids=["empty text", "thought"])
async def test_claude_goes_on_after_an_answer_that_says_nothing(
    api: LoopbackApi, session: Session, content: list[Any]
) -> None:
    api.remembers = False  # nobody has signed that thought
    api.script(message(content, "max_tokens"), Reply("Hello."))
    messages: list[Any] = [{"role": "user", "content": "Hi."}]
    await claude(api, session, messages, "claude-opus-4-8", keeps_empty=True)
    messages.append({"role": "user", "content": "Hello?"})

    await claude(api, session, messages, "claude-opus-4-8", keeps_empty=True)

    kept = [block for block in content if block["type"] == "thinking"]
    assert api.refusals == []
    assert api.bodies[1]["messages"][1]["content"] == [*kept, {"type": "text", "text": "(no answer)"}]
    assert len(messages[1]["content"]) == 1  # the loop's own list stays as it was


@pytest.mark.parametrize("as_object", [True, False])
@pytest.mark.parametrize(
    ("said", "finish_reason", "sent"),
    [({}, "stop", ""), ({}, "length", ""), ({"refusal": "I cannot."}, "stop", "I cannot.")],
    ids=["empty", "cut off", "refused"],
)
async def test_chat_completions_goes_on_after_an_answer_whose_content_is_null(
    api: LoopbackApi, said: Any, finish_reason: str, sent: str, as_object: bool
) -> None:
    client = AsyncOpenAI(base_url=api.openai_url, api_key="k", max_retries=0)
    api.script(completion(said, finish_reason), Reply("Hello."))
    messages: list[Any] = [{"role": "user", "content": "Hi."}]
    reply = await client.chat.completions.create(model="gpt-4.1", messages=messages)
    answer = reply.choices[0].message
    messages += [answer if as_object else answer.model_dump(exclude_none=True), {"role": "user", "content": "Hello?"}]

    await client.chat.completions.create(model="gpt-4.1", messages=sendable_messages(messages, "openai"))

    assert api.refusals == []
    assert api.bodies[1]["messages"][1] == {"role": "assistant", "content": sent}
