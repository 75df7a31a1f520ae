"""Says in a sentence why an MCP server could not be reached, out of what the SDK and the system raise."""

from __future__ import annotations

from typing import cast

from mcp import MCPError
from mcp.types import CONNECTION_CLOSED

from toolsearch.upstreams.config import McpServer, StdioServer

_SDKS_OWN_WORDS = ("Connection closed", "SSE stream ")


def explain(error: BaseException, server: McpServer) -> str:
    """Why a connection could not be made, out of the nest of groups that the SDK raises."""
    error = innermost(error)
    if isinstance(error, OSError) and isinstance(server, StdioServer):
        return _explain_spawn(error, server)
    if isinstance(error, MCPError) and is_lost_connection(error):
        return "it ended before it answered"
    return str(error) or type(error).__name__


def is_lost_connection(error: MCPError) -> bool:
    """Whether no answer came. The code alone does not say so: many servers have errors of their own with -32000."""
    return error.code == CONNECTION_CLOSED and error.message.startswith(_SDKS_OWN_WORDS)


def innermost(error: BaseException) -> BaseException:
    """The first of the exceptions in a nest of groups."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _explain_spawn(error: OSError, server: StdioServer) -> str:
    if server.cwd is not None and error.filename == server.cwd:
        return f"its 'cwd' {server.cwd} cannot be entered: {error.strerror}"
    if isinstance(error, FileNotFoundError):
        return f"the command {server.command!r} was not found; install it, or give its full path"
    return f"the command {server.command!r} could not be started: {error.strerror or error}"
