"""OpenAI's Chat Completions, and every endpoint that is compatible with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolsearch.tools.calls import ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json
from toolsearch.wire.content import result_as_text
from toolsearch.wire.json_copies import ToPlain, deep_copy
from toolsearch.wire.model_tools import name_and_description, object_schema
from toolsearch.wire.native_search import NativeSearch


def write_tool(definition: ToolDefinition, plain: ToPlain = deep_copy) -> dict[str, Any]:
    parameters = {"parameters": object_schema(definition, plain)}
    return {"type": "function", "function": name_and_description(definition) | parameters}


def write_results(results: Sequence[ToolResult], native_search: NativeSearch | None = None) -> list[dict[str, Json]]:
    """One message for each result, in words: this format has no place for an image, nor a way to load tools."""
    del native_search
    return [{"role": "tool", "tool_call_id": result.call_id, "content": result_as_text(result)} for result in results]
