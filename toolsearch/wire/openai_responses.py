"""OpenAI's Responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolsearch.tools.blocks import in_words
from toolsearch.tools.calls import ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire.content import data_url, is_image, result_as_text
from toolsearch.wire.json_copies import ToPlain, deep_copy
from toolsearch.wire.model_tools import name_and_description, object_schema
from toolsearch.wire.native_search import NativeSearch


def write_tool(definition: ToolDefinition, plain: ToPlain = deep_copy) -> dict[str, Any]:
    # This API takes tools as strict unless told otherwise, and strict mode refuses most schemas found in the wild.
    parameters = {"parameters": object_schema(definition, plain), "strict": False}
    return {"type": "function"} | name_and_description(definition) | parameters


def write_results(results: Sequence[ToolResult], native_search: NativeSearch | None = None) -> list[dict[str, Json]]:
    """One item for each result. With *native_search*, searches are answered with the definitions that they found."""
    if native_search is None:
        return [_function_call_output(result) for result in results]
    outputs: list[dict[str, Json]] = []
    explanations: list[dict[str, Json]] = []
    for result in results:
        if result.name != TOOL_NAME:
            outputs.append(_function_call_output(result))
            continue
        found = native_search.found(result)
        outputs.append(_tool_search_output(result.call_id, found))
        if not found:  # why, and what to try, has no place in the output of a search
            said = f"{TOOL_NAME}: {result_as_text(result)}"
            explanations.append({"type": "message", "role": "developer", "content": said})
    return outputs + explanations


def _tool_search_output(call_id: str, found: Sequence[ToolDefinition]) -> dict[str, Json]:
    return {
        "type": "tool_search_output",
        "call_id": call_id,
        "execution": "client",
        "status": "completed",
        "tools": [write_tool(definition) | {"defer_loading": True} for definition in found],
    }


def _function_call_output(result: ToolResult) -> dict[str, Json]:
    return {"type": "function_call_output", "call_id": result.call_id, "output": _output(result)}


def _output(result: ToolResult) -> str | list[dict[str, Json]]:
    if not any(is_image(block) for block in result.content):
        return result_as_text(result)
    return [
        {"type": "input_image", "image_url": data_url(block)}
        if is_image(block)
        else {"type": "input_text", "text": in_words(block)}
        for block in result.content
    ]
