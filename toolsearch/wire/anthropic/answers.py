"""Answers in the format of Anthropic's Messages, whole and in the events of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pydantic import BaseModel

from toolsearch.tools.calls import marked_unfinished
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.answers import (
    ChatChunk,
    ChatResponse,
    FinishReason,
    ToolCallDelta,
    Usage,
    finish_reason_with_calls,
    read,
)
from toolsearch.wire.anthropic.messages import read_calls, reply_items, without_empty_texts, write_calls
from toolsearch.wire.anthropic.requests import PROVIDER
from toolsearch.wire.messages import AssistantMessage, ProviderItems, verbatim_items

if TYPE_CHECKING:
    from anthropic.lib.streaming import ParsedMessageStreamEvent


class MessagesUsage(BaseModel):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class Block(BaseModel):
    type: str
    text: str | None = None


class Container(BaseModel):
    id: str


class AnthropicMessage(BaseModel):
    id: str | None = None
    model: str | None = None
    content: list[Block]
    stop_reason: str | None = None
    container: Container | None = None
    usage: MessagesUsage | None = None


_PAUSED = ("pause_turn", "compaction")  # stop reasons after which the model goes on once the reply is sent back

_FINISH: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}

_WRITTEN_FINISH: Mapping[FinishReason, str] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
    "return_direct": "end_turn",
    "call_limit": "end_turn",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply: a whole answer, or a part of one. If *to_send_back* holds blocks, the answer goes on once they are
    sent back.

    container  id of the container of the API's own tools; the request that goes on has to name it
    """

    answer: ChatResponse
    to_send_back: list[dict[str, Json]]
    container: str | None


def read_reply(reply: object) -> Reply:
    """Read *reply*, an SDK's message or the same as JSON. Raises ChatModelError for anything else."""
    message, sent = read(AnthropicMessage, reply)
    answer = _read_answer(message, sent)
    is_paused = message.stop_reason in _PAUSED and not answer.message.tool_calls
    blocks = without_empty_texts(verbatim_items(answer.message, PROVIDER)) if is_paused else []
    return Reply(answer, blocks, message.container.id if message.container else None)


def read_answer(reply: object) -> ChatResponse:
    """The answer in *reply*, with the finish reason "other" if the API has only paused it."""
    return read_reply(reply).answer


def write_answer(answer: ChatResponse) -> dict[str, Json]:
    items = verbatim_items(answer.message, PROVIDER)
    text = [{"type": "text", "text": answer.text, "citations": None}] if answer.text else []
    return {
        "id": answer.metadata.get("id"),
        "type": "message",
        "role": "assistant",
        "model": answer.metadata.get("model"),
        "content": [dict(item) for item in items] or [*text, *write_calls(answer.message.tool_calls)],
        "stop_reason": write_finish_reason(answer.finish_reason),
        "stop_sequence": None,
        "usage": write_usage(answer.usage),
    }


def read_event(event: ParsedMessageStreamEvent[None]) -> ChatChunk | None:
    """The piece of text or call in a stream's *event*; None if the event has none for a reader."""
    if event.type == "content_block_start" and event.content_block.type == "tool_use":
        begun = ToolCallDelta(event.index, event.content_block.id, event.content_block.name)
        return ChatChunk(tool_calls=(begun,))
    if event.type != "content_block_delta":
        return None
    if event.delta.type == "text_delta":
        return ChatChunk(text=event.delta.text)
    if event.delta.type == "input_json_delta" and event.delta.partial_json:
        return ChatChunk(tool_calls=(ToolCallDelta(event.index, arguments=event.delta.partial_json),))
    return None


def read_finish_reason(reason: str | None) -> FinishReason:
    return _FINISH.get(reason or "", "other")


def write_finish_reason(reason: FinishReason) -> str:
    """The format has no word for "other"; it is written as a cut-off answer, so that nobody runs its calls."""
    return _WRITTEN_FINISH.get(reason, "max_tokens")


def read_usage(usage: MessagesUsage | None) -> Usage:
    """Anthropic counts cached tokens, read and written, apart from the other input tokens."""
    if usage is None:
        return Usage()
    cached = usage.cache_read_input_tokens or 0
    written = usage.cache_creation_input_tokens or 0
    return Usage((usage.input_tokens or 0) + cached + written, usage.output_tokens or 0, cached, written)


def write_usage(usage: Usage) -> dict[str, Json]:
    return {
        "input_tokens": usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }


def with_container(request: Mapping[str, Json], container: str) -> dict[str, Json]:
    """Return *request* with the id of the *container* that holds the files of the API's own tools.

    Skills, where the caller asks for some, stay beside the id.
    """
    asked = request.get("container")
    named = {**cast("JsonObject", asked), "id": container} if isinstance(asked, Mapping) else container
    return {**request, "container": named}


def _read_answer(message: AnthropicMessage, sent: dict[str, Json]) -> ChatResponse:
    held = reply_items(sent | {"role": "assistant", "type": "message"})
    calls = marked_unfinished(read_calls(held.items), held.unfinished) if held else []
    text = "".join(block.text or "" for block in message.content if block.type == "text")
    items = tuple(sent["content"])
    return ChatResponse(
        AssistantMessage(text, tuple(calls), ProviderItems(PROVIDER, items)),
        finish_reason_with_calls(read_finish_reason(message.stop_reason), calls),
        read_usage(message.usage),
        metadata={"id": message.id, "model": message.model},
    )
