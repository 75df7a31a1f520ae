"""Answers in the format of OpenAI's Responses, whole and in the events of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from toolsearch.errors import ChatModelError
from toolsearch.tools.calls import ToolCall, marked_unfinished
from toolsearch.tools.json_types import Json
from toolsearch.wire.answers import (
    ChatChunk,
    ChatResponse,
    FinishReason,
    ToolCallDelta,
    Usage,
    finish_reason_with_calls,
    last_chunk,
    read,
)
from toolsearch.wire.messages import AssistantMessage, ProviderItems, verbatim_items
from toolsearch.wire.openai_responses.messages import SEARCH_CALL, read_calls, reply_items, write_calls
from toolsearch.wire.openai_responses.requests import PROVIDER
from toolsearch.wire.reply_parts import arguments_text

if TYPE_CHECKING:
    from openai.types.responses import ResponseStreamEvent


class ResponsesUsage(BaseModel):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: dict[str, Any] | None = None


class ResponsesError(BaseModel):
    message: str | None = None


class IncompleteDetails(BaseModel):
    reason: str | None = None


class OutputItem(BaseModel):
    type: str


class OutputPart(BaseModel):
    type: str
    text: str | None = None
    refusal: str | None = None


class OutputMessage(BaseModel):
    content: list[OutputPart]


class Response(BaseModel):
    id: str | None = None
    model: str | None = None
    status: str | None = None
    error: ResponsesError | None = None
    incomplete_details: IncompleteDetails | None = None
    output: list[OutputItem]
    usage: ResponsesUsage | None = None


_CUT_OFF: Mapping[str, FinishReason] = {"max_output_tokens": "length", "content_filter": "content_filter"}
_WRITTEN_CUT_OFF = {reason: written for written, reason in _CUT_OFF.items()}


def read_answer(reply: object) -> ChatResponse:
    """The answer in *reply*, an SDK's response or the same as JSON.

    Raises ChatModelError for anything but an answer, and if the model failed.
    """
    response, sent = read(Response, reply)
    if response.status == "failed":
        raise ChatModelError(
            (response.error and response.error.message) or "the model failed, without a reason; ask again"
        )
    calls = _calls(sent)
    parts = [
        part for item in sent["output"] if item["type"] == "message" for part in read(OutputMessage, item)[0].content
    ]
    refusal = "".join(part.refusal or "" for part in parts if part.type == "refusal")
    text = "".join(part.text or "" for part in parts if part.type == "output_text")
    items = tuple(sent["output"])
    return ChatResponse(
        AssistantMessage(refusal or text, tuple(calls), ProviderItems(PROVIDER, items)),
        finish_reason_with_calls("content_filter" if refusal else _read_finish_reason(response), calls),
        read_usage(response.usage),
        metadata={"id": response.id, "model": response.model},
    )


def write_answer(answer: ChatResponse, *, created: int) -> dict[str, Json]:
    """*answer* as a response that was made at *created*, in seconds since 1970.

    Fields in which the API repeats its request, such as the tools, are missing.
    """
    response_id = answer.metadata.get("id")
    items = verbatim_items(answer.message, PROVIDER)
    return {
        "id": response_id,
        "object": "response",
        "created_at": created,
        "model": answer.metadata.get("model"),
        "output": [dict(item) for item in items] or _write_message(answer.message, f"msg_{response_id}"),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": write_usage(answer.usage),
        **write_finish_reason(answer.finish_reason),
    }


def read_event(event: ResponseStreamEvent) -> ChatChunk | None:
    """The piece of text or call in a stream's *event*; None if there is none for a reader. The last event holds the
    whole message.

    Raises ChatModelError if the model failed.
    """
    match event.type:
        case "response.output_text.delta" | "response.refusal.delta":
            return ChatChunk(text=event.delta or "")
        case "response.function_call_arguments.delta":
            return ChatChunk(tool_calls=(ToolCallDelta(event.output_index, arguments=event.delta or ""),))
        case "response.output_item.added" if event.item.type == "function_call":
            begun = ToolCallDelta(event.output_index, event.item.call_id, event.item.name)
            return ChatChunk(tool_calls=(begun,))
        case "response.output_item.done" if event.item.type == SEARCH_CALL:
            deltas = [
                ToolCallDelta(event.output_index, call.id, call.name, arguments_text(call))
                for call in read_calls([event.item])
            ]
            return ChatChunk(tool_calls=tuple(deltas))
        case "response.completed" | "response.incomplete" | "response.failed":
            return last_chunk(read_answer(event.response))
        case "error":
            raise ChatModelError(event.message)
        case _:
            return None


def write_finish_reason(reason: FinishReason) -> dict[str, Json]:
    """The fields of a response that say how it ended. "other" is written as a cut-off answer without a reason."""
    if reason in ("length", "content_filter", "other"):
        told = _WRITTEN_CUT_OFF.get(reason)
        return {"status": "incomplete", "incomplete_details": {"reason": told} if told else None}
    return {"status": "completed", "incomplete_details": None}


def read_usage(usage: ResponsesUsage | None) -> Usage:
    if usage is None:
        return Usage()
    details = usage.input_tokens_details or {}
    return Usage(
        usage.input_tokens or 0,
        usage.output_tokens or 0,
        details.get("cached_tokens") or 0,
        details.get("cache_write_tokens") or 0,
    )


def write_usage(usage: Usage) -> dict[str, Json]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _calls(sent: dict[str, Json]) -> list[ToolCall]:
    held = reply_items(sent)
    return marked_unfinished(read_calls(held.items), held.unfinished) if held else []


def _read_finish_reason(reply: Response) -> FinishReason:
    if reply.status == "completed":
        return "stop"
    return _CUT_OFF.get((reply.incomplete_details and reply.incomplete_details.reason) or "", "other")


def _write_message(message: AssistantMessage, message_id: str) -> list[dict[str, Json]]:
    text: dict[str, Json] = {"type": "output_text", "text": message.text, "annotations": []}
    said: dict[str, Json] = {
        "type": "message",
        "id": message_id,
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }
    calls = [{**call, "status": "completed"} for call in write_calls(message.tool_calls)]
    return [*([said] if message.text else []), *calls]
