"""toolsearch in the Claude Agent SDK: a gateway that Claude Code reaches in the process of the application."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from toolsearch.access.principals import LOCAL, Principal
from toolsearch.errors import MissingExtraError

try:
    from claude_agent_sdk import McpSdkServerConfig

    from toolsearch.gateway.caller import Caller
    from toolsearch.gateway.exposure.surface import SearchOutcome
    from toolsearch.gateway.gateway import Gateway
    from toolsearch.gateway.server import make_server
    from toolsearch.upstreams.interface import Downstream
except ImportError as error:
    raise MissingExtraError("the adapter for the Claude Agent SDK", "claude-agent-sdk") from error


def sdk_server(gateway: Gateway, *, principal: Principal = LOCAL) -> McpSdkServerConfig:
    """Return the server for `ClaudeAgentOptions(mcp_servers={"toolsearch": ...})`.

    Any number of conversations may share it; all of them are *principal*. Enter *gateway* before the first of them, and
    leave it after the last.
    """
    server = make_server(gateway, tools=_FixedList(gateway, principal), runs_gateway=False)
    return McpSdkServerConfig(type="sdk", name="toolsearch", instance=server)


@dataclass(frozen=True, slots=True)
class _FixedList:
    """Asks as a client without a session, whose list is fixed, because the SDK does not pass on changes of the list."""

    gateway: Gateway
    principal: Principal

    def _known(self, caller: Caller) -> Caller:
        return replace(caller, principal=self.principal, session_key=None)

    async def list_tools(self, caller: Caller) -> list[dict[str, Any]]:
        return await self.gateway.list_tools(self._known(caller))

    async def search(self, caller: Caller, arguments: Mapping[str, Any]) -> SearchOutcome:
        return await self.gateway.search(self._known(caller), arguments)

    async def call(self, caller: Caller, params: Mapping[str, Any], downstream: Downstream) -> dict[str, Any]:
        return await self.gateway.call(self._known(caller), params, downstream)
