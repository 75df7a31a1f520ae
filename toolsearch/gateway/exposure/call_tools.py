"""The call tools, which run a found tool by its name: one for each safety class, so that clients can ask a person
first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolsearch.calling.arguments import parse_arguments
from toolsearch.documents.json_values import is_object
from toolsearch.errors import BadArgumentsError, CallDeniedError
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.tools.safety import SafetyClass, annotations_of, worst_safety_of
from toolsearch.wire.mcp.definitions import INPUT_SCHEMA, write_tool

CALL_TOOL = "callTool"
_NAMES = {safety: f"{CALL_TOOL}{safety.value.capitalize()}" for safety in SafetyClass}
_ALLOWED = {name: safety for safety, name in _NAMES.items()} | {CALL_TOOL: SafetyClass.DESTRUCTIVE}

_WHICH = {
    SafetyClass.READ: "tools that only read",
    SafetyClass.WRITE: "tools that write and say that they destroy nothing",
    SafetyClass.DESTRUCTIVE: "tools that may destroy, or do not say what they do",
}


def call_tool_for(tool: Tool, *, is_split: bool) -> str:
    """The name of the call tool that runs *tool*."""
    return _NAMES[worst_safety_of(tool.definition.annotations)] if is_split else CALL_TOOL


def called_tool(name: str, arguments: object) -> str:
    """The name of the tool that a call runs in the end: for a call tool, the tool named in its *arguments*."""
    inner = arguments.get("name") if name in _ALLOWED and is_object(arguments) else name
    return inner if isinstance(inner, str) else name


def call_tool_entries(*, is_split: bool) -> list[dict[str, Any]]:
    """The call tools as MCP lists them, always all of them and in one order."""
    return [write_tool(_DEFINITIONS[name]) for name in (_NAMES.values() if is_split else (CALL_TOOL,))]


def _definition(name: str, which: str, safety: SafetyClass) -> ToolDefinition:
    properties: JsonObject = {
        "name": {"type": "string", "description": f"As {TOOL_NAME} gives it."},
        "arguments": {"type": "object", "description": f"What the tool's {INPUT_SCHEMA} asks for."},
    }
    return ToolDefinition(
        name,
        f"Runs one tool that {TOOL_NAME} has found, by its name. For {which}.",
        {"type": "object", "properties": properties, "required": ["name"], "additionalProperties": False},
        annotations=annotations_of(safety),
    )


_DEFINITIONS = {
    CALL_TOOL: _definition(CALL_TOOL, "tools", SafetyClass.DESTRUCTIVE),
    **{name: _definition(name, _WHICH[safety], safety) for safety, name in _NAMES.items()},
}


@dataclass(frozen=True, slots=True)
class InnerCall:
    """The call that a call tool is asked to make."""

    call_tool: str
    name: str
    arguments: JsonObject

    def require_allowed(self, tool: Tool) -> None:
        """Raise CallDeniedError if *tool* is less safe than the call tool's own annotations say."""
        allowed = _ALLOWED[self.call_tool]
        if not allowed.covers(worst_safety_of(tool.definition.annotations)):
            needed = call_tool_for(tool, is_split=True)
            raise CallDeniedError(f"{self.call_tool} runs {_WHICH[allowed]}; call {tool.name!r} with {needed}")

    @classmethod
    def parse(cls, call: ToolCall) -> InnerCall | None:
        """None if *call* is not of a call tool. Raises BadArgumentsError, written for the model."""
        call_tool = call.name
        if call_tool not in _ALLOWED:
            return None
        arguments = parse_arguments(call.arguments)
        name, inner = arguments.get("name"), arguments.get("arguments")
        if not isinstance(name, str) or not name:
            raise BadArgumentsError(f"{call_tool} needs the 'name' of a tool, as {TOOL_NAME} gives it")
        if inner is None:
            return cls(call_tool, name, {})
        if isinstance(inner, str):  # models like to send the inner object as text
            return cls(call_tool, name, parse_arguments(inner))
        if not is_object(inner):
            raise BadArgumentsError(f"'arguments' must be an object, as the tool's {INPUT_SCHEMA} asks for")
        return cls(call_tool, name, inner)
