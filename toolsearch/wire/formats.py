"""Which formats there are, and writing in the one that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from toolsearch.errors import BadSettingError
from toolsearch.tools.calls import ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.wire import anthropic, mcp, openai_chat, openai_responses
from toolsearch.wire.json_copies import ToPlain, itself_if_plain
from toolsearch.wire.messages import ToolChangeMessage
from toolsearch.wire.native_search import NativeSearch

WireFormat: TypeAlias = Literal["openai", "openai-responses", "anthropic", "mcp"]


class WireModule(Protocol):
    """What the module of every format has.

    Those of model APIs also write and read calls, conversations, tool choices and answers, by functions of equal names.
    What is read is equal to what was written as far as the format can say it; each module names what it cannot.
    """

    def write_tool(self, definition: ToolDefinition, plain: ToPlain = ...) -> dict[str, Any]:
        """Return *definition* as one entry of a request's tool list; what is returned may be changed at its top."""
        ...

    def read_tool(self, entry: JsonObject) -> ToolDefinition:
        """Return the definition in *entry*. Raises BadToolError, which says why, for what defines no tool."""
        ...

    def write_results(
        self, results: Sequence[ToolResult], native_search: NativeSearch | None = None
    ) -> list[dict[str, Json]]:
        """Return what to append to the conversation, or, for MCP, what to answer each call with."""
        ...

    def write_change(self, change: ToolChangeMessage) -> list[dict[str, Json]]:
        """Return what to append to the conversation after results; ``[]`` where the format has no such message."""
        ...


_MODULES: Mapping[str, WireModule] = {
    "openai": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
    "mcp": mcp,
}

_DEFERRING: Mapping[str, Callable[[Iterable[ToolDefinition], Iterable[ToolDefinition]], list[dict[str, Any]]]] = {
    "openai-responses": openai_responses.write_tool_list,
    "anthropic": anthropic.write_tool_list,
}

TOOL_FORMATS = tuple(_MODULES)


def wire_module(wire_format: str) -> WireModule:
    """Return the module of *wire_format*. Raises BadSettingError if there is none."""
    module = _MODULES.get(wire_format)
    if module is None:
        raise BadSettingError(f"no tool format {wire_format!r}; there are {', '.join(map(repr, TOOL_FORMATS))}")
    return module


def render_definition(definition: ToolDefinition, wire_format: str) -> dict[str, Any]:
    """Return *definition* as one entry of a request's tool list; equal definitions give equal bytes of JSON.

    *wire_format* is "openai" (chat completions), "openai-responses", "anthropic" or "mcp"; another one raises
    BadSettingError. The result is the caller's to change.
    """
    return wire_module(wire_format).write_tool(definition)


def render_tools(definitions: Iterable[ToolDefinition], wire_format: WireFormat) -> list[dict[str, Any]]:
    """Render each as `render_definition` does, in the given order."""
    write_tool = wire_module(wire_format).write_tool
    return [write_tool(definition) for definition in definitions]


def render_tool_list(
    listed: Iterable[ToolDefinition],
    deferred: Collection[ToolDefinition],
    wire_format: WireFormat,
    kept: RenderedTools | None = None,
) -> list[dict[str, Any]]:
    """Render *listed* and what the request has to say of *deferred*, which the model reads only once an answer loads
    some: Anthropic is sent them, marked, and OpenAI's Responses nothing, as the answer holds them, but there
    ``toolSearchTool`` is the API's own search. The other formats have no place for them.

    *kept* are deferred tools of that format that were rendered before. What comes of them is not the caller's to
    change, but each request copies thousands of schemas without it.
    """
    if kept is not None and kept.wire_format == wire_format:
        return [*render_tools(listed, wire_format), *map(dict, kept.of(deferred))]
    write_list = _DEFERRING.get(wire_format)
    return render_tools(listed, wire_format) if write_list is None else write_list(listed, deferred)


def read_tool(entry: JsonObject) -> ToolDefinition:
    """Return the definition in *entry*, in whichever of the formats; each has a name of its own for the input schema.

    Raises BadToolError, which says why, for what defines no tool.
    """
    fields = openai_chat.tool_fields(entry)
    if fields.get(anthropic.INPUT_SCHEMA) is not None:
        return anthropic.read_tool(fields)
    if fields.get(mcp.INPUT_SCHEMA) is not None:
        return mcp.read_tool(fields)
    return openai_responses.read_tool(fields)


def render_results(
    results: Sequence[ToolResult], wire_format: WireFormat, *, native_search: NativeSearch | None = None
) -> list[dict[str, Json]]:
    """Return what to append to the conversation (for "mcp": what to answer each call with), in the results' order.

    With *native_search*, results of ``toolSearchTool`` load tools in the provider's own way: "anthropic" is sent
    references to them, "openai-responses" their definitions; the other formats have no such way. With one that holds
    no tools and is not declared, as where nothing is deferred, they are answered as other calls.
    Where a format has no place for an image or for bytes, a line of text says what was left out.
    Raises BadSettingError for an unknown format.
    """
    is_native = native_search is not None and (native_search.is_declared or bool(native_search.definitions))
    return wire_module(wire_format).write_results(results, native_search if is_native else None)


def render_change(change: ToolChangeMessage, wire_format: WireFormat) -> list[dict[str, Json]]:
    """Return what to append to the conversation, after the results: what the model may call from here on.

    ``[]`` for no change, and where the format has no such message. Raises BadSettingError for an unknown format.
    """
    return wire_module(wire_format).write_change(change) if change.added or change.removed else []


class RenderedTools:
    """Definitions in one format, with *extra* in each, written once and given again as long as they are in use.

    For requests that hold thousands of them. What is given is shared with later requests, and with the definitions:
    nobody may change it. At most *max_kept* are kept. Safe to share between threads.
    """

    def __init__(self, wire_format: str, extra: JsonObject, *, max_kept: int = 20_000) -> None:
        self.wire_format = wire_format
        self._write_tool = wire_module(wire_format).write_tool
        self._extra = extra
        self._max_kept = max_kept
        self._kept: dict[int, tuple[ToolDefinition, JsonObject]] = {}  # by id, which is sound while it is held here

    def of(self, definitions: Collection[ToolDefinition]) -> list[JsonObject]:
        """Render each as `render_definition` does, in the given order."""
        kept = self._kept
        rendered: list[JsonObject] = []
        for definition in definitions:
            known = kept.get(id(definition))
            if known is None:
                known = definition, {**self._write_tool(definition, itself_if_plain), **self._extra}
                kept[id(definition)] = known
            rendered.append(known[1])
        if len(kept) > self._max_kept:
            self._kept = {}  # rare, and simpler than to tell which are still in use
        return rendered
