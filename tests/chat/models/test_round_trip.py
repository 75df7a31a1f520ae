"""What a provider sent goes back to it through the official SDKs: every key and value, null and unknown ones too.

Providers bind what a model has thought to all that came before it, and cache prompts by their prefix.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.kit.chat_models import QUESTION, pieces
from toolsearch.chat import AnthropicModel, ChatModel, OpenAIResponsesModel, Prompt, UserMessage, aggregate

# Of blocks that it does not know, Anthropic's SDK warns when it puts a stream together.
pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")

BLOCKS: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "Hm.\u2028é", "signature": "s==", "later": {"b": None, "a": 1}},
    {"type": "redacted_thinking", "data": "abc", "later": 1},
    {"type": "text", "text": "Let me see.", "citations": None},
    {"type": "of_tomorrow", "text": None, "weight": 1.0, "inner": {"z": 1, "a": None}},
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": None, "b": 1}},
    {
        "type": "web_search_tool_result",
        "tool_use_id": "s1",
        "content": [{"type": "web_search_result", "page_age": None}],
    },
]
MESSAGE = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": BLOCKS}
STOPPED = {"stop_reason": "end_turn", "stop_sequence": None}
USAGE = {"usage": {"input_tokens": 1, "output_tokens": 1}}
ITEMS: list[dict[str, Any]] = [
    {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e==", "status": None, "later": {"b": None}},
    {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "sources": None}},
    {"type": "of_tomorrow", "id": "x", "z": 1, "a": None},
    {
        "type": "message",
        "id": "msg",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Hi.", "annotations": [], "logprobs": None}],
    },
]
RESPONSE = {"id": "r", "object": "response", "created_at": 1, "status": "completed", "model": "g", "output": ITEMS}


def anthropic_events() -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**MESSAGE, **USAGE, "content": []}}]
    for index, block in enumerate(BLOCKS):
        begun, deltas = block, []
        if block["type"] == "thinking":
            begun = {**block, "thinking": "", "signature": ""}
            deltas = [{"type": f"{key}_delta", key: block[key]} for key in ("thinking", "signature")]
        elif block["type"] == "server_tool_use":
            begun = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        events += [
            {"type": "content_block_start", "index": index, "content_block": begun},
            *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": index},
        ]
    return [*events, {"type": "message_delta", "delta": STOPPED, **USAGE}, {"type": "message_stop"}]


class Provider(httpx2.AsyncBaseTransport):
    """Answers each request with the same, and keeps what it was asked."""

    def __init__(self, whole: dict[str, Any], events: list[dict[str, Any]]) -> None:
        self.asked: list[dict[str, Any]] = []
        self._whole = whole
        self._events = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(json.loads(await request.aread()))
        if self.asked[-1].get("stream"):
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, text=self._events)
        return httpx2.Response(200, json=self._whole)


@pytest.fixture
async def anthropic() -> AsyncIterator[tuple[Provider, ChatModel]]:
    provider = Provider({**MESSAGE, **STOPPED, **USAGE}, anthropic_events())
    async with AsyncAnthropic(api_key="k", http_client=httpx2.AsyncClient(transport=provider)) as client:
        yield provider, AnthropicModel("claude-opus-5", client=client)


@pytest.fixture
async def responses() -> AsyncIterator[tuple[Provider, ChatModel]]:
    done = {"type": "response.completed", "sequence_number": 1, "response": RESPONSE}
    provider = Provider(RESPONSE, [done])
    async with AsyncOpenAI(api_key="k", http_client=httpx2.AsyncClient(transport=provider)) as client:
        yield provider, OpenAIResponsesModel("gpt-5.6", client=client)


async def second_request(provider: Provider, model: ChatModel, *, streamed: bool) -> dict[str, Any]:
    asked = Prompt((QUESTION,))
    first = aggregate(await pieces(model, asked)) if streamed else await model.call(asked)
    await model.call(Prompt((QUESTION, first.message, UserMessage("And then?"))))
    return provider.asked[-1]


@pytest.mark.parametrize("streamed", [False, True])
async def test_all_that_anthropic_sent_goes_back(anthropic: tuple[Provider, ChatModel], streamed: bool) -> None:
    body = await second_request(*anthropic, streamed=streamed)

    assert body["messages"][1] == {"role": "assistant", "content": BLOCKS}


@pytest.mark.parametrize("streamed", [False, True])
async def test_all_that_openai_sent_goes_back(responses: tuple[Provider, ChatModel], streamed: bool) -> None:
    body = await second_request(*responses, streamed=streamed)

    assert body["input"][1:-1] == ITEMS


async def test_it_goes_back_in_the_same_bytes_each_time(
    anthropic: tuple[Provider, ChatModel], responses: tuple[Provider, ChatModel]
) -> None:
    """Streamed or whole: the order of keys is the SDK's, and always the same."""
    for key, (provider, model) in {"messages": anthropic, "input": responses}.items():
        sent = [
            json.dumps((await second_request(provider, model, streamed=streamed))[key]) for streamed in (False, True)
        ]
        assert sent[0] == sent[1]
