"""Calls as OpenAI's Responses has them: items with arguments as text, and searches that the API leaves to us."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, cast

from toolsearch.tools.calls import ToolCall
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire.arguments import arguments_object, arguments_text
from toolsearch.wire.reply_items import ReplyItems, call_in, calls_among, list_in, mapping
from toolsearch.wire.unfinished import REFUSAL, why_unfinished

SEARCH_CALL: Final = "tool_search_call"
_FINISHED: Final = frozenset({"completed"})  # of a response, and of each item, where endpoints may leave it out


def write_calls(calls: Iterable[ToolCall], *, native_search: bool = False) -> list[dict[str, Json]]:
    """The items of an answer. With *native_search*, calls of ``toolSearchTool`` are the API's own searches.

    What is marked as unfinished is written without its mark.
    """
    return [_write_call(call, native_search=native_search) for call in calls]


def read_calls(entries: Iterable[object]) -> list[ToolCall]:
    """The calls among *entries*, the items of an answer; an item that is not complete is marked as unfinished."""
    return calls_among(entries, read_call)


def read_call(item: JsonObject, position: int) -> ToolCall | None:
    if item.get("type") == SEARCH_CALL and item.get("execution") == "client":
        item = {**item, "name": TOOL_NAME}
    elif item.get("type") != "function_call":
        return None
    call = call_in(item, item.get("call_id"), "arguments", position)
    status = item.get("status")
    return call if status is None else replace(call, unfinished=why_unfinished(status, _FINISHED))


def reply_items(reply: JsonObject) -> ReplyItems | None:
    """What a response holds."""
    if "output" not in reply:
        return None
    items = list_in(reply, "output")
    return ReplyItems(items, _why_unfinished(reply) or (REFUSAL if any(map(_is_refusal, items)) else ""))


def _write_call(call: ToolCall, *, native_search: bool) -> dict[str, Json]:
    if native_search and call.name == TOOL_NAME:
        arguments = arguments_object(call)
        return {"type": SEARCH_CALL, "call_id": call.id, "execution": "client", "arguments": arguments}
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments_text(call)}


def _why_unfinished(reply: JsonObject) -> str:
    status = reply.get("status")
    details = mapping(reply.get("incomplete_details")) or {}
    return why_unfinished(status, _FINISHED) and why_unfinished(details.get("reason") or status, ())


def _is_refusal(item: object) -> bool:
    content = (mapping(item) or {}).get("content")
    parts = cast("list[object]", content) if isinstance(content, list) else []
    return any((mapping(part) or {}).get("type") == "refusal" for part in parts)
