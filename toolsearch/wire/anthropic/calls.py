"""Calls as Anthropic's Messages has them: arguments are an object."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from toolsearch.tools.calls import ToolCall
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.arguments import arguments_object
from toolsearch.wire.reply_items import ReplyItems, call_in, calls_among, list_in
from toolsearch.wire.unfinished import why_unfinished

_FINISHED: Final = frozenset(
    {"tool_use", "end_turn"}
)  # a "stop_sequence" may have been found within a call's arguments


def write_calls(calls: Iterable[ToolCall]) -> list[dict[str, Json]]:
    """The blocks of a message; arguments that are text are written as the object that they hold."""
    return [{"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_object(call)} for call in calls]


def read_calls(entries: Iterable[object]) -> list[ToolCall]:
    """The calls among *entries*, the blocks of a message."""
    return calls_among(entries, read_call)


def read_call(item: JsonObject, position: int) -> ToolCall | None:
    return call_in(item, item.get("id"), "input", position) if item.get("type") == "tool_use" else None


def reply_items(reply: JsonObject) -> ReplyItems | None:
    """What a message holds, as the API sends it or as it stands in a conversation."""
    if reply.get("role") != "assistant" or isinstance(reply.get("content"), str | None):
        return None
    is_whole = "stop_reason" in reply or reply.get("type") == "message"
    unfinished = why_unfinished(reply.get("stop_reason"), _FINISHED) if is_whole else ""
    return ReplyItems(list_in(reply, "content"), unfinished)
