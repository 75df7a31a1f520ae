"""Where tools are deferred, a model is also told what a search has found and not loaded: the SDKs, byte by byte."""

import json
import logging
from dataclasses import dataclass, replace
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.kit.loopback import Call, LoopbackApi, Reply
from toolsearch import PassThrough, Session, SessionOptions, Tool, ToolDefinition, ToolSearch
from toolsearch.chat import (
    AnthropicModel,
    ChatClient,
    MemoryAdvisor,
    MessageWindowMemory,
    OpenAIResponsesModel,
    ToolSearchAdvisor,
)
from toolsearch.sessions import tool_lists
from toolsearch.wire.capabilities import Capabilities, Endpoint, capabilities_of

SEARCH = "toolSearchTool"
CLAUDE, GPT = "claude-haiku-4-5", "gpt-5.4"
MODELS = pytest.mark.parametrize("model", [CLAUDE, GPT])
FOUND = ["pay_bill", "pay_rent", "pay_tax"]


class Pays:
    async def call(self, arguments: Any, context: Any) -> str:  # noqa: ARG002  as the protocol has it
        return "paid"


def engine_of(*names: str) -> ToolSearch:
    tools = [Tool(ToolDefinition(name, f"Pay a {name.removeprefix('pay_')}."), callback=Pays()) for name in names]
    return ToolSearch(tools, encoder=None, options=SessionOptions(pass_through=PassThrough(0), exposure="deferred"))


@dataclass
class Loop:
    """The user's own loop."""

    api: LoopbackApi
    model: str
    session: Session

    def __post_init__(self) -> None:
        self.messages: list[Any] = [{"role": "user", "content": "Go on.", **self._typed()}]

    def _typed(self) -> dict[str, str]:
        return {"type": "message"} if self.model == GPT else {}

    async def ask(self, *calls: Call) -> list[dict[str, Any]]:
        """Let the model make *calls*; return what is appended for them."""
        self.api.script(Reply(calls=list(calls)) if calls else Reply("Done."))
        if self.model == CLAUDE:
            claude = AsyncAnthropic(api_key="k", base_url=self.api.url, max_retries=0)
            request = self.session.request("anthropic", model=self.model)
            reply: Any = await claude.messages.create(max_tokens=1_000, messages=self.messages, **request)
            said = [{"role": "assistant", "content": [each.model_dump(exclude_none=True) for each in reply.content]}]
        else:
            gpt = AsyncOpenAI(api_key="k", base_url=self.api.openai_url, max_retries=0)
            request = self.session.request("openai-responses", model=self.model)
            reply = await gpt.responses.create(input=self.messages, store=False, **request)
            said = [item.model_dump(exclude_none=True) for item in reply.output]
        results = await self.session.execute(reply)
        self.messages += [*said, *results]
        return results


def told_beside(model: str, body: dict[str, Any]) -> list[str]:
    """What a request says of searches after their results."""
    if model == CLAUDE:
        blocks = [block for message in body["messages"] if message["role"] == "user" for block in message["content"]]
        texts = [block["text"] for block in blocks if isinstance(block, dict) and block["type"] == "text"]
    else:
        texts = [item["content"] for item in body["input"] if item.get("role") == "developer"]
    return [text for text in texts if text.startswith(f"{SEARCH}: ")]


def begins_with(body: dict[str, Any], before: dict[str, Any]) -> bool:
    key = "messages" if "messages" in body else "input"
    return bool(body["tools"] == before["tools"] and body[key][: len(before[key])] == before[key])


@MODELS
async def test_a_tool_that_is_only_named_can_be_loaded_by_its_name(api: LoopbackApi, model: str) -> None:
    with engine_of(*FOUND) as engine:
        loop = Loop(api, model, engine.session("s"))
        await loop.ask(Call(SEARCH, {"queries": ["pay a bill"]}))
        await loop.ask(Call(SEARCH, {"queries": ["select:pay_tax"]}))
        await loop.ask(Call("pay_tax", {}))
        await loop.ask()
        first, *others = api.bodies

    assert api.refusals == []
    assert told_beside(model, first) == []
    [told] = told_beside(model, others[0])
    assert "- pay_tax() [related]: Pay a tax." in told.splitlines()
    assert "pay_bill" not in told  # the model reads its definition
    assert [told_beside(model, each) for each in others[1:]] == [
        [told]
    ] * 2  # nothing is left to say of the second search
    assert all(begins_with(after, before) for before, after in zip(api.bodies, others, strict=False))


@MODELS
async def test_a_first_search_in_vain_is_answered_in_the_providers_own_way(api: LoopbackApi, model: str) -> None:
    with engine_of(*FOUND) as engine:
        loop = Loop(api, model, engine.session("s"))
        await loop.ask(Call(SEARCH, {"queries": ["zero gravity"]}))
        await loop.ask(Call(SEARCH, {"queries": ["pay a bill"]}))
        await loop.ask()

    assert api.refusals == []
    assert "No tool found." in json.dumps(api.bodies[1])
    assert len({json.dumps(body["tools"]) for body in api.bodies}) == 1


@MODELS
async def test_a_chat_tells_it_as_well_and_sends_it_again_word_for_word(api: LoopbackApi, model: str) -> None:
    made = (
        AnthropicModel(model, base_url=api.url, api_key="k", cloud="")
        if model == CLAUDE
        else OpenAIResponsesModel(model, base_url=api.openai_url, api_key="k", cloud="")
    )
    with engine_of(*FOUND) as engine:
        advisors = [ToolSearchAdvisor(engine, mode="deferred"), MemoryAdvisor(MessageWindowMemory(max_messages=100))]
        client = ChatClient(made, advisors=advisors)
        api.script(
            Reply(calls=[Call(SEARCH, {"queries": ["pay a bill"]})]),
            Reply(calls=[Call(SEARCH, {"queries": ["select:pay_tax"]})]),
            *(Reply("Done."), Reply("And again.")),
        )
        await client.prompt("Pay.").context(conversation_id="s").call()
        await client.prompt("Go on.").context(conversation_id="s").call()
        await made.close()

    assert api.refusals == []
    told = [told_beside(model, body) for body in api.bodies]
    assert told[0] == []
    assert told[1:] == [told[1]] * 3
    assert "- pay_tax() [related]: Pay a tax." in told[1][0].splitlines()


@pytest.fixture
def two_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request may defer two tools, in place of ten thousand."""

    def known(endpoint: Endpoint) -> Capabilities:
        return replace(capabilities_of(endpoint), max_deferred=2)

    monkeypatch.setattr(tool_lists, "capabilities_of", known)


@pytest.mark.usefixtures("two_at_most")
async def test_what_is_too_much_to_be_deferred_is_defined_in_the_answer_and_run_by_the_call_tool(
    api: LoopbackApi, caplog: pytest.LogCaptureFixture
) -> None:
    with engine_of(*FOUND) as engine, caplog.at_level(logging.WARNING):
        loops = [Loop(api, CLAUDE, engine.session(name)) for name in ("one", "two")]
        for loop in loops:
            await loop.ask(Call(SEARCH, {"queries": ["select:pay_bill,pay_tax"]}))
        [message] = await loops[0].ask(Call("callTool", {"name": "pay_tax", "arguments": {}}))
        await loops[0].ask()
        sent = loops[0].session.state.sent.now

    assert api.refusals == []
    assert message["content"][0]["content"] == [{"type": "text", "text": "paid"}]
    assert [tool["name"] for tool in api.bodies[0]["tools"]] == [SEARCH, "callTool", "pay_bill", "pay_rent"]
    [told] = told_beside(CLAUDE, api.bodies[2])
    assert '{"name":"pay_tax","callWith":"callTool",' in told
    assert (sent.has_shown("pay_bill"), sent.has_shown("pay_tax"), sent.has_shown("pay_rent")) == (True, True, False)
    assert "pay_tax" not in sent.visible
    [note] = engine.notes
    assert "takes 2 deferred tools" in note
    assert "callTool" in note
    assert [record.message for record in caplog.records].count(note) == 1


@MODELS
async def test_what_is_said_beside_an_answer_is_counted(api: LoopbackApi, model: str) -> None:
    with engine_of(*FOUND) as engine:
        loop = Loop(api, model, engine.session("s"))
        await loop.ask(Call(SEARCH, {"queries": ["pay a bill"]}))
        before = loop.session.state.counters.history_tokens
        await loop.ask()
        [told] = told_beside(model, api.bodies[1])
        written = engine.counter.count(json.dumps({"queries": ["pay a bill"]}, separators=(",", ":")))
        said = engine.counter.count(told.removeprefix(f"{SEARCH}: "))

    assert before == written + said
