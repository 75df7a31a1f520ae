"""Calls as Chat Completions has them: arguments are text, and ids are the model's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from toolsearch.tools.calls import ToolCall
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.arguments import arguments_text
from toolsearch.wire.reply_items import ReplyItems, call_in, calls_among, list_in, mapping
from toolsearch.wire.unfinished import REFUSAL, why_unfinished

# Endpoints are known that say "stop" although the model wants tools called.
_FINISHED: Final = frozenset({"tool_calls", "function_call", "stop"})


def write_calls(calls: Iterable[ToolCall]) -> list[dict[str, Json]]:
    """The ``tool_calls`` of a message; arguments that are an object are written as JSON text."""
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments_text(call)}}
        for call in calls
    ]


def read_calls(entries: Iterable[object]) -> list[ToolCall]:
    """The calls of functions among *entries*, the ``tool_calls`` of a message."""
    return calls_among(entries, read_call)


def read_call(item: JsonObject, position: int) -> ToolCall | None:
    function = mapping(item.get("function"))
    return None if function is None else call_in(function, item.get("id"), "arguments", position)


def reply_items(reply: JsonObject) -> ReplyItems | None:
    """What a completion, one of its choices or a message holds; of several choices, the first with calls."""
    if "choices" in reply:
        choices = [_of_choice(mapping(choice) or {}) for choice in list_in(reply, "choices")]
        return next((choice for choice in choices if choice.items), ReplyItems())
    if "message" in reply and "finish_reason" in reply:
        return _of_choice(reply)
    if "tool_calls" in reply:
        return ReplyItems(_tool_calls(reply))
    is_text = reply.get("content") is None or isinstance(reply["content"], str)
    return ReplyItems() if reply.get("role") == "assistant" and is_text and "output" not in reply else None


def why_unfinished_choice(finish_reason: object, *, is_refused: bool) -> str:
    """Return "" if a choice with this finish reason has finished, else the reason why it has not."""
    return why_unfinished(finish_reason, _FINISHED) or (REFUSAL if is_refused else "")


def _of_choice(choice: JsonObject) -> ReplyItems:
    message = mapping(choice.get("message")) or {}
    is_refused = bool(message.get("refusal"))
    unfinished = why_unfinished_choice(choice.get("finish_reason"), is_refused=is_refused)
    return ReplyItems(_tool_calls(message), unfinished)


def _tool_calls(message: JsonObject) -> Sequence[object]:
    return () if message.get("tool_calls") is None else list_in(message, "tool_calls")
