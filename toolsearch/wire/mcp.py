"""The Model Context Protocol: definitions as ``tools/list`` has them, results as ``tools/call`` answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from toolsearch.tools.calls import ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.json_copies import ToPlain, deep_copy
from toolsearch.wire.native_search import NativeSearch


def write_tool(definition: ToolDefinition, plain: ToPlain = deep_copy) -> dict[str, Any]:
    tool: dict[str, Any] = {"name": definition.name}
    if definition.title:
        tool["title"] = definition.title
    if definition.description:
        tool["description"] = definition.description
    tool["inputSchema"] = plain(definition.input_schema)
    if definition.output_schema is not None:
        tool["outputSchema"] = plain(definition.output_schema)
    if definition.annotations:
        tool["annotations"] = plain(definition.annotations)
    return tool


def write_results(results: Sequence[ToolResult], native_search: NativeSearch | None = None) -> list[dict[str, Json]]:
    """What to answer each call with; a search of ours loads nothing here that the answer would have to hold."""
    del native_search
    return [write_result(result) for result in results]


def write_result(result: ToolResult) -> dict[str, Json]:
    message: dict[str, Json] = {"content": [dict(block) for block in result.content], "isError": result.is_error}
    structured = result.structured
    if isinstance(structured, Mapping):  # MCP has only objects here
        message["structuredContent"] = dict(cast("JsonObject", structured))
    return message
