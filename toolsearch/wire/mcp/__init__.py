"""The Model Context Protocol. The functions that every format has are here; the rest of MCP is in the modules below.

    definitions  tools, in the form of ``tools/list``
    requests     methods, calls, results of calls, and their ``_meta``
    lists        tools, prompts, resources and templates, page by page
    opening      the first messages of a connection
    eras         what clients of either era accept, and questions to them; the only module that needs the SDK

No other package writes or reads a field of these by its name. Two things are not MCP's alone, and are at home in
`toolsearch.tools`: the content blocks of a result (`results`) and a tool's annotations (`definition`), which have MCP's
shape wherever they are. Some names stay where they are used: those of one module alone, such as the parameters of
``resources/subscribe``, and those that the SDK defines, such as capabilities and notifications.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire.mcp.definitions import INPUT_SCHEMA, read_tool
from toolsearch.wire.mcp.definitions import write_sendable_tool as write_tool
from toolsearch.wire.mcp.requests import call_params, read_call, read_result, write_result
from toolsearch.wire.messages import ToolChangeMessage
from toolsearch.wire.native_search import NativeSearch
from toolsearch.wire.reply_parts import arguments_object

__all__ = [
    "INPUT_SCHEMA",
    "read_calls",
    "read_results",
    "read_tool",
    "write_calls",
    "write_change",
    "write_results",
    "write_tool",
]


def write_calls(calls: Iterable[ToolCall]) -> list[dict[str, Json]]:
    """The parameters of one ``tools/call`` for each call. The id of a call is the id of its request."""
    return [call_params(call.name, arguments_object(call)) for call in calls]


def read_calls(entries: Iterable[JsonObject]) -> list[ToolCall]:
    """The calls that *entries*, parameters of ``tools/call``, ask for; their ids are ``call_1``, ``call_2`` ..."""
    return [read_call(params, f"call_{position}") for position, params in enumerate(entries, 1)]


def write_results(results: Sequence[ToolResult], native_search: NativeSearch | None = None) -> list[dict[str, Json]]:
    """The answer to each call. Our searches load nothing here, so the answers hold no definitions."""
    del native_search
    return [write_result(_for_every_version(result)) for result in results]


def write_change(change: ToolChangeMessage) -> list[dict[str, Json]]:  # noqa: ARG001  every format has this signature
    """MCP has no such message: clients are told to list again."""
    return []


def read_results(entries: Iterable[JsonObject], calls: Iterable[ToolCall]) -> list[ToolResult]:
    """Read *entries*, the answers to *calls*, in the same order."""
    return [read_result(raw, call) for raw, call in zip(entries, calls, strict=True)]


def _for_every_version(result: ToolResult) -> ToolResult:
    """Before 2026-07-28 structured content had to be an object, so anything else is left out; the content says the
    same.
    """
    return result if isinstance(result.structured, Mapping) else replace(result, structured=None)
