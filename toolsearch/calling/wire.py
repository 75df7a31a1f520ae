"""The wire formats of calling: what a model's reply asks for, and the messages that answer it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NoReturn, Protocol, TypeAlias, cast, get_args, runtime_checkable

from toolsearch.calling.blocks import in_words
from toolsearch.calling.native_search import NativeSearch, tool_references, tool_search_output
from toolsearch.calling.result import ToolResult
from toolsearch.discovery.search_tool import TOOL_NAME
from toolsearch.errors import BadArgumentsError, BadSettingError
from toolsearch.tools.definition import Json, JsonObject

WireFormat: TypeAlias = Literal["openai", "openai-responses", "anthropic", "mcp"]
Message: TypeAlias = dict[str, Json]

_ACCEPTED = (
    "an OpenAI ChatCompletion, its message or its tool_calls; an OpenAI Response or its output; "
    "an Anthropic Message or its content; {'name': ..., 'arguments': ...}; a ToolCall; or a list of the last two"
)
_IMAGES_SENT = ("image/png", "image/jpeg", "image/gif", "image/webp")  # what both APIs take


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a model asks for; *arguments* are JSON text or already an object."""

    id: str
    name: str
    arguments: str | JsonObject = ""


@runtime_checkable
class _Dumpable(Protocol):
    """An object of an SDK: pydantic's, so that none of the SDKs has to be imported."""

    def model_dump(self, *, warnings: bool) -> object: ...


def parse_tool_calls(reply: object) -> tuple[WireFormat, list[ToolCall]]:
    """Return the calls in *reply*, in its order, and the format in which to answer them.

    Takes the official SDKs' objects and the same as plain dicts, whole or in parts. Of several choices the first with
    calls counts. Text, reasoning, and calls that the provider runs itself are passed over; a tool search that it leaves
    to the client is a call of ``toolSearchTool``. Calls without an id get ``call_1``, ``call_2`` ... by position. A
    list without calls is "mcp", for nothing tells otherwise.
    Raises BadArgumentsError, which says what is accepted, if *reply* is none of it.
    """
    wire_format, items = _unwrapped(_plain(reply))
    found = [read for position, item in enumerate(items, 1) if (read := _read(_plain(item), position)) is not None]
    formats: set[WireFormat] = {read_format for read_format, _ in found}
    if wire_format is not None:
        formats.add(wire_format)
    if len(formats) > 1:
        raise BadArgumentsError(f"the calls are in several formats at once ({', '.join(sorted(formats))}); use one")
    return (formats.pop() if formats else "mcp"), [call for _, call in found]


def render_results(
    results: Sequence[ToolResult], wire_format: WireFormat, *, native_search: NativeSearch | None = None
) -> list[Message]:
    """Return what to append to the conversation (for "mcp": what to answer each call with), in the results' order.

    With *native_search*, results of ``toolSearchTool`` load tools in the provider's own way: "anthropic" is sent
    references to them, "openai-responses" their definitions; the other formats have no such way.
    Where a format has no place for an image or for bytes, a line of text says what was left out.
    Raises BadSettingError for an unknown format.
    """
    render = _RENDERERS.get(wire_format)
    if render is None:
        known = ", ".join(get_args(WireFormat))
        raise BadSettingError(f"unknown wire format {wire_format!r}; known are {known}")
    return render(results, native_search)


# Reading


def _unwrapped(reply: object) -> tuple[WireFormat | None, Sequence[object]]:
    """The list of items that *reply* wraps, with the format if the wrapping tells it."""
    if isinstance(reply, Sequence) and not isinstance(reply, str | bytes):
        return None, cast("Sequence[object]", reply)
    if isinstance(reply, ToolCall):
        return None, [reply]
    fields = _mapping(reply)
    if fields is None:
        _refuse(f"a {type(reply).__name__}")
    if "choices" in fields:
        return "openai", next((calls for calls in _choices(fields["choices"]) if calls), ())
    if "tool_calls" in fields:
        return "openai", fields["tool_calls"] or ()
    if "output" in fields:
        return "openai-responses", fields["output"] or ()
    if fields.get("role") == "assistant":
        content = fields.get("content")
        return ("openai", ()) if content is None or isinstance(content, str) else ("anthropic", content)
    return None, [fields]


def _choices(choices: Sequence[object]) -> Iterator[Sequence[object]]:
    for choice in choices:
        message = _mapping(_plain((_mapping(_plain(choice)) or {}).get("message")))
        yield (message or {}).get("tool_calls") or ()


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
        return "openai-responses", _call(fields.get("call_id"), fields, "arguments", position)
    if kind == "tool_search_call" and fields.get("execution") == "client":
        return "openai-responses", _call(fields.get("call_id"), {**fields, "name": TOOL_NAME}, "arguments", position)
    if kind == "tool_use":
        return "anthropic", _call(fields.get("id"), fields, "input", position)
    if isinstance(kind, str):
        return None
    return "mcp", _call(fields.get("id"), fields, "arguments", position)


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


# Rendering


def _openai(results: Sequence[ToolResult], _: NativeSearch | None) -> list[Message]:
    return [{"role": "tool", "tool_call_id": result.call_id, "content": _as_text(result)} for result in results]


def _openai_responses(results: Sequence[ToolResult], native_search: NativeSearch | None) -> list[Message]:
    if native_search is None:
        return [_function_call_output(result) for result in results]
    outputs: list[Message] = []
    explanations: list[Message] = []
    for result in results:
        if result.name != TOOL_NAME:
            outputs.append(_function_call_output(result))
            continue
        found = native_search.found(result)
        outputs.append(tool_search_output(result.call_id, found))
        if not found:  # why, and what to try, has no place in the output of a search
            explanations.append({"type": "message", "role": "developer", "content": f"{TOOL_NAME}: {_as_text(result)}"})
    return outputs + explanations


def _function_call_output(result: ToolResult) -> Message:
    return {"type": "function_call_output", "call_id": result.call_id, "output": _responses_output(result)}


def _responses_output(result: ToolResult) -> str | list[Message]:
    if not any(_is_image(block) for block in result.content):
        return _as_text(result)
    return [
        {"type": "input_image", "image_url": f"data:{block['mimeType']};base64,{block['data']}"}
        if _is_image(block)
        else {"type": "input_text", "text": in_words(block)}
        for block in result.content
    ]


def _anthropic(results: Sequence[ToolResult], native_search: NativeSearch | None) -> list[Message]:
    native_search = native_search or NativeSearch()
    blocks: list[Message] = [
        {
            "type": "tool_result",
            "tool_use_id": result.call_id,
            "content": tool_references(native_search.found(result)) or _anthropic_content(result),
            "is_error": result.is_error,
        }
        for result in results
    ]
    return [{"role": "user", "content": blocks}] if blocks else []


def _anthropic_content(result: ToolResult) -> list[Message]:
    content: list[Message] = []
    for block in result.content:
        if _is_image(block):
            source = {"type": "base64", "media_type": block["mimeType"], "data": block["data"]}
            content.append({"type": "image", "source": source})
        elif text := in_words(block):  # the API refuses empty text
            content.append({"type": "text", "text": text})
    return content


def _mcp(results: Sequence[ToolResult], _: NativeSearch | None) -> list[Message]:
    return [_call_tool_result(result) for result in results]


def _call_tool_result(result: ToolResult) -> Message:
    message: Message = {"content": [dict(block) for block in result.content], "isError": result.is_error}
    structured = _mapping(result.structured)
    if structured is not None:  # MCP has only objects here
        message["structuredContent"] = dict(structured)
    return message


def _is_image(block: JsonObject) -> bool:
    return block.get("type") == "image" and block.get("mimeType") in _IMAGES_SENT and bool(block.get("data"))


def _as_text(result: ToolResult) -> str:
    """A tool message of OpenAI has no mark for a failure, so the text says it."""
    text = "\n".join(in_words(block) for block in result.content)
    return f"Error: {text}" if result.is_error else text


_RENDERERS: Mapping[str, Callable[[Sequence[ToolResult], NativeSearch | None], list[Message]]] = {
    "openai": _openai,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    "mcp": _mcp,
}
