"""Runs a tool of a toolset as the tool of its catalog that it is.

The call has passed the pipeline of the toolset by then, which admits, records and counts it once; it goes straight to
what runs the tool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from toolsearch.errors import NotCallableHereError, ToolGoneError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.proxy.relay import Relay
from toolsearch.service.toolset_specs import ToolsetMember
from toolsearch.tools.callbacks import run_callback
from toolsearch.tools.definition import Tool, ToolCallback, ToolContext
from toolsearch.tools.json_types import JsonObject
from toolsearch.upstreams.interface import Downstream
from toolsearch.wire.mcp.methods import CALL_TOOL
from toolsearch.wire.mcp.requests import call_params


@dataclass(frozen=True, slots=True)
class CatalogTool:
    """Finds the tool of a catalog at the moment of the call."""

    shown_name: str
    name: str
    find: Callable[[str], Tool | None]

    def get(self) -> Tool:
        """Raises ToolGoneError."""
        tool = self.find(self.name)
        if tool is None:
            raise ToolGoneError(self.shown_name)
        return tool


@dataclass(frozen=True, slots=True)
class ByCallback:
    """For a tool with a callback."""

    tool: CatalogTool

    async def call(self, arguments: JsonObject, context: ToolContext) -> object:
        return await run_callback(self._callback(), arguments, context)

    def _callback(self) -> ToolCallback:
        tool = self.tool.get()
        if tool.callback is None:
            raise ToolGoneError(self.tool.shown_name)
        return tool.callback


@dataclass(frozen=True, slots=True)
class ByServer:
    """A `RawToolCallback` for a tool of a server: the server's answer, progress and questions pass through."""

    tool: CatalogTool
    relay: Relay

    async def call_raw(self, params: Mapping[str, Any], caller: Caller, downstream: Downstream) -> dict[str, Any]:
        tool = self.tool.get()
        sent = {**params, **call_params(tool.remote_name, params.get("arguments") or {})}
        return await self.relay.send(caller, tool.definition.server, CALL_TOOL, sent, downstream, self._readmit(tool))

    async def call(self, arguments: JsonObject, context: ToolContext) -> object:  # noqa: ARG002
        """Outside of the gateway there is no client that the server could ask."""
        raise NotCallableHereError(self.tool.get().definition, arguments)

    def _readmit(self, tool: Tool) -> Callable[[], None]:
        """Connecting the server may have brought a new listing, by which it is another tool, or waits for approval."""

        def readmit() -> None:
            now = self.tool.get()
            if (now.remote_name, now.definition) != (tool.remote_name, tool.definition):
                raise ToolGoneError(self.tool.shown_name)

        return readmit


def shown_tool(member: ToolsetMember, tool: Tool, find: Callable[[str], Tool | None], relay: Relay) -> Tool:
    """*tool* of a catalog as a toolset shows it."""
    of_catalog = CatalogTool(member.shown_name, member.tool, find)
    callback: ToolCallback | None = None
    if tool.callback is not None:
        callback = ByCallback(of_catalog)
    elif tool.origin is not None:
        callback = ByServer(of_catalog, relay)
    return replace(
        tool,
        definition=member.shown(tool),
        callback=callback,
        source=f"catalog {member.catalog}",
        spec="",
        origin=None,
        original=tool.definition,
    )
