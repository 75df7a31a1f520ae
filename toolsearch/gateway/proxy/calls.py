"""Runs a tool of a server for a client, so that either sees of the other what it would see without us."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from mcp import MCPError
from mcp.types import INVALID_PARAMS

from toolsearch.calling.validation import checked_arguments
from toolsearch.errors import BadArgumentsError, ToolSearchError, UnapprovedToolError, UnknownToolError, shown_name
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.exposure.call_tools import InnerCall
from toolsearch.gateway.exposure.surface import Surface
from toolsearch.gateway.proxy.relay import Relay
from toolsearch.tools.blocks import text_block
from toolsearch.tools.definition import Tool
from toolsearch.tools.json_types import JsonObject
from toolsearch.upstreams.protocol import Downstream

logger = logging.getLogger(__name__)


class CallProxy:
    """Calls, by name or through a call tool. The calling manager has no part in it: what a server answers is passed on
    whole, and neither cut nor converted.
    """

    def __init__(self, surface: Surface, relay: Relay) -> None:
        self._surface = surface
        self._relay = relay

    async def call(self, caller: Caller, params: Mapping[str, Any], downstream: Downstream) -> dict[str, Any]:
        """Answer ``tools/call`` with *params* as the client sent them, and return the raw result.

        What fails on our side is a result with ``isError``, for the model to read. Raises MCPError for what the server
        refused, as it refused it, and, as a server would, for a tool that is not there.
        """
        name: str = params["name"]
        given: JsonObject = params.get("arguments") or {}
        find = partial(self._admitted, caller, name, given)
        try:
            tool, arguments = find()
            sent = {**params, "name": tool.remote_name, "arguments": dict(arguments)}
            admit = _finding(tool, find)
            return await self._relay.send(caller, tool.definition.server, "tools/call", sent, downstream, admit)
        except ToolSearchError as error:
            logger.info("call of %r failed: %s", shown_name(name), error.code)
            return failure(error)

    def _admitted(self, caller: Caller, name: str, given: JsonObject) -> tuple[Tool, JsonObject]:
        """The tool that a call means, and with what arguments, where *caller* may call it so."""
        inner = InnerCall.parse(name, given)
        if inner is None:
            tool, arguments, schema_hint = self._named(caller, name), given, ""
        else:
            tool, arguments = self._surface.resolve(caller, inner.name), inner.arguments
            inner.require_allowed(tool)
            schema_hint = f"; query select:{tool.name} for its inputSchema"
        return tool, _checked(tool, arguments, schema_hint)

    def _named(self, caller: Caller, name: str) -> Tool:
        try:
            return self._surface.resolve(caller, name)
        except UnknownToolError as error:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {error}") from error
        except UnapprovedToolError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error


def _finding(tool: Tool, find: Callable[[], tuple[Tool, JsonObject]]) -> Callable[[], None]:
    """Raises, as *find* does, once the call that was meant for *tool* may not be sent to it any more: when its server
    has been connected and listed, the tool may be held, gone, of another class, or want other arguments.
    """

    def admit() -> None:
        if find()[0].remote_name != tool.remote_name:
            raise UnknownToolError(tool.name)

    return admit


def _checked(tool: Tool, arguments: JsonObject, schema_hint: str) -> JsonObject:
    """Whichever way the call came: a client that was listed the tool need not have checked them either."""
    try:
        return checked_arguments(tool.definition, arguments)
    except BadArgumentsError as error:
        raise BadArgumentsError(f"{error}{schema_hint}") from error


def failure(error: ToolSearchError) -> dict[str, Any]:
    """A result that tells the model of *error*, and programs its code."""
    return {
        "content": [text_block(str(error))],
        "isError": True,
        "_meta": {"toolsearch/error": error.code},
    }
