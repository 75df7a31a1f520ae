"""Conversations and calls in the format of Chat Completions, where arguments are text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
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
from toolsearch.wire.native_search import NativeSearch
from toolsearch.wire.openai_chat.requests import API, PROVIDER
from toolsearch.wire.reply_parts import (
    REFUSAL,
    ReplyItems,
    arguments_text,
    call_in,
    calls_among,
    list_in,
    mapping,
    why_unfinished,
)
from toolsearch.wire.request_parts import objects_in, refuse_request

# "stop" is in because some endpoints say it even when the model calls tools.
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
    """Read a completion, one of its choices or a message; if there are several choices, the first with calls."""
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


_OWN_PARTS = frozenset({"image_url", "input_audio", "file", "refusal"})


def write_messages(messages: Sequence[Message], native_search: NativeSearch | None = None) -> dict[str, Json]:
    """The part of a request that holds the conversation. This format has no way to load tools by a search."""
    del native_search
    return {"messages": [entry for message in messages for entry in _write(message)]}


def read_messages(request: JsonObject, tools: Mapping[str, ToolDefinition] = NO_TOOLS) -> list[Message]:
    """The conversation of a request. Raises BadArgumentsError, with the place, for unreadable parts."""
    del tools  # messages of this format add no tools
    messages: list[Message] = []
    called: dict[str, str] = {}  # id of a call -> name of its tool
    results: list[JsonObject] = []  # adjacent results become one message
    for number, entry in enumerate(objects_in(request.get("messages"), "messages", api=API), 1):
        if entry.get("role") == "tool":
            results.append(entry)
            continue
        _append_results(results, called, messages)
        message = _read(entry, number)
        if isinstance(message, AssistantMessage):
            called |= {call.id: call.name for call in message.tool_calls}
        messages.append(message)
    _append_results(results, called, messages)
    return messages


def is_own(entry: JsonObject) -> bool:
    """Whether *entry* of a conversation is in this format, and in no other."""
    return "tool_calls" in entry or entry.get("role") == "tool" or not part_types(entry).isdisjoint(_OWN_PARTS)


def write_results(results: Sequence[ToolResult], native_search: NativeSearch | None = None) -> list[dict[str, Json]]:
    """One message for each result, in words: this format has no place for an image, nor a way to load tools."""
    del native_search
    return [{"role": "tool", "tool_call_id": result.call_id, "content": result_as_text(result)} for result in results]


def read_results(entries: Sequence[JsonObject], tools: Mapping[str, str]) -> list[ToolResult]:
    """The results in *entries*; *tools* has the name of each call's tool, by the call's id.

    The format does not mark failures: only the text tells them from results.
    """
    return [
        ToolResult(call_id := str(entry.get("tool_call_id")), tools.get(call_id, ""), tuple(_blocks(entry)))
        for entry in entries
    ]


def write_change(change: ToolChangeMessage) -> list[dict[str, Json]]:  # noqa: ARG001  every format has this signature
    """There is no such message in this format: tools can only be in the request's list."""
    return []


def sendable(entries: Iterable[object]) -> list[Any]:
    """See `PromptModule.sendable`."""
    return list(map(_sendable, entries))


def taken_back(entry: JsonObject) -> JsonObject:
    """Return a message in the form that the API takes back. It refuses null as the content of an answer without calls,
    although it writes empty answers and refusals that way.
    """
    calls = entry.get("tool_calls") or entry.get("function_call")
    if entry.get("role") != "assistant" or entry.get("content") or calls:
        return entry
    kept = {key: value for key, value in entry.items() if key != "refusal"}
    return {**kept, "content": entry.get("refusal") or ""}


def write_assistant(message: AssistantMessage) -> dict[str, Json]:
    """A message of the model, as this API would write it, without any further fields."""
    if not message.tool_calls:
        return {"role": "assistant", "content": message.text}
    return {"role": "assistant", "content": message.text or None, "tool_calls": write_calls(message.tool_calls)}


def _sendable(entry: object) -> object:
    fields = mapping(entry) or {}
    sent = taken_back(fields)
    return entry if sent is fields else {key: value for key, value in sent.items() if value is not None}


def _append_results(results: list[JsonObject], tools: Mapping[str, str], messages: list[Message]) -> None:
    if results:
        messages.append(ToolMessage(tuple(read_results(results, tools))))
        results.clear()


def _write(message: Message) -> list[dict[str, Json]]:
    match message:
        case SystemMessage():
            return [{"role": "system", "content": message.text}]
        case UserMessage():
            return [{"role": "user", "content": _write_content(message)}]
        case AssistantMessage():
            return [dict(item) for item in verbatim_items(message, PROVIDER)] or [write_assistant(message)]
        case ToolMessage():
            return write_results(message.results)
        case ToolChangeMessage():
            return write_change(message)


def _read(entry: JsonObject, number: int) -> Message:
    read = _READERS.get(str(entry.get("role")))
    if read is None:
        refuse_request(f"messages number {number} has the role {entry.get('role')!r:.60}", api=API)
    return read(entry)


def _read_system(entry: JsonObject) -> SystemMessage:
    return SystemMessage(_text(entry))


def _read_user(entry: JsonObject) -> UserMessage:
    if isinstance(entry.get("content"), str):
        return UserMessage(entry["content"])
    blocks = _blocks(entry)
    first = plain_text(blocks, 0)
    return UserMessage("", tuple(blocks)) if first is None else UserMessage(first, tuple(blocks[1:]))


def _read_assistant(entry: JsonObject) -> AssistantMessage:
    """A message that holds more than its text and its calls is kept verbatim, so that it goes back word for word."""
    entry = taken_back(entry)
    message = AssistantMessage(_text(entry), tuple(read_calls(_calls(entry))))
    if same_json(write_assistant(message), entry):
        return message
    return replace(message, verbatim=ProviderItems(PROVIDER, (dict(entry),)))


def _calls(entry: JsonObject) -> Sequence[object]:
    calls = entry.get("tool_calls") or ()
    if not isinstance(calls, list | tuple):
        refuse_request("its tool_calls must be a list", api=API)
    return cast("Sequence[object]", calls)


def _text(entry: JsonObject) -> str:
    return "\n".join(block_as_text(block) for block in _blocks(entry)) if entry.get("content") is not None else ""


def _blocks(entry: JsonObject) -> list[dict[str, Json]]:
    content = entry.get("content")
    if isinstance(content, str):
        return [text_block(content)]
    parts = map(_without_default, objects_in(content, "content", api=API))
    return read_parts(parts, _read_part, _write_part, PROVIDER)


def _without_default(part: JsonObject) -> JsonObject:
    """Clients often state the default "detail" of images, which says nothing and is removed."""
    image = mapping(part.get("image_url"))
    if image is None or image.get("detail") != "auto":
        return part
    return {**part, "image_url": {key: value for key, value in image.items() if key != "detail"}}


def _write_content(message: UserMessage) -> str | list[dict[str, Json]]:
    """The content is plain text if the message holds only text."""
    if not message.content:
        return message.text
    text = [_write_part(text_block(message.text))] if message.text else []
    return [*text, *map(_write_part, message.content)]


def _write_part(block: JsonObject) -> dict[str, Json]:
    if (image := image_to_send(block)) is not None:
        return {"type": "image_url", "image_url": {"url": data_url(image)}}
    return own_part(block, PROVIDER) or {"type": "text", "text": block_as_text(block)}


def _read_part(part: JsonObject) -> dict[str, Json] | None:
    if part.get("type") == "image_url":
        return image_of_url((mapping(part.get("image_url")) or {}).get("url"))
    return read_text_part(part)


_READERS: Mapping[str, Callable[[JsonObject], Message]] = {
    "system": _read_system,
    "developer": _read_system,
    "user": _read_user,
    "assistant": _read_assistant,
}
