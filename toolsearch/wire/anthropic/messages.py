"""Conversations in the format of Anthropic's Messages: users and assistants in turn, calls, and system messages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, takewhile
from typing import Any, Final

from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.tools.results import image_block, text_block
from toolsearch.wire.anthropic.requests import API, PROVIDER, THINKING, write_tool
from toolsearch.wire.content import (
    block_as_text,
    image_to_send,
    own_part,
    part_types,
    plain_text,
    read_parts,
    read_text_part,
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
from toolsearch.wire.native_search import NativeSearch, found_names, is_beside, with_beside, write_beside
from toolsearch.wire.reply_parts import (
    ReplyItems,
    arguments_object,
    call_in,
    calls_among,
    list_in,
    mapping,
    why_unfinished,
)
from toolsearch.wire.request_parts import objects_in, refuse_request

CALL: Final = "tool_use"
RESULT: Final = "tool_result"


class Turns:
    """Builds a request's messages. Neighbours of one role become one.

    System messages wait for a place where the API takes them: after a user's message, and before the model's next
    message or at the end. Results come first in a user's message.
    """

    def __init__(self) -> None:
        self._messages: list[dict[str, Json]] = []
        self._system: list[dict[str, Json]] = []  # system blocks that wait for a place where the API takes them

    def add(self, role: str, blocks: list[dict[str, Json]]) -> None:
        if not blocks:
            return
        if role == "system":
            self._system += blocks
            return
        if role == "assistant" and self._messages and self._messages[-1]["role"] == "user":
            self._say_system()
        self._say(role, blocks)

    def messages(self) -> list[dict[str, Json]]:
        self._say_system()
        return self._messages

    def _say_system(self) -> None:
        if self._system:
            self._say("system", self._system)
            self._system = []

    def _say(self, role: str, blocks: list[dict[str, Json]]) -> None:
        if not self._messages or self._messages[-1]["role"] != role:
            self._messages.append({"role": role, "content": blocks})
            return
        joined = [*self._messages[-1]["content"], *blocks]
        self._messages[-1]["content"] = sorted(joined, key=_after_results) if role == "user" else joined


def _after_results(block: dict[str, Json]) -> bool:
    return block.get("type") != RESULT


FINISHED: Final = frozenset(
    {"tool_use", "end_turn"}
)  # "stop_sequence" is left out: the sequence may have cut a call's arguments


def write_calls(calls: Iterable[ToolCall]) -> list[dict[str, Json]]:
    """The blocks of a message; arguments that are text are written as the object that they hold."""
    return [{"type": CALL, "id": call.id, "name": call.name, "input": arguments_object(call)} for call in calls]


def read_calls(entries: Iterable[object]) -> list[ToolCall]:
    """The calls among *entries*, the blocks of a message."""
    return calls_among(entries, read_call)


def read_call(item: JsonObject, position: int) -> ToolCall | None:
    return call_in(item, item.get("id"), "input", position) if item.get("type") == CALL else None


def reply_items(reply: JsonObject) -> ReplyItems | None:
    """The calls in a message, in the form of an answer or of an entry of a conversation."""
    if reply.get("role") != "assistant" or isinstance(reply.get("content"), str | None):
        return None
    is_whole = "stop_reason" in reply or reply.get("type") == "message"
    unfinished = why_unfinished(reply.get("stop_reason"), FINISHED) if is_whole else ""
    return ReplyItems(list_in(reply, "content"), unfinished)


_REFERENCE = "tool_reference"
_ADDITION = "tool_addition"
_REMOVAL = "tool_removal"
_DEFINITION = "tool_definition"
_NO_ANSWER = "(no answer)"


def write_messages(messages: Sequence[Message], native_search: NativeSearch | None = None) -> dict[str, Json]:
    """The parts of a request that hold the conversation."""
    first = list(takewhile(lambda message: isinstance(message, SystemMessage), messages))
    turns = Turns()
    for message in messages[len(first) :]:
        turns.add(*_write(message, native_search))
    system = [message.text for message in first if isinstance(message, SystemMessage) and message.text]
    return {"messages": turns.messages()} | ({"system": "\n\n".join(system)} if system else {})


def read_messages(request: JsonObject, tools: Mapping[str, ToolDefinition] = NO_TOOLS) -> list[Message]:
    """The conversation of a request. Raises BadArgumentsError, with the place, for unreadable parts.

    Messages may add only tools that are in *tools*, and the definition is taken from there: the author of a
    conversation must not define tools. Tools of MCP servers that the provider calls itself are left out.
    """
    system = _text_of(request.get("system") or "")
    messages: list[Message] = [SystemMessage(system)] if system else []
    called: dict[str, str] = {}  # id of a call -> name of its tool
    for number, entry in enumerate(objects_in(request.get("messages"), "messages", api=API), 1):
        match entry.get("role"):
            case "user":
                messages += _read_user(entry, called)
            case "assistant":
                message = _read_assistant(entry)
                called |= {call.id: call.name for call in message.tool_calls}
                messages.append(message)
            case "system":
                messages += _read_system(entry, tools)
            case role:
                refuse_request(f"messages number {number} has the role {role!r:.60}", api=API)
    return messages


def is_own(entry: JsonObject) -> bool:
    """Whether *entry* of a conversation is in this format, and not in one of OpenAI's."""
    return bool(part_types(entry) - {"text"})


def write_results(results: Sequence[ToolResult], native_search: NativeSearch | None = None) -> list[dict[str, Json]]:
    """One message for all results. With *native_search*, searches are answered with references to the tools that they
    load.
    """
    blocks = _write_result_blocks(results, native_search)
    return [{"role": "user", "content": blocks}] if blocks else []


def write_change(change: ToolChangeMessage, native_search: NativeSearch | None = None) -> list[dict[str, Json]]:
    """A system message that withdraws tools by name and adds others. New tools are added as definitions; tools of
    *native_search*, which the request defers, are added by name.

    The request needs a header for this message: `has_changes` says whether, and `capabilities_of` has the header.
    """
    blocks = _write_change_blocks(change, native_search)
    return [{"role": "system", "content": blocks}] if blocks else []


def has_changes(messages: Iterable[JsonObject]) -> bool:
    """Whether any of *messages*, as they are sent, adds or withdraws tools."""
    contents = [message["content"] for message in messages if message["role"] == "system"]
    return any(block["type"] in (_ADDITION, _REMOVAL) for content in contents for block in content)


def read_results(entries: Iterable[JsonObject], tools: Mapping[str, str]) -> list[ToolResult]:
    """The results among *entries*, the blocks of a message; *tools* has the name of each call's tool, by its id."""
    return [_read_result(entry, tools) for entry in entries if entry.get("type") == RESULT]


def sendable(entries: Iterable[object]) -> list[Any]:
    """See `PromptModule.sendable`.

    A model's answer may be empty, but the API refuses empty messages. Nor can it be left out after a system message,
    because only an answer may follow one. So a few words stand in for it.
    """
    sent: list[Any] = []
    role = None
    for entry in entries:
        before, role = role, _role(entry)
        if before == "system" and role == "user":
            sent.append({"role": "assistant", "content": _said([])})
        sent.append(_with_something_said(entry) if role == "assistant" else entry)
    return sent


def without_empty_texts(blocks: Iterable[JsonObject]) -> list[dict[str, Json]]:
    """Return the *blocks* of a model's message without empty texts: models write some, and the API refuses them."""
    return [dict(block) for block in blocks if _holds_something(block)]


def continued(request: Mapping[str, Json], blocks: list[dict[str, Json]]) -> dict[str, Json]:
    """Return *request* with the *blocks* of a paused answer at its end, for the model to go on with.

    The API takes roles in turn, so a second pause adds to the message of the first.
    """
    *before, last = request["messages"]
    if last["role"] == "assistant":
        return {**request, "messages": [*before, {**last, "content": [*last["content"], *blocks]}]}
    return {**request, "messages": [*before, last, {"role": "assistant", "content": blocks}]}


def _role(entry: object) -> object:
    return (mapping(entry) or {}).get("role")


def _with_something_said(entry: object) -> object:
    fields = mapping(entry) or {}
    content = fields.get("content")
    blocks = [text_block(content)] if isinstance(content, str) else list(content or ())
    kept = [block for block in blocks if _holds_something(mapping(block) or {})]
    said = _said(kept)
    return entry if said == blocks else {**fields, "content": said}


def _said(blocks: list[Any]) -> list[Any]:
    """Return a model's *blocks*, with a few words at the end if there are no blocks, or none after the thinking."""
    ends_early = not blocks or (mapping(blocks[-1]) or {}).get("type") in THINKING
    return [*blocks, text_block(_NO_ANSWER)] if ends_early else blocks


def _write(message: Message, native_search: NativeSearch | None) -> tuple[str, list[dict[str, Json]]]:
    match message:
        case SystemMessage():
            return "system", [text_block(message.text)] if message.text.strip() else []
        case UserMessage():
            return "user", _write_content(message)
        case ToolChangeMessage():
            return "system", _write_change_blocks(message, native_search)
        case ToolMessage():
            return "user", _write_result_blocks(message.results, native_search)
        case AssistantMessage():
            said = without_empty_texts(verbatim_items(message, PROVIDER)) or _write_assistant(message)
            return "assistant", _said(said)


def _write_assistant(message: AssistantMessage) -> list[dict[str, Json]]:
    text = [text_block(message.text)] if message.text.strip() else []
    return [*text, *write_calls(message.tool_calls)]


def _write_content(message: UserMessage) -> list[dict[str, Json]]:
    """Images before the text that asks about them."""
    parts = [_write_part(block) for block in message.content]
    return [*filter(_holds_something, parts), *([text_block(message.text)] if message.text.strip() else [])]


def _holds_something(part: JsonObject) -> bool:
    return part.get("type") != "text" or bool(str(part.get("text", "")).strip())


def _write_result_blocks(results: Iterable[ToolResult], native_search: NativeSearch | None) -> list[dict[str, Json]]:
    results = list(results)
    texts = [text for result in results for text in native_search.texts_beside(result)] if native_search else []
    beside = [text_block(write_beside(text)) for text in texts]
    return [*(_write_result(result, native_search) for result in results), *beside]


def _write_result(result: ToolResult, native_search: NativeSearch | None) -> dict[str, Json]:
    found = native_search.found(result) if native_search is not None else ()
    content = [reference(definition.name) for definition in found] or [
        part for part in map(_write_part, result.content) if part.get("text") != ""
    ]
    return {"type": RESULT, "tool_use_id": result.call_id, "content": content, "is_error": result.is_error}


def _write_change_blocks(change: ToolChangeMessage, native_search: NativeSearch | None) -> list[dict[str, Json]]:
    deferred: Collection[str] = native_search.definitions if native_search is not None else ()
    removed = [{"type": _REMOVAL, "tool": {"type": _REFERENCE, "name": name}} for name in change.removed]
    added = [
        {
            "type": _ADDITION,
            "tool": {"type": _REFERENCE, "name": definition.name}
            if definition.name in deferred
            else {"type": _DEFINITION, "definition": write_tool(definition)},
        }
        for definition in change.added
    ]
    return [*removed, *added]


def reference(name: str) -> dict[str, Json]:
    """The part of a result that loads a tool. Its name is enough, because the request holds the definition."""
    return {"type": _REFERENCE, "tool_name": name}


def _write_part(block: JsonObject) -> dict[str, Json]:
    if (image := image_to_send(block)) is not None:
        mime_type, data = image
        return {"type": "image", "source": {"type": "base64", "media_type": mime_type, "data": data}}
    return own_part(block, PROVIDER) or text_block(block_as_text(block))


def _read_part(part: JsonObject) -> dict[str, Json] | None:
    if part.get("type") != "image":
        return read_text_part(part)
    source = mapping(part.get("source")) or {}
    return image_block(str(source.get("data")), str(source.get("media_type")))


def _read_user(entry: JsonObject, tools: Mapping[str, str]) -> list[Message]:
    """The results that a user's message holds, and the rest of the message: two messages of ours."""
    blocks = _blocks(entry.get("content"))
    results = read_results(blocks, tools)
    said = [block for block in blocks if block.get("type") != RESULT]
    if any(map(found_names, results)):
        results = with_beside(results, [text for block in said if (text := _text_beside(block))])
        said = [block for block in said if not _text_beside(block)]
    content = read_parts(said, _read_part, _write_part, PROVIDER)
    messages: list[Message] = [ToolMessage(tuple(results))] if results else []
    if not content:
        return messages
    last = plain_text(content, -1)
    user = UserMessage("", tuple(content)) if last is None else UserMessage(last, tuple(content[:-1]))
    return [*messages, user]


def _text_beside(block: JsonObject) -> str:
    text = block.get("text") if block.get("type") == "text" else None
    return text if isinstance(text, str) and is_beside(text) else ""


def _read_system(entry: JsonObject, tools: Mapping[str, ToolDefinition]) -> Iterator[Message]:
    """Neighbouring texts become one message, and so do neighbouring changes of tools."""
    blocks = _blocks(entry.get("content"))
    for is_change, group in groupby(blocks, lambda block: block.get("type") in (_ADDITION, _REMOVAL)):
        if not is_change:
            yield SystemMessage("\n\n".join(str(block.get("text", "")) for block in group))
            continue
        named = [(block["type"], _changed_tool(block)) for block in group]
        added = tuple(tools[name] for kind, name in named if kind == _ADDITION and name in tools)
        removed = tuple(name for kind, name in named if kind == _REMOVAL and name)
        if added or removed:
            yield ToolChangeMessage(added, removed)


def _changed_tool(block: JsonObject) -> str:
    """The name of the tool that *block* adds or withdraws; "" if the tool is not ours."""
    tool = mapping(block.get("tool")) or {}
    named = {_REFERENCE: tool, _DEFINITION: mapping(tool.get("definition")) or {}}.get(str(tool.get("type")), {})
    name = named.get("name")
    return name if isinstance(name, str) else ""


def _read_assistant(entry: JsonObject) -> AssistantMessage:
    """A message that holds more than its text and its calls is kept verbatim, so that it goes back word for word."""
    blocks = _blocks(entry.get("content"))
    text = "".join(
        block["text"] for block in blocks if block.get("type") == "text" and isinstance(block.get("text"), str)
    )
    read = (read_call(block, position) for position, block in enumerate(blocks, 1))
    message = AssistantMessage(text, tuple(call for call in read if call is not None))
    if same_json(_write_assistant(message), blocks):
        return message
    return replace(message, verbatim=ProviderItems(PROVIDER, tuple(map(dict, blocks))))


def _read_result(block: JsonObject, tools: Mapping[str, str]) -> ToolResult:
    call_id = str(block.get("tool_use_id"))
    parts = _blocks(block.get("content") or [])
    loaded = [str(part.get("tool_name")) for part in parts if part.get("type") == _REFERENCE]
    others = [part for part in parts if part.get("type") != _REFERENCE]
    return ToolResult(
        call_id,
        tools.get(call_id, TOOL_NAME if loaded else ""),
        tuple(read_parts(others, _read_part, _write_part, PROVIDER)),
        structured={"tools": loaded} if loaded else None,
        is_error=block.get("is_error") is True,
    )


def _blocks(content: Json) -> list[JsonObject]:
    return [text_block(content)] if isinstance(content, str) else list(objects_in(content, "content", api=API))


def _text_of(content: Json) -> str:
    """The text of a system message, which cannot hold images."""
    return "\n\n".join(str(block.get("text", "")) for block in _blocks(content))
