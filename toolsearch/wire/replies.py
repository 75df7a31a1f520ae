"""The calls in a model's reply, whatever format it is in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, Protocol, cast, runtime_checkable

from toolsearch.errors import BadArgumentsError
from toolsearch.tools.calls import ToolCall, marked_unfinished
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire.finished import (
    why_unfinished_chat,
    why_unfinished_item,
    why_unfinished_langchain,
    why_unfinished_message,
    why_unfinished_response,
)
from toolsearch.wire.formats import WireFormat

_ACCEPTED = (
    "an OpenAI ChatCompletion, its message or its tool_calls; an OpenAI Response or its output; "
    "an Anthropic Message or its content; a LangChain AIMessage or its tool_calls; {'name': ..., 'arguments': ...}; "
    "a ToolCall; or a list of the last two"
)
_LANGCHAIN_CALLS = ("tool_call", "invalid_tool_call")
_ARGUMENTS = frozenset({"args", "arguments", "input", "parameters"})  # where calls have them
_PROVIDERS_OWN = frozenset(  # calls that the provider runs, or asks of somebody else
    {"mcp_approval_request", "mcp_call", "mcp_tool_use", "server_tool_call", "server_tool_use"}
)


@runtime_checkable
class _Dumpable(Protocol):
    """An object of an SDK: pydantic's, so that none of the SDKs has to be imported."""

    def model_dump(self, *, warnings: bool) -> object: ...


def parse_tool_calls(reply: object) -> tuple[WireFormat, list[ToolCall]]:
    """Return the calls in *reply*, in its order, and the format in which to answer them.

    Takes the official SDKs' objects and the same as plain dicts, whole or in parts. Of several choices the first with
    calls counts. Text, reasoning, and calls that the provider runs itself are passed over; a tool search that it leaves
    to the client is a call of ``toolSearchTool``. Calls without an id get ``call_1``, ``call_2`` ... by position. A
    list without calls is "mcp", for nothing tells otherwise. LangChain's messages and calls are answered as OpenAI's,
    which LangChain takes. What looks like a call of another shape is an error.

    A whole reply says how it ended: unless it says that it finished, all its calls are marked `unfinished`, and so is
    an item of Responses that is not complete. A part of a reply (a message without a stop reason, a list of calls,
    blocks or items) cannot say it, and is what the caller wants to be run: pass the whole reply where there is one.
    Raises BadArgumentsError, which says what is accepted, if *reply* is none of it.
    """
    held = _unwrapped(_plain(reply))
    items = enumerate(held.items, 1)
    found = [read for position, item in items if (read := _read(_plain(item), position)) is not None]
    formats: set[WireFormat] = {read_format for read_format, _ in found}
    if held.wire_format is not None:
        formats.add(held.wire_format)
    if len(formats) > 1:
        raise BadArgumentsError(f"the calls are in several formats at once ({', '.join(sorted(formats))}); use one")
    return (formats.pop() if formats else "mcp"), marked_unfinished([call for _, call in found], held.unfinished)


# Reading


@dataclass(frozen=True, slots=True)
class _Held:
    """What a reply holds: calls and what stands beside them, the format if the reply tells it, and how it ended."""

    wire_format: WireFormat | None
    items: Sequence[object] = ()
    unfinished: str = ""


def _unwrapped(reply: object) -> _Held:
    if isinstance(reply, Sequence) and not isinstance(reply, str | bytes):
        return _Held(None, cast("Sequence[object]", reply))
    if isinstance(reply, ToolCall):
        return _Held(None, [reply])
    fields = _mapping(reply)
    if fields is None:
        _refuse(f"a {type(reply).__name__}")
    if "choices" in fields:
        choices = [_choice(_plain(each)) for each in _list(fields, "choices")]
        return next((choice for choice in choices if choice.items), _Held("openai"))
    if "message" in fields and "finish_reason" in fields:
        return _choice(fields)
    if "invalid_tool_calls" in fields:
        return _langchain(fields)
    if "tool_calls" in fields:
        return _Held("openai", () if fields["tool_calls"] is None else _list(fields, "tool_calls"))
    if "output" in fields:
        return _response(fields)
    if fields.get("role") == "assistant":
        return _message(fields)
    return _Held(None, [fields])


def _choice(choice: object) -> _Held:
    fields = _mapping(choice) or {}
    message = _mapping(_plain(fields.get("message"))) or {}
    calls = _list(message, "tool_calls") if message.get("tool_calls") is not None else ()
    unfinished = why_unfinished_chat(fields.get("finish_reason"), is_refused=bool(message.get("refusal")))
    return _Held("openai", calls, unfinished)


def _response(fields: JsonObject) -> _Held:
    details = _mapping(_plain(fields.get("incomplete_details"))) or {}
    items = _list(fields, "output")
    is_refused = any(map(_is_refusal, items))
    unfinished = why_unfinished_response(fields.get("status"), details.get("reason"), is_refused=is_refused)
    return _Held("openai-responses", items, unfinished)


def _is_refusal(item: object) -> bool:
    content = (_mapping(_plain(item)) or {}).get("content")
    parts = cast("Sequence[object]", content) if isinstance(content, list) else ()
    return any((_mapping(part) or {}).get("type") == "refusal" for part in parts)


def _message(fields: JsonObject) -> _Held:
    """A message of Anthropic as the API sends it, or as it stands in a conversation; without calls also of OpenAI."""
    content = fields.get("content")
    if content is None or isinstance(content, str):
        return _Held("openai")
    is_reply = "stop_reason" in fields or fields.get("type") == "message"
    unfinished = why_unfinished_message(fields.get("stop_reason")) if is_reply else ""
    return _Held("anthropic", _list(fields, "content"), unfinished)


def _langchain(fields: JsonObject) -> _Held:
    """An AIMessage of LangChain. Calls that it could not read are answered too: the model waits for them as well."""
    metadata = _mapping(fields.get("response_metadata")) or {}
    items = [*_list(fields, "tool_calls"), *_list(fields, "invalid_tool_calls")]
    return _Held("openai", items, why_unfinished_langchain(metadata))


def _list(fields: JsonObject, key: str) -> Sequence[object]:
    value = fields[key]
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        _refuse(f"a reply whose {key!r} is a {type(value).__name__}")
    return cast("Sequence[object]", value)


def _read(item: object, position: int) -> tuple[WireFormat, ToolCall] | None:
    """The call that *item* is; None if it is something that stands beside calls."""
    if isinstance(item, ToolCall):
        return "mcp", item
    fields = _mapping(item)
    if fields is None:
        _refuse(f"a list with a {type(item).__name__} in it")
    kind = fields.get("type")
    function = _mapping(_plain(fields.get("function")))
    if function is not None:
        return "openai", _call(fields.get("id"), function, "arguments", position)
    if kind == "function_call":
        return "openai-responses", _item_call(fields, position)
    if kind == "tool_search_call" and fields.get("execution") == "client":
        return "openai-responses", _item_call({**fields, "name": TOOL_NAME}, position)
    if kind == "tool_use":
        return "anthropic", _call(fields.get("id"), fields, "input", position)
    if kind in _LANGCHAIN_CALLS or (kind is None and "args" in fields):
        unfinished = "invalid_tool_call" if kind == "invalid_tool_call" else ""
        return "openai", replace(_call(fields.get("id"), fields, "args", position), unfinished=unfinished)
    _require_readable(fields, kind, position)
    return None if isinstance(kind, str) else ("mcp", _call(fields.get("id"), fields, "arguments", position))


def _require_readable(fields: JsonObject, kind: object, position: int) -> None:
    """A call in a shape that is not known must not be passed over as if it were text, nor run without its arguments."""
    if kind in _PROVIDERS_OWN or (kind is None and "arguments" in fields):
        return
    unread = _ARGUMENTS & fields.keys()
    if "name" in fields and unread:
        shape = "no type" if kind is None else f"the type {kind!r:.60}"
        _refuse(f"item number {position}, which has {shape}, a name and {min(unread)!r}")


def _item_call(fields: JsonObject, position: int) -> ToolCall:
    call = _call(fields.get("call_id"), fields, "arguments", position)
    return replace(call, unfinished=why_unfinished_item(fields.get("status")))


def _call(call_id: object, fields: JsonObject, arguments_key: str, position: int) -> ToolCall:
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        _refuse(f"an item without a tool's name (number {position})")
    arguments = fields.get(arguments_key)
    if arguments is None:
        arguments = ""
    elif _mapping(arguments) is None and not isinstance(arguments, str):
        arguments = json.dumps(arguments)  # refused when it is run, so that its siblings still are
    return ToolCall(f"call_{position}" if call_id is None else str(call_id), name, arguments)


def _plain(value: object) -> object:
    return value.model_dump(warnings=False) if isinstance(value, _Dumpable) else value


def _mapping(value: object) -> JsonObject | None:
    return cast("JsonObject", value) if isinstance(value, Mapping) else None


def _refuse(what: str) -> NoReturn:
    raise BadArgumentsError(f"cannot find tool calls in {what}; pass {_ACCEPTED}")
