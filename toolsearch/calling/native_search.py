"""Answers to a tool search where the provider loads tools in the midst of a conversation, and so keeps its cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from toolsearch.calling.result import ToolResult
from toolsearch.discovery.exposure import render_definition
from toolsearch.discovery.search_tool import TOOL_NAME
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject


@dataclass(frozen=True, slots=True)
class NativeSearch:
    """What a result of ``toolSearchTool`` may load.

    definitions  the deferred tools, by name, as the request announces them. Any other name is left out of an answer,
                 since the provider would refuse the request for it

    A result names its tools in its structured form, ``{"tools": [name, ...]}``.
    """

    definitions: Mapping[str, ToolDefinition] = field(default_factory=dict[str, ToolDefinition])

    def found(self, result: ToolResult) -> list[ToolDefinition]:
        """What to load for *result*, in its order; ``[]`` if it failed or is no search."""
        if result.is_error or result.name != TOOL_NAME:
            return []
        names = cast("Sequence[str]", cast("JsonObject", result.structured or {}).get("tools", ()))
        return [self.definitions[name] for name in dict.fromkeys(names) if name in self.definitions]


def tool_references(found: Sequence[ToolDefinition]) -> list[dict[str, Json]]:
    """The content of an Anthropic ``tool_result``: names are enough, as the request holds the definitions."""
    return [{"type": "tool_reference", "tool_name": definition.name} for definition in found]


def tool_search_output(call_id: str, found: Sequence[ToolDefinition]) -> dict[str, Json]:
    """The item that answers a ``tool_search_call`` of OpenAI's Responses API: with whole definitions."""
    return {
        "type": "tool_search_output",
        "call_id": call_id,
        "execution": "client",
        "status": "completed",
        "tools": [render_definition(definition, "openai-responses") | {"defer_loading": True} for definition in found],
    }
