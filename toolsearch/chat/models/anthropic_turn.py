"""A model's turn at Anthropic: one reply, or several where the API pauses it while tools of its own are running."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, Final, cast

from toolsearch.chat.models.sdk import finish_reason
from toolsearch.chat.models.shapes import AnthropicMessage, MessagesUsage, read, without_nulls
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.answers import ChatResponse, FinishReason, Usage
from toolsearch.wire.messages import AssistantMessage, ProviderItems
from toolsearch.wire.replies import parse_tool_calls

PROVIDER: Final = "anthropic"
_PAUSED = ("pause_turn", "compaction")  # to be continued by sending the reply back
_FINISH: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


class AnthropicTurn:
    """What to ask, in *request*, and what has come so far.

    A paused reply is sent back as it came, with its container, at most *max_continuations* times; after that, or where
    it calls tools of ours, it is the answer, with the finish reason "other".
    """

    def __init__(self, request: Mapping[str, Any], max_continuations: int) -> None:
        self.request = dict(request)
        self._continuations_left = max_continuations
        self._parts: list[ChatResponse] = []

    def add(self, reply: object) -> bool:
        """Take *reply*, an SDK's message; return whether the turn goes on with another request."""
        message, sent = read(AnthropicMessage, reply)
        part = _response(message, sent)
        self._parts.append(part)
        items = taken_back(part.message.verbatim.items if part.message.verbatim else ())
        if message.stop_reason not in _PAUSED or part.message.tool_calls or not items or not self._continuations_left:
            return False
        self._continuations_left -= 1
        self.request["messages"] = _continued(self.request["messages"], items)
        if message.container is not None:
            self.request["container"] = _container(self.request.get("container"), message.container.id)
        return True

    def response(self) -> ChatResponse:
        """Return all replies as the one message that they are, with the sum of their usage."""
        last = self._parts[-1]
        messages = [part.message for part in self._parts]
        items = tuple(item for message in messages if message.verbatim for item in message.verbatim.items)
        text = "".join(message.text for message in messages)
        return ChatResponse(
            AssistantMessage(text, last.message.tool_calls, ProviderItems(PROVIDER, items)),
            last.finish_reason,
            reduce(add, (part.usage for part in self._parts)),
            last.metadata,
        )


def taken_back(blocks: Sequence[JsonObject]) -> list[dict[str, Json]]:
    """Return those of a model's *blocks* that the API takes back: models write empty texts, and it refuses them."""
    return [dict(block) for block in blocks if block["type"] != "text" or str(block["text"]).strip()]


def _response(message: AnthropicMessage, sent: dict[str, Json]) -> ChatResponse:
    _, calls = parse_tool_calls(sent | {"type": "message"})
    text = "".join(block.text or "" for block in message.content if block.type == "text")
    items = tuple(without_nulls(block) for block in sent["content"])
    return ChatResponse(
        AssistantMessage(text, tuple(calls), ProviderItems(PROVIDER, items)),
        finish_reason(_FINISH.get(message.stop_reason or "", "other"), calls),
        _usage(message.usage),
        {"id": message.id, "model": message.model},
    )


def _usage(usage: MessagesUsage | None) -> Usage:
    """Anthropic counts what was read from the cache, and what was written to it, beside the other input."""
    if usage is None:
        return Usage()
    cached = usage.cache_read_input_tokens or 0
    written = usage.cache_creation_input_tokens or 0
    return Usage((usage.input_tokens or 0) + cached + written, usage.output_tokens or 0, cached, written)


def _continued(messages: list[dict[str, Json]], blocks: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """The API takes roles in turn, so a second pause adds to the message of the first."""
    *before, last = messages
    if last["role"] == "assistant":
        return [*before, {**last, "content": [*last["content"], *blocks]}]
    return [*messages, {"role": "assistant", "content": blocks}]


def _container(asked: Json, container_id: str) -> Json:
    """What its tools have made is in the container; skills, where the caller asks for some, stay beside its id."""
    return {**cast("JsonObject", asked), "id": container_id} if isinstance(asked, dict) else container_id
