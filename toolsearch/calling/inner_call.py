"""The call that a call tool is asked to make."""

from __future__ import annotations

from dataclasses import dataclass, replace

from toolsearch.discovery.call_tools import ALLOWED, WHICH, call_tool_for
from toolsearch.documents.json_values import is_object
from toolsearch.errors import BadArgumentsError, CallDeniedError
from toolsearch.tools.arguments import parse_arguments
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.definition import Tool
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import CALL_TOOL, TOOL_NAME
from toolsearch.tools.safety import worst_safety_of
from toolsearch.wire.mcp.definitions import INPUT_SCHEMA


def inner_call(call: ToolCall) -> ToolCall:
    """The call that *call* makes by the one call tool of a session, so that permissions, hooks, limits and spans know
    the tool that runs; *call* itself if it is of another tool, or cannot be read.
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
    """The call that a call tool is asked to make."""

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
            return cls(call_tool, name, {})
        if isinstance(inner, str):  # models like to send the inner object as text
            return cls(call_tool, name, parse_arguments(inner))
        if not is_object(inner):
            raise BadArgumentsError(f"'arguments' must be an object, as the tool's {INPUT_SCHEMA} asks for")
        return cls(call_tool, name, inner)
