"""Reads the calls in a model's reply and the size of its request, in any format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from toolsearch.documents.json_values import is_object
from toolsearch.errors import BadArgumentsError
from toolsearch.tools.calls import ToolCall, marked_unfinished
from toolsearch.tools.json_types import JsonObject
from toolsearch.wire import anthropic, langchain, openai_chat, openai_responses
from toolsearch.wire.formats import WireFormat
from toolsearch.wire.reply_parts import (
    ReadCall,
    ReplyItems,
    call_in,
    item_fields,
    mapping,
    refuse_reply,
    stands_beside_calls,
)

_FORMATS: Sequence[tuple[WireFormat, Callable[[JsonObject], ReplyItems | None], ReadCall]] = (
    ("openai", langchain.reply_items, langchain.read_call),
    ("openai", openai_chat.reply_items, openai_chat.read_call),
    ("openai-responses", openai_responses.reply_items, openai_responses.read_call),
    ("anthropic", anthropic.reply_items, anthropic.read_call),
)


def parse_tool_calls(reply: object) -> tuple[WireFormat, list[ToolCall]]:
    """Return the calls in *reply*, in its order, and the format in which to answer them.

    Takes the official SDKs' objects and the same as plain dicts, whole or in parts. Of several choices the first with
    calls counts. Text, reasoning, and calls that the provider runs itself are passed over; a tool search that it leaves
    to the client is a call of ``toolSearchTool``. Calls without an id get ``call_1``, ``call_2`` ... by position. A
    list without calls counts as "mcp". LangChain's messages and calls are answered in OpenAI's format, which LangChain
    accepts. An item that looks like a call of an unknown shape is an error.

    A whole reply says how it ended: unless it says that it finished, all its calls are marked `unfinished`, and so is
    an item of Responses that is not complete. A part of a reply (a message without a stop reason, a list of calls,
    blocks or items) cannot say it, so its calls are run: pass the whole reply if you have it. Raises BadArgumentsError,
    with a list of accepted values, for anything else.
    """
    wire_format, held = _unwrapped(reply)
    found = [read for position, item in enumerate(held.items, 1) if (read := _read(item, position)) is not None]
    formats: set[WireFormat] = {read_format for read_format, _ in found}
    if wire_format is not None:
        formats.add(wire_format)
    if len(formats) > 1:
        raise BadArgumentsError(f"the calls are in several formats at once ({', '.join(sorted(formats))}); use one")
    return (formats.pop() if formats else "mcp"), marked_unfinished([call for _, call in found], held.unfinished)


def _unwrapped(reply: object) -> tuple[WireFormat | None, ReplyItems]:
    """The content of *reply*, and its format if the reply as a whole shows it."""
    if isinstance(reply, Sequence) and not isinstance(reply, str | bytes):
        return None, ReplyItems(cast("Sequence[object]", reply))
    if isinstance(reply, ToolCall):
        return None, ReplyItems([reply])
    fields = mapping(reply)
    if fields is None:
        refuse_reply(f"a {type(reply).__name__}")
    for wire_format, reply_items, _ in _FORMATS:
        held = reply_items(fields)
        if held is not None:
            return wire_format, held
    return None, ReplyItems([fields])


def _read(item: object, position: int) -> tuple[WireFormat, ToolCall] | None:
    """Read *item* as a call; None for items that stand beside calls."""
    if isinstance(item, ToolCall):
        return "mcp", item
    fields = item_fields(item)
    for wire_format, _, read_call in _FORMATS:
        call = read_call(fields, position)
        if call is not None:
            return wire_format, call
    if stands_beside_calls(fields, position):
        return None
    return "mcp", call_in(fields, fields.get("id"), "arguments", position)


# Anthropic counts cached tokens apart from input_tokens
_CACHE_COUNTS = ("cache_read_input_tokens", "cache_creation_input_tokens")


def input_tokens(reply: object) -> int:
    """The tokens of the whole prompt that *reply* answers, cached or not, by the provider's count; 0 if it says none.

    Takes the same values as `parse_tool_calls`.
    """
    fields = mapping(reply)
    usage = None if fields is None else fields.get("usage", fields.get("usage_metadata"))
    if not is_object(usage):
        return 0
    read = _tokens(usage, "prompt_tokens") or _tokens(usage, "input_tokens")
    return read + sum(_tokens(usage, name) for name in _CACHE_COUNTS)


def _tokens(usage: JsonObject, name: str) -> int:
    count = usage.get(name)
    return count if isinstance(count, int) and count > 0 else 0
