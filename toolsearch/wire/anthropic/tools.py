"""Tools as Anthropic's Messages has them, and which of them the model must call.

Definitions have no place for annotations, an output schema, a title beside a description, or alternatives at the root
of a schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.anthropic.names import API, PROVIDER
from toolsearch.wire.bad_request import refuse_request
from toolsearch.wire.definitions import name_and_description, read_definition
from toolsearch.wire.json_copies import ToPlain, deep_copy
from toolsearch.wire.reply_items import mapping
from toolsearch.wire.sendable_tools import sendable_definition

INPUT_SCHEMA: Final = "input_schema"
DEFERRED: Final[JsonObject] = {"defer_loading": True}  # in a definition that is read only once a result refers to it

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
    """Raises BadToolError, which says why, for what defines no tool."""
    return read_definition(entry, INPUT_SCHEMA)


def write_tool_choice(choice: str | None) -> dict[str, Json]:
    """The part of a request that says it; *choice* is "auto", "none", "required" or the name of a tool."""
    if choice is None:
        return {}
    return {"tool_choice": {"type": _CHOICES[choice]} if choice in _CHOICES else {"type": "tool", "name": choice}}


def read_tool_choice(request: JsonObject) -> str | None:
    """Raises BadArgumentsError for a choice that is none of these."""
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
