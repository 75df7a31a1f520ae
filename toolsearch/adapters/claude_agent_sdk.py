"""toolsearch in the Claude Agent SDK: a gateway that Claude Code reaches in the process of the application."""

from __future__ import annotations

from dataclasses import replace

from toolsearch.access.principals import LOCAL, Grant, Principal
from toolsearch.errors import MissingExtraError

try:
    from claude_agent_sdk import McpSdkServerConfig

    from toolsearch.gateway.caller import Caller, Context, caller_of
    from toolsearch.gateway.gateway import Gateway
    from toolsearch.gateway.server import make_server
except ImportError as error:
    raise MissingExtraError("the adapter for the Claude Agent SDK", "claude-agent-sdk") from error


def sdk_server(gateway: Gateway, *, principal: Principal = LOCAL) -> McpSdkServerConfig:
    """Return the server for `ClaudeAgentOptions(mcp_servers={"toolsearch": ...})`.

    Any number of conversations may share it; all of them are *principal*. Enter *gateway* before the first of them, and
    leave it after the last.
    """

    def who(ctx: Context) -> Caller:
        """A client without a session, whose list is fixed, because the SDK does not pass on changes of the list."""
        return replace(caller_of(ctx), grant=Grant(principal), session_key=None)

    return McpSdkServerConfig(type="sdk", name="toolsearch", instance=make_server(gateway, who=who, runs_gateway=False))
