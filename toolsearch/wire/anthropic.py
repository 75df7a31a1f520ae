"""Anthropic's Messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolsearch.tools.blocks import in_words
from toolsearch.tools.calls import ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json
from toolsearch.wire.content import is_image
from toolsearch.wire.json_copies import ToPlain, deep_copy
from toolsearch.wire.model_tools import name_and_description, object_schema
from toolsearch.wire.native_search import NativeSearch


def write_tool(definition: ToolDefinition, plain: ToPlain = deep_copy) -> dict[str, Any]:
    return name_and_description(definition) | {"input_schema": object_schema(definition, plain)}


def write_results(results: Sequence[ToolResult], native_search: NativeSearch | None = None) -> list[dict[str, Json]]:
    """One message for all results. With *native_search*, searches are answered with references to what they found."""
    native_search = native_search or NativeSearch()
    blocks: list[dict[str, Json]] = [
        {
            "type": "tool_result",
            "tool_use_id": result.call_id,
            "content": _tool_references(native_search.found(result)) or _content(result),
            "is_error": result.is_error,
        }
        for result in results
    ]
    return [{"role": "user", "content": blocks}] if blocks else []


def _tool_references(found: Sequence[ToolDefinition]) -> list[dict[str, Json]]:
    """Names are enough, as the request holds the definitions."""
    return [{"type": "tool_reference", "tool_name": definition.name} for definition in found]


def _content(result: ToolResult) -> list[dict[str, Json]]:
    content: list[dict[str, Json]] = []
    for block in result.content:
        if is_image(block):
            source = {"type": "base64", "media_type": block["mimeType"], "data": block["data"]}
            content.append({"type": "image", "source": source})
        elif text := in_words(block):  # the API refuses empty text
            content.append({"type": "text", "text": text})
    return content
