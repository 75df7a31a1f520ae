"""The Model Context Protocol: what every format has is here, and what MCP has beside it in the modules of this package.

    definitions  tools, as ``tools/list`` has them
    requests     methods, calls, what calls are answered with, and ``_meta`` around all of these
    lists        tools, prompts, resources and templates, page by page
    opening      the first messages of a connection
    eras         what a client of either era can take, and questions to it; the only module that needs the SDK

No other package writes or reads a field of these by its name. Two things are not MCP's alone, and are at home in
`toolsearch.tools`: the content blocks of a result (`results`) and a tool's annotations (`definition`), which have MCP's
shape wherever they are. What only one module speaks of, such as the parameters of ``resources/subscribe``, and what the
SDK has names for, such as capabilities and notifications, stays where it is used.
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
    """The parameters of a ``tools/call`` for each. The id of a call is that of the request around it."""
    return [call_params(call.name, arguments_object(call)) for call in calls]


def read_calls(entries: Iterable[JsonObject]) -> list[ToolCall]:
    """The calls that *entries*, parameters of ``tools/call``, ask for; their ids are ``call_1``, ``call_2`` ..."""
    return [read_call(params, f"call_{position}") for position, params in enumerate(entries, 1)]


def write_results(results: Sequence[ToolResult], native_search: NativeSearch | None = None) -> list[dict[str, Json]]:
    """What to answer each call with; a search of ours loads nothing here that the answer would have to hold."""
    del native_search
    return [write_result(_for_every_version(result)) for result in results]


def write_change(change: ToolChangeMessage) -> list[dict[str, Json]]:  # noqa: ARG001  every format has this signature
    """Nothing: clients are told to list anew."""
    return []


def read_results(entries: Iterable[JsonObject], calls: Iterable[ToolCall]) -> list[ToolResult]:
    """What *entries*, the answers to *calls* in their order, say of them."""
    return [read_result(raw, call) for raw, call in zip(entries, calls, strict=True)]


def _for_every_version(result: ToolResult) -> ToolResult:
    """What is structured had to be an object before 2026-07-28; the content says the same."""
    return result if isinstance(result.structured, Mapping) else replace(result, structured=None)
