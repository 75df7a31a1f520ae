"""The call tools, which run a found tool by its name: one for each safety class, so that clients can ask a person
first.
"""

from __future__ import annotations

from typing import Any

from toolsearch.documents.json_values import is_object
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import CALL_TOOL, TOOL_NAME
from toolsearch.tools.safety import SafetyClass, annotations_of, worst_safety_of
from toolsearch.wire.mcp.definitions import INPUT_SCHEMA, write_tool

_NAMES = {safety: f"{CALL_TOOL}{safety.value.capitalize()}" for safety in SafetyClass}
ALLOWED = {name: safety for safety, name in _NAMES.items()} | {CALL_TOOL: SafetyClass.DESTRUCTIVE}

WHICH = {
    SafetyClass.READ: "tools that only read",
    SafetyClass.WRITE: "tools that write and say that they destroy nothing",
    SafetyClass.DESTRUCTIVE: "tools that may destroy, or do not say what they do",
}


def call_tool_for(tool: Tool, *, is_split: bool) -> str:
    """The name of the call tool that runs *tool*."""
    return _NAMES[worst_safety_of(tool.definition.annotations)] if is_split else CALL_TOOL


def called_tool(name: str, arguments: object) -> str:
    """The name of the tool that a call runs in the end: for a call tool, the tool named in its *arguments*."""
    inner = arguments.get("name") if name in ALLOWED and is_object(arguments) else name
    return inner if isinstance(inner, str) else name


def call_tool_entries(*, is_split: bool, subject: str = "") -> list[dict[str, Any]]:
    """The call tools as MCP lists them, always all of them and in one order; *subject* as for the search tool."""
    names = _NAMES.values() if is_split else (CALL_TOOL,)
    return [write_tool(_definition(name, _which(name), ALLOWED[name], subject)) for name in names]


def _which(name: str) -> str:
    return "tools" if name == CALL_TOOL else WHICH[ALLOWED[name]]


def _definition(name: str, which: str, safety: SafetyClass, subject: str = "") -> ToolDefinition:
    properties: JsonObject = {
        "name": {"type": "string", "description": f"As {TOOL_NAME} gives it."},
        "arguments": {"type": "object", "description": f"What the tool's {INPUT_SCHEMA} asks for."},
    }
    whose = f" of {subject}" if subject else ""
    return ToolDefinition(
        name,
        f"Runs one tool{whose} that {TOOL_NAME} has found, by its name. For {which}.",
        {"type": "object", "properties": properties, "required": ["name"], "additionalProperties": False},
        annotations=annotations_of(safety),
    )


CALL_TOOLS = {name: _definition(name, _which(name), safety) for name, safety in ALLOWED.items()}
