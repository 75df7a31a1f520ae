"""The call tools, which run a found tool by its name: one for each safety class, so that clients can ask a person.

``readSkill`` is beside them: it reads a found skill, and nothing else. The calls that all of these make are read here,
too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from toolsearch.documents.json_values import is_object
from toolsearch.errors import BadArgumentsError, CallDeniedError, shown_name
from toolsearch.tools.calls import ToolCall, parse_arguments
from toolsearch.tools.definition import SafetyClass, Tool, ToolDefinition, annotations_of, worst_safety_of
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import CALL_TOOL, READ_SKILL, TOOL_NAME
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


def reading_call_tool(*, is_split: bool) -> str:
    """The name of the call tool that gets prompts and resources."""
    return _NAMES[SafetyClass.READ] if is_split else CALL_TOOL


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


# No text here depends on the catalog: these bytes stay, whichever skills come and go.
READ_SKILL_TOOL: Final = ToolDefinition(
    READ_SKILL,
    f"Reads a skill that {TOOL_NAME} has found: instructions for a task. Read it before you begin with that task.",
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": f"As {TOOL_NAME} gives it."},
            "file": {"type": "string", "description": "One of the skill's other files; its instructions if left out."},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
    annotations=annotations_of(SafetyClass.READ),
)


def inner_call(call: ToolCall, find_entry: Callable[[str], Tool | None]) -> ToolCall:
    """The call that *call* makes through the call tool or ``readSkill`` of a session, so that permissions, hooks,
    limits and spans see what runs. It is *call* itself if *call* is of another tool or cannot be read.

    *find_entry* finds the entries in reach. ``readSkill`` makes calls of skills only.
    """
    return _skill_read(_call_made(call), find_entry)


def _call_made(call: ToolCall) -> ToolCall:
    return call if call.name != CALL_TOOL else _inside(call) or call


def _skill_read(call: ToolCall, find_entry: Callable[[str], Tool | None]) -> ToolCall:
    inner = _inside(call) if call.name == READ_SKILL else None
    entry = None if inner is None else find_entry(inner.name)
    return inner if inner is not None and entry is not None and entry.is_skill else call


def _inside(call: ToolCall) -> ToolCall | None:
    try:
        inner = None if call.unfinished else InnerCall.parse(call)
    except BadArgumentsError:
        return None
    return None if inner is None else replace(call, name=inner.name, arguments=inner.arguments)


@dataclass(frozen=True, slots=True)
class InnerCall:
    """The call that a call tool or ``readSkill`` has to make."""

    call_tool: str
    name: str
    arguments: JsonObject

    def require_allowed(self, tool: Tool) -> None:
        """Raise CallDeniedError if *tool* is less safe than the call tool's own annotations say, or is no skill where
        one is read.
        """
        if self.call_tool == READ_SKILL:
            if not tool.is_skill:
                raise CallDeniedError(f"{READ_SKILL} reads skills, and {tool.name!r} is a {tool.definition.kind}")
            return
        allowed = ALLOWED[self.call_tool]
        if not allowed.covers(worst_safety_of(tool.definition.annotations)):
            needed = call_tool_for(tool, is_split=True)
            raise CallDeniedError(f"{self.call_tool} runs {WHICH[allowed]}; call {tool.name!r} with {needed}")

    @classmethod
    def parse(cls, call: ToolCall) -> InnerCall | None:
        """None if *call* is of none of these tools. Raises BadArgumentsError, written for the model."""
        call_tool = call.name
        if call_tool == READ_SKILL:
            return cls._of_skill(parse_arguments(call.arguments))
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

    @classmethod
    def _of_skill(cls, arguments: JsonObject) -> InnerCall:
        name, file = arguments.get("name"), arguments.get("file")
        if not isinstance(name, str) or not name or arguments.keys() - {"name", "file"}:
            raise BadArgumentsError(f"{READ_SKILL} takes the 'name' of a skill, as {TOOL_NAME} gives it, and a 'file'")
        return cls(READ_SKILL, name, {} if file in (None, "") else {"file": file})
