"""The calls in LangChain's messages. They are answered as OpenAI's are, which LangChain takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from toolsearch.tools.calls import ToolCall
from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.reply_parts import ReplyItems, call_in, list_in, mapping, why_unfinished

_UNREADABLE = "invalid_tool_call"
_KINDS = ("tool_call", _UNREADABLE)
# Keys of the metadata under which providers say how the reply ended.
_ENDED = ("finish_reason", "stop_reason", "stopReason", "done_reason", "status")
_FINISHED = frozenset(  # finish reasons in lower case
    {"complete", "completed", "end_turn", "function_call", "stop", "tool_call", "tool_calls", "tool_use"}
)


def reply_items(reply: JsonObject) -> ReplyItems | None:
    """Read an AIMessage. Calls that it could not parse are answered too, because the model waits for them as well."""
    if "invalid_tool_calls" not in reply:
        return None
    items = [*list_in(reply, "tool_calls"), *list_in(reply, "invalid_tool_calls")]
    return ReplyItems(items, _why_unfinished(mapping(reply.get("response_metadata")) or {}))


def read_call(item: JsonObject, position: int) -> ToolCall | None:
    kind = item.get("type")
    if kind not in _KINDS and (kind is not None or "args" not in item):
        return None
    call = call_in(item, item.get("id"), "args", position)
    return replace(call, unfinished=_UNREADABLE if kind == _UNREADABLE else "")


def _why_unfinished(metadata: Mapping[str, object]) -> str:
    """Metadata without a finish reason do not say how the reply ended."""
    told = next((metadata[key] for key in _ENDED if metadata.get(key) is not None), None)
    return why_unfinished(told.lower() if isinstance(told, str) else told, _FINISHED) if told is not None else ""
