"""A request to Anthropic's Messages beside its conversation: tools, the tool choice, the schema of the answer.

The cache mark is here as well: Anthropic keeps a prompt for the next requests only up to a mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.reply_parts import mapping
from toolsearch.wire.request_parts import (
    PromptPart,
    ToPlain,
    deep_copy,
    name_and_description,
    read_definition,
    refuse_request,
)
from toolsearch.wire.sendable_tools import sendable_definition

PROVIDER: Final = "anthropic"  # the value of `ProviderItems.provider`
API: Final = "Anthropic Messages"
THINKING: Final = ("thinking", "redacted_thinking")  # types of the blocks that hold a model's thinking
INPUT_SCHEMA: Final = "input_schema"


# Marks a definition that the model sees only once a search result refers to it.
DEFERRED: Final[JsonObject] = {"defer_loading": True}
_CHOICES: Mapping[str, str] = {"auto": "auto", "none": "none", "required": "any"}
_READ_CHOICES = {written: choice for choice, written in _CHOICES.items()}


def write_tool(definition: ToolDefinition, plain: ToPlain = deep_copy) -> dict[str, Any]:
    sent = sendable_definition(definition, PROVIDER)
    return name_and_description(sent) | {INPUT_SCHEMA: plain(sent.input_schema)}


def write_tool_list(listed: Iterable[ToolDefinition], deferred: Iterable[ToolDefinition]) -> list[dict[str, Any]]:
    """Deferred tools come last."""
    marked = [{**write_tool(definition), **DEFERRED} for definition in deferred]
    return [*map(write_tool, listed), *marked]


def read_tool(entry: JsonObject) -> ToolDefinition:
    """Raises BadToolError, with the reason, if *entry* defines no tool."""
    return read_definition(entry, INPUT_SCHEMA)


def write_tool_choice(choice: str | None) -> dict[str, Json]:
    """The part of a request that makes the choice; *choice* is "auto", "none", "required" or the name of a tool."""
    if choice is None:
        return {}
    return {"tool_choice": {"type": _CHOICES[choice]} if choice in _CHOICES else {"type": "tool", "name": choice}}


def read_tool_choice(request: JsonObject) -> str | None:
    """Raises BadArgumentsError for any other choice."""
    choice = request.get("tool_choice")
    if choice is None:
        return None
    fields = mapping(choice) or {}
    kind, name = fields.get("type"), fields.get("name")
    if isinstance(kind, str) and kind in _READ_CHOICES:
        return _READ_CHOICES[kind]
    if kind != "tool" or not isinstance(name, str):
        refuse_request("its tool_choice is none of auto, none, any and tool", api=API)
    return name


MARK: Final = "cache_control"
_EPHEMERAL: Final[JsonObject] = {"type": "ephemeral"}
_MOST_MARKS = 4  # the API refuses requests with more marks


def with_cache_mark(request: Mapping[str, Any], *, marks_requests: bool) -> dict[str, Any]:
    """Return *request* with a cache mark, so that the provider keeps it for the next requests. Marks that it has stay,
    and it never gets more than the API allows.

    *marks_requests* is as in `Capabilities`. If it is false, the mark stands on the last tool of the list that is not
    deferred, since a session does not see the messages.
    """
    marks = sum(MARK in block for block in _blocks(request))
    if MARK in request or marks >= _MOST_MARKS:
        return dict(request)
    if marks_requests:
        last = _last_block(request)
        return (
            dict(request) if MARK in last else {**request, MARK: _EPHEMERAL}
        )  # the API refuses two marks in one place
    listed = [place for place, tool in enumerate(request.get("tools", ())) if not DEFERRED.items() <= tool.items()]
    if marks or not listed:  # the API refuses a mark with a longer lifetime after a shorter one
        return dict(request)
    tools = list(request["tools"])
    tools[listed[-1]] = {**tools[listed[-1]], MARK: _EPHEMERAL}
    return {**request, "tools": tools}


def _blocks(request: Mapping[str, Any]) -> Iterator[JsonObject]:
    yield from request.get("tools", ())
    for text in (request.get("system"), *(message["content"] for message in request.get("messages", ()))):
        if isinstance(text, list):
            yield from cast("list[JsonObject]", text)


def _last_block(request: Mapping[str, Any]) -> JsonObject:
    messages = request.get("messages", ())
    content: object = messages[-1]["content"] if messages else ()
    return cast("list[JsonObject]", content)[-1] if content and isinstance(content, list) else {}


_FOR_THE_API = frozenset({MARK, *DEFERRED})


def front_parts(tools: Iterable[JsonObject], system: str) -> Iterator[PromptPart]:
    """The parts before the messages. Deferred tools are left out, because the model reads them only when a message
    refers to them.
    """
    for tool in tools:
        if not _is_deferred(tool):
            yield PromptPart(_read(tool), is_end=True)
    if system:
        yield PromptPart({"system": system}, is_end=True)


def message_parts(messages: Iterable[JsonObject], tools: Iterable[JsonObject]) -> Iterator[PromptPart]:
    """Each block of a message is a part, because cache marks stand on blocks. If a block refers to deferred *tools*,
    their definitions follow, and the block ends after them.
    """
    deferred = {tool["name"]: tool for tool in tools if _is_deferred(tool)}
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else cast("list[JsonObject]", content)
        for block in blocks:
            loaded = [_read(deferred[name]) for name in _referred(block) if name in deferred]
            *before, last = {"role": message["role"], "content": [_read(block)]}, *loaded
            yield from (PromptPart(each, is_end=False) for each in before)
            yield PromptPart(last, is_end=True)


def _is_deferred(tool: JsonObject) -> bool:
    return DEFERRED.items() <= tool.items()


def _read(entry: JsonObject) -> JsonObject:
    return {key: value for key, value in entry.items() if key not in _FOR_THE_API}


def _referred(block: JsonObject) -> Iterator[object]:
    """The names that a result refers to; an addition holds the definition itself."""
    content = block.get("content")
    for each in cast("list[object]", content) if isinstance(content, list) else ():
        reference = mapping(each) or {}
        if reference.get("type") == "tool_reference":
            yield reference.get("tool_name")


def write_response_format(schema: JsonObject) -> dict[str, Any]:
    """The part of a request that sets the format; *schema* is a result of the SDK's ``transform_schema``."""
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
