"""Conversations in the format of OpenAI's Responses: a list of items, with calls and searches among them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.tools.results import text_block
from toolsearch.wire.content import (
    block_as_text,
    data_url,
    image_of_url,
    image_to_send,
    own_part,
    part_types,
    plain_text,
    read_parts,
    read_text_part,
    result_as_text,
    same_json,
)
from toolsearch.wire.messages import (
    NO_TOOLS,
    AssistantMessage,
    Message,
    ProviderItems,
    SystemMessage,
    ToolChangeMessage,
    ToolMessage,
    UserMessage,
    verbatim_items,
)
from toolsearch.wire.native_search import NativeSearch, is_beside, with_beside, write_beside
from toolsearch.wire.openai_responses.requests import API, PROVIDER, write_tool
from toolsearch.wire.reply_parts import (
    REFUSAL,
    ReplyItems,
    arguments_object,
    arguments_text,
    call_in,
    calls_among,
    list_in,
    mapping,
    why_unfinished,
)
from toolsearch.wire.request_parts import objects_in

SEARCH_CALL: Final = "tool_search_call"
SEARCH_OUTPUT: Final = "tool_search_output"
_FINISHED: Final = frozenset({"completed"})  # status of a finished response or item; some endpoints leave it out


def write_calls(calls: Iterable[ToolCall], *, native_search: bool = False) -> list[dict[str, Json]]:
    """The items of an answer. With *native_search*, calls of ``toolSearchTool`` are the API's own searches.

    An unfinished call is written without its mark.
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
    """Read a response."""
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


_OUTPUT = "function_call_output"
_ADDITION = "additional_tools"
_IMAGE = "input_image"
_DETAIL = "auto"
_OWN_PARTS = frozenset({"input_text", "output_text", "input_file", _IMAGE})


# Types, and endings of types, of items that only this API reads.
_OWN_ITEMS = ("reasoning", "compaction", _ADDITION, "_call", "_output")


def write_messages(messages: Sequence[Message], native_search: NativeSearch | None = None) -> dict[str, Json]:
    """The part of a request that holds the conversation. With *native_search*, searches are the API's own."""
    items: list[dict[str, Json]] = []
    searches: set[str] = set()  # ids of calls written as the API's own searches
    for message in messages:
        if isinstance(message, AssistantMessage):
            said = _write_assistant(message, native_search=native_search is not None)
            searches |= {str(item["call_id"]) for item in said if item.get("type") == SEARCH_CALL}
            items += said
        elif isinstance(message, ToolMessage):
            items += _write_tool_message(message, searches, native_search or NativeSearch())
        elif isinstance(message, UserMessage):
            items.append({"type": "message", "role": "user", "content": _write_content(message)})
        elif isinstance(message, ToolChangeMessage):
            items += write_change(message)
        else:
            items.append(_plain_message("system", message.text))
    return {"input": items}


def read_messages(request: JsonObject, tools: Mapping[str, ToolDefinition] = NO_TOOLS) -> list[Message]:
    """The conversation of a request. Raises BadArgumentsError, with the place, for unreadable parts.

    Items may add only tools that are in *tools*, and the definition is taken from there: the author of a conversation
    must not define tools.
    """
    instructions = request.get("instructions")
    messages: list[Message] = [SystemMessage(instructions)] if isinstance(instructions, str) and instructions else []
    asked = request.get("input")
    if isinstance(asked, str):
        return [*messages, UserMessage(asked)]
    called: dict[str, str] = {}  # id of a call -> name of its tool
    for kind, items in _grouped(objects_in(asked, "input", api=API)):
        if kind == "user":
            messages += map(_read_user, items)
        elif kind == "system":
            messages += _read_system(items, messages)
        elif kind == "results":
            messages.append(ToolMessage(tuple(read_results(items, called))))
        elif kind == "change":
            messages += _read_change(items, tools)
        else:
            message = _read_assistant(items)
            called |= {call.id: call.name for call in message.tool_calls}
            messages.append(message)
    return messages


def is_own(entry: JsonObject) -> bool:
    """Whether *entry* of a conversation is in this format, and in no other: an item, or a message with its parts."""
    return str(entry.get("type")).endswith(_OWN_ITEMS) or not part_types(entry).isdisjoint(_OWN_PARTS)


def write_results(results: Sequence[ToolResult], native_search: NativeSearch | None = None) -> list[dict[str, Json]]:
    """One item for each result. With *native_search*, searches are answered with the definitions that they found."""
    if native_search is None:
        return [_write_result(result) for result in results]
    outputs: list[dict[str, Json]] = []
    texts: list[str] = []
    for result in results:
        if result.name != TOOL_NAME:
            outputs.append(_write_result(result))
            continue
        output = _write_found(result, native_search)
        outputs.append(output)
        texts += native_search.texts_beside(result) if output["tools"] else [result_as_text(result)]
    return outputs + [message_beside(text) for text in texts if text]


def message_beside(text: str) -> dict[str, Json]:
    """The message after the results whose words belong to the answer to a search."""
    return _plain_message("developer", write_beside(text))


def write_change(change: ToolChangeMessage) -> list[dict[str, Json]]:
    """An item that adds definitions. No item can withdraw a tool."""
    if not change.added:
        return []
    return [{"type": _ADDITION, "role": "developer", "tools": [write_tool(definition) for definition in change.added]}]


def read_results(entries: Iterable[JsonObject], tools: Mapping[str, str]) -> list[ToolResult]:
    """The results among *entries*; *tools* has the name of each call's tool, by the call's id.

    The format does not mark failures: only the text tells them from results. Only the names of the tools that a search
    loaded are read, because the author of a conversation must not define tools.
    """
    return [_read_result(entry, tools) for entry in entries if entry.get("type") in (_OUTPUT, SEARCH_OUTPUT)]


def sendable(entries: Iterable[object]) -> list[Any]:
    """See `PromptModule.sendable`. This API takes back everything that it has sent, even an empty output and a
    refusal.
    """
    return list(entries)


def _write_assistant(message: AssistantMessage, *, native_search: bool) -> list[dict[str, Json]]:
    """Write the message verbatim if possible. It is not possible if it holds the API's own search and this request has
    no such tool.
    """
    items = [dict(item) for item in verbatim_items(message, PROVIDER)]
    if items and (native_search or all(item.get("type") != SEARCH_CALL for item in items)):
        return items
    said = [_plain_message("assistant", message.text)] if message.text or not message.tool_calls else []
    return [*said, *write_calls(message.tool_calls, native_search=native_search)]


def _plain_message(role: str, text: str) -> dict[str, Json]:
    return {"type": "message", "role": role, "content": text}


def _write_tool_message(message: ToolMessage, searches: Collection[str], native: NativeSearch) -> list[dict[str, Json]]:
    items: list[dict[str, Json]] = []
    for result in message.results:
        items += write_results([result], native if result.call_id in searches else None)
    outputs = [item for item in items if item["type"] != "message"]
    return outputs + [item for item in items if item["type"] == "message"]


def _write_result(result: ToolResult) -> dict[str, Json]:
    has_image = any(image_to_send(block) for block in result.content)
    output = [_write_part(block) for block in result.content] if has_image else result_as_text(result)
    return {"type": _OUTPUT, "call_id": result.call_id, "output": output}


def _write_found(result: ToolResult, native_search: NativeSearch) -> dict[str, Json]:
    return search_output(result.call_id, map(write_tool, native_search.found(result)))


def search_output(call_id: str, entries: Iterable[JsonObject]) -> dict[str, Json]:
    """The answer to the API's own search; *entries* define the tools that it loads."""
    tools = [_as_deferred(entry) for entry in entries]
    return {"type": SEARCH_OUTPUT, "call_id": call_id, "execution": "client", "status": "completed", "tools": tools}


def _as_deferred(entry: JsonObject) -> dict[str, Json]:
    """The *entry* of a tool, or of a namespace, whose tools are marked one by one."""
    held = entry.get("tools")
    return {**entry, **({"defer_loading": True} if held is None else {"tools": list(map(_as_deferred, held))})}


def _write_content(message: UserMessage) -> str | list[dict[str, Json]]:
    """The content is plain text if the message holds only text."""
    if not message.content:
        return message.text
    text = [_write_part(text_block(message.text))] if message.text else []
    parts = map(_write_part, message.content)
    return [
        *text,
        *({**part, "detail": part.get("detail", _DETAIL)} if part.get("type") == _IMAGE else part for part in parts),
    ]


def _write_part(block: JsonObject) -> dict[str, Json]:
    if (image := image_to_send(block)) is not None:
        return {"type": _IMAGE, "image_url": data_url(image)}
    return own_part(block, PROVIDER) or {"type": "input_text", "text": block_as_text(block)}


def _grouped(items: Iterable[JsonObject]) -> list[tuple[str, list[JsonObject]]]:
    """Return *items* in groups of neighbours of one kind, each group with its kind. A group becomes one message, or
    several.
    """
    groups: list[tuple[str, list[JsonObject]]] = []
    for item in items:
        kind = _kind(item)
        if groups and groups[-1][0] == kind:
            groups[-1][1].append(item)
        else:
            groups.append((kind, [item]))
    return groups


def _kind(item: JsonObject) -> str:
    if item.get("type") in (_OUTPUT, SEARCH_OUTPUT):
        return "results"
    if item.get("type") == _ADDITION:
        return "change"
    if item.get("type", "message") != "message":
        return "assistant"
    return {"user": "user", "system": "system", "developer": "system"}.get(str(item.get("role")), "assistant")


def _read_user(item: JsonObject) -> UserMessage:
    if isinstance(item.get("content"), str):
        return UserMessage(item["content"])
    blocks = _blocks(item.get("content"))
    first = plain_text(blocks, 0)
    return UserMessage("", tuple(blocks)) if first is None else UserMessage(first, tuple(blocks[1:]))


def _read_system(items: Sequence[JsonObject], messages: list[Message]) -> list[Message]:
    """System texts that follow outputs of searches become part of these outputs, the last of *messages*."""
    texts = list(map(_text, items))
    last = messages[-1] if messages else None
    if not isinstance(last, ToolMessage) or not any(result.name == TOOL_NAME for result in last.results):
        return [SystemMessage(text) for text in texts]
    messages[-1] = ToolMessage(tuple(with_beside(last.results, filter(is_beside, texts))))
    return [SystemMessage(text) for text in texts if not is_beside(text)]


def _read_change(items: Iterable[JsonObject], tools: Mapping[str, ToolDefinition]) -> list[Message]:
    """Neighbouring items become one message."""
    entries = [entry for item in items for entry in objects_in(item.get("tools"), "tools", api=API)]
    names = [str(entry.get("name")) for entry in entries if entry.get("type") == "function"]
    added = tuple(tools[name] for name in names if name in tools)
    return [ToolChangeMessage(added)] if added else []


def _read_assistant(items: Sequence[JsonObject]) -> AssistantMessage:
    text = "".join(_text(item) for item in items if item.get("role") == "assistant")
    read = (read_call(item, position) for position, item in enumerate(items, 1))
    message = AssistantMessage(text, tuple(call for call in read if call is not None))
    searches = any(item.get("type") == SEARCH_CALL for item in items)
    if same_json(_write_assistant(message, native_search=searches), items):
        return message
    return replace(message, verbatim=ProviderItems(PROVIDER, tuple(map(dict, items))))


def _read_result(item: JsonObject, tools: Mapping[str, str]) -> ToolResult:
    call_id = str(item.get("call_id"))
    if item.get("type") == SEARCH_OUTPUT:
        names = [str(tool.get("name")) for tool in objects_in(item.get("tools"), "tools", api=API)]
        return ToolResult(call_id, tools.get(call_id, TOOL_NAME), (), structured={"tools": names})
    return ToolResult(call_id, tools.get(call_id, ""), tuple(_blocks(item.get("output"))))


def _text(item: JsonObject) -> str:
    return "\n".join(block_as_text(block) for block in _blocks(item.get("content") or ""))


def _blocks(content: Json) -> list[dict[str, Json]]:
    if isinstance(content, str):
        return [text_block(content)]
    parts = map(_without_default, objects_in(content, "content", api=API))
    return read_parts(parts, _read_part, _write_part, PROVIDER)


def _without_default(part: JsonObject) -> JsonObject:
    """Remove the default "detail", which the API states for a user's images, but not for images in results."""
    return {key: value for key, value in part.items() if key != "detail" or value != _DETAIL}


def _read_part(part: JsonObject) -> dict[str, Json] | None:
    return image_of_url(part.get("image_url")) if part.get("type") == _IMAGE else read_text_part(part)
