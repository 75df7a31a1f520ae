"""Tools as Chat Completions has them, and which of them the model must call.

Definitions have no place for annotations, an output schema, a title beside a description, or alternatives at the root
of a schema. A tool that is named like one of the other choices cannot be chosen by its name.
"""

from __future__ import annotations

from typing import Any

from toolsearch.errors import BadToolError
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.bad_request import refuse_request
from toolsearch.wire.definitions import name_and_description, read_definition
from toolsearch.wire.json_copies import ToPlain, deep_copy
from toolsearch.wire.openai_chat.names import API, PROVIDER
from toolsearch.wire.reply_items import mapping
from toolsearch.wire.sendable_tools import sendable_definition

_CHOICES = ("auto", "none", "required")


def write_tool(definition: ToolDefinition, plain: ToPlain = deep_copy) -> dict[str, Any]:
    sent = sendable_definition(definition, PROVIDER)
    parameters = {"parameters": plain(sent.input_schema)}
    return {"type": "function", "function": name_and_description(sent) | parameters}


def write_strict_tool(definition: ToolDefinition, schema: JsonObject) -> dict[str, Any]:
    """The same in strict mode, with *schema* in place of its own."""
    sent = sendable_definition(definition, PROVIDER)
    return {
        "type": "function",
        "function": name_and_description(sent) | {"parameters": schema, "strict": True},
    }


def read_tool(entry: JsonObject) -> ToolDefinition:
    """Raises BadToolError, which says why, for what defines no tool."""
    if "function" not in entry:
        raise BadToolError("it has no 'function'")
    return read_definition(tool_fields(entry), "parameters")


def tool_fields(entry: JsonObject) -> JsonObject:
    """What *entry* says of its tool: this format has most of it in an object of its own."""
    function = mapping(entry.get("function"))
    return entry if function is None else {**entry, **function}


def write_tool_choice(choice: str | None) -> dict[str, Json]:
    """The part of a request that says it; *choice* is "auto", "none", "required" or the name of a tool."""
    if choice is None:
        return {}
    return {"tool_choice": choice if choice in _CHOICES else {"type": "function", "function": {"name": choice}}}


def read_tool_choice(request: JsonObject) -> str | None:
    """Raises BadArgumentsError for a choice that is neither, such as one among several tools."""
    choice = request.get("tool_choice")
    if choice is None or choice in _CHOICES:
        return choice
    fields = mapping(choice) or {}
    name = (mapping(fields.get("function")) or {}).get("name")
    if fields.get("type") != "function" or not isinstance(name, str):
        refuse_request("its tool_choice is none of 'auto', 'none', 'required' and a function", api=API)
    return name
