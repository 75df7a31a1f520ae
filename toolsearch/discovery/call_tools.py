"""The call tools, which run a found tool by its name: one for each safety class, so that clients can ask a person.

The calls that these tools run are read here, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from toolsearch.documents.json_values import is_object
from toolsearch.errors import BadArgumentsError, CallDeniedError, shown_name
from toolsearch.tools.calls import ToolCall, parse_arguments
from toolsearch.tools.definition import SafetyClass, Tool, ToolDefinition, annotations_of, worst_safety_of
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import CALL_TOOL, TOOL_NAME
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


def call_tool_entries(*, is_split: bool, subject: str = "") -> list[dict[str, Any]]:
    """The call tools as MCP lists them, always all of them and in one order; *subject* as for the search tool."""
    names = _NAMES.values() if is_split else (CALL_TOOL,)
    return [write_tool(_definition(name, _which(name), ALLOWED[name], subject)) for name in names]


def _which(name: str) -> str:
    return "" if name == CALL_TOOL else WHICH[ALLOWED[name]]


def _definition(name: str, which: str, safety: SafetyClass, subject: str = "") -> ToolDefinition:
    properties: JsonObject = {
        "name": {"type": "string", "description": f"As {TOOL_NAME} gives it."},
        "arguments": {"type": "object", "description": f"The tool's own parameters, by its {INPUT_SCHEMA}."},
    }
    whose = f" of {subject}" if subject else ""
    for_which = f" For {which}." if which else ""
    return ToolDefinition(
        name,
        f"Runs one tool{whose} that {TOOL_NAME} has found. Its own parameters go inside 'arguments'.{for_which}",
        {"type": "object", "properties": properties, "required": ["name"], "additionalProperties": False},
        annotations=annotations_of(safety),
    )


CALL_TOOLS = {name: _definition(name, _which(name), safety) for name, safety in ALLOWED.items()}


def inner_call(call: ToolCall) -> ToolCall:
    """The call that *call* makes through the one call tool of a session, so that permissions, hooks, limits and spans
    see the tool that runs. It is *call* itself if *call* is of another tool or cannot be read.
    """
    if call.name != CALL_TOOL or call.unfinished:
        return call
    try:
        inner = InnerCall.parse(call)
    except BadArgumentsError:
        return call
    return call if inner is None else replace(call, name=inner.name, arguments=inner.arguments)


@dataclass(frozen=True, slots=True)
class InnerCall:
    """The call that a call tool has to make."""

    call_tool: str
    name: str
    arguments: JsonObject

    def require_allowed(self, tool: Tool) -> None:
        """Raise CallDeniedError if *tool* is less safe than the call tool's own annotations say."""
        allowed = ALLOWED[self.call_tool]
        if not allowed.covers(worst_safety_of(tool.definition.annotations)):
            needed = call_tool_for(tool, is_split=True)
            raise CallDeniedError(f"{self.call_tool} runs {WHICH[allowed]}; call {tool.name!r} with {needed}")

    @classmethod
    def parse(cls, call: ToolCall) -> InnerCall | None:
        """None if *call* is not of a call tool. Raises BadArgumentsError, written for the model."""
        call_tool = call.name
        if call_tool not in ALLOWED:
            return None
        arguments = parse_arguments(call.arguments)
        name, inner = arguments.get("name"), arguments.get("arguments")
        if not isinstance(name, str) or not name:
            raise BadArgumentsError(f"{call_tool} needs the 'name' of a tool, as {TOOL_NAME} gives it")
        if inner is None:
            if arguments.keys() - {"name", "arguments"}:
                raise BadArgumentsError(f"put the parameters of {shown_name(name)} inside 'arguments'")
            return cls(call_tool, name, {})
        if isinstance(inner, str):  # models often send the inner object as text
            return cls(call_tool, name, parse_arguments(inner))
        if not is_object(inner):
            raise BadArgumentsError(f"'arguments' must be an object, as the tool's {INPUT_SCHEMA} asks for")
        return cls(call_tool, name, inner)
