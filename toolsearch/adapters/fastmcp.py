"""toolsearch in FastMCP: a search transform, in place of its BM25."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from toolsearch.access.reach import Reach
from toolsearch.discovery.call_tools import CALL_TOOLS, READ_SKILL_TOOL
from toolsearch.engine import ToolSearch
from toolsearch.errors import MissingExtraError, ToolExecutionError
from toolsearch.session import Session
from toolsearch.tools.definition import Tool, ToolContext
from toolsearch.tools.json_types import JsonObject
from toolsearch.tools.naming import CALL_TOOL, TOOL_NAME, all_namespaced
from toolsearch.tools.results import ToolOutput
from toolsearch.wire.formats import render_results
from toolsearch.wire.mcp.definitions import read_tool

try:
    from fastmcp.server.dependencies import get_context
    from fastmcp.server.transforms import catalog
    from fastmcp.tools import base
    from mcp.types import CallToolResult
except ImportError as error:
    raise MissingExtraError("the adapter for FastMCP", "fastmcp") from error


class ToolSearchTransform(catalog.CatalogTransform):
    """Lists the search tool, ``callTool`` and *pins* in place of a server's tools; a few tools are listed as they are.

    Clients find and call the tools that they may see. The catalog of *engine* is filled with the server's tools. If it
    has skills, every client finds these, too, and is listed ``readSkill``.
    """

    def __init__(self, engine: ToolSearch | None = None, *, pins: Collection[str] = ()) -> None:
        super().__init__()
        self._engine, self._pins = engine or ToolSearch([]), pins
        self._known: dict[str, Any] = {}
        definitions = self._session([]).resolve(TOOL_NAME).definition, READ_SKILL_TOOL, CALL_TOOLS[CALL_TOOL]
        self._own = {
            each.name: _OwnTool(
                name=each.name, description=each.description, parameters=dict(each.input_schema), call=self._call
            )
            for each in definitions
        }

    async def transform_tools(self, tools: Sequence[base.Tool]) -> Sequence[base.Tool]:
        session = self._session(tools)
        shown = {tool.name for tool in session.shown()} | (set() if session.is_passed_through else {CALL_TOOL})
        own = [tool for name, tool in self._own.items() if name in shown]
        return [*own, *(tool for tool in tools if session.is_passed_through or tool.name in self._pins)]

    async def get_tool(self, name: str, call_next: Any, **version: Any) -> base.Tool | None:
        return self._own.get(name) or await call_next(name, **version)

    async def _call(self, name: str, arguments: dict[str, Any]) -> base.ToolResult:
        session = self._session(await self.get_tool_catalog(get_context()))
        written = render_results([await session.call(name, arguments)], "mcp")
        return base.ToolResult.from_mcp_result(CallToolResult.model_validate(written[0]))

    def _session(self, visible: Sequence[base.Tool]) -> Session:
        legal = all_namespaced("", [tool.name for tool in visible])
        tools = {legal[tool.name]: tool for tool in visible}
        changed = {name: tool for name, tool in tools.items() if self._known.get(name) != _shown(tool)}
        self._engine.catalog.put(*(_searchable(name, tool) for name, tool in changed.items()))
        self._known |= {name: _shown(tool) for name, tool in changed.items()}
        return self._engine.session(_session_id(), reach=_reach(tuple(tools)), exposure="fixed")


class _OwnTool(base.Tool):
    call: Any

    async def run(self, arguments: dict[str, Any]) -> base.ToolResult:
        result: base.ToolResult = await self.call(self.name, arguments)
        return result


@dataclass(frozen=True, slots=True)
class _ServerCall:
    """Calls a tool as its server does for a client, middleware included."""

    name: str

    async def call(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        result = await get_context().fastmcp.call_tool(self.name, dict(arguments))
        if isinstance(result, base.InputRequiredToolResult):
            raise ToolExecutionError(f"{self.name} asks the user for input: call it by its own name")
        blocks = result.model_dump(mode="json", by_alias=True, exclude_none=True)["content"]
        return ToolOutput(tuple(blocks), result.structured_content, is_error=result.is_error)


@lru_cache(maxsize=64)
def _reach(names: tuple[str, ...]) -> Reach:
    return Reach.parse([*names, "kind:skill"])


def _shown(tool: base.Tool) -> Any:
    """The parts of a tool in which changes would show. Comparing whole tools takes FastMCP longer than a search."""
    return tool.title, tool.description, tool.parameters, tool.output_schema, tool.annotations


def _searchable(name: str, tool: base.Tool) -> Tool:
    entry = tool.to_mcp_tool().model_dump(mode="json", by_alias=True, exclude_none=True)
    return Tool(read_tool(entry, name=name), _ServerCall(tool.name), source=f"FastMCP's {tool.name}")


def _session_id() -> str:
    try:
        return get_context().session_id
    except RuntimeError:  # there is no request
        return "no request"
