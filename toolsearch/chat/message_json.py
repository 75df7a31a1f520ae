"""Messages as JSON text and back, for stores; what is read back equals what was written."""

from __future__ import annotations

import json
from typing import Any

from toolsearch.calling.plain_json import json_text, to_json
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.wire.messages import (
    AssistantMessage,
    Message,
    ProviderItems,
    SystemMessage,
    ToolChangeMessage,
    ToolMessage,
    UserMessage,
)

_ROLES: dict[str, type[Message]] = {
    "system": SystemMessage,
    "user": UserMessage,
    "assistant": AssistantMessage,
    "tool": ToolMessage,
    "tool_change": ToolChangeMessage,
}


def message_to_text(message: Message) -> str:
    """Raises ToolExecutionError if a block of *message* has no JSON form."""
    role = next(role for role, kind in _ROLES.items() if isinstance(message, kind))
    return json_text({"role": role} | to_json(message))


def message_from_text(text: str) -> Message:
    """Raises ValueError, TypeError, KeyError or AttributeError if *text* is no message."""
    values: dict[str, Any] = json.loads(text)
    match values.pop("role"):
        case "system":
            return SystemMessage(**values)
        case "user":
            return UserMessage(values["text"], tuple(values["content"]))
        case "assistant":
            calls = tuple(ToolCall(**call) for call in values["tool_calls"])
            return AssistantMessage(values["text"], calls, _provider_items(values["verbatim"]))
        case "tool":
            return ToolMessage(tuple(_result(result) for result in values["results"]))
        case "tool_change":
            added = tuple(ToolDefinition(**definition) for definition in values["added"])
            return ToolChangeMessage(added, tuple(values["removed"]))
        case role:
            raise ValueError(f"no such role: {role!r}")


def _provider_items(values: dict[str, Any] | None) -> ProviderItems | None:
    return ProviderItems(values["provider"], tuple(values["items"])) if values is not None else None


def _result(values: dict[str, Any]) -> ToolResult:
    content = tuple(values.pop("content"))
    return ToolResult(content=content, **values)
