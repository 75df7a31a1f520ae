"""What stands before the tools of a corpus where MCP clients ask: the scopes of their key, and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult
from mcp.types import INVALID_REQUEST

from toolsearch.access.scopes import Scope, includes
from toolsearch.errors import NotPermittedError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.exposure.surface import SearchOutcome
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.request_caller import Context, caller_of
from toolsearch.service.callers import ServiceCaller
from toolsearch.service.limits import Limits
from toolsearch.upstreams.interface import Downstream
from toolsearch.wire.mcp.methods import COMPLETE, GET_PROMPT, READ_RESOURCE, SUBSCRIBE
from toolsearch.wire.mcp.results import ERROR_CODE

_CALLS: Final = frozenset({COMPLETE, GET_PROMPT, READ_RESOURCE, SUBSCRIBE})  # what runs something at a server


@dataclass(frozen=True, slots=True)
class SessionTools:
    """`ToolRequests` of the sessions over one corpus."""

    gateway: Gateway
    limits: Limits

    async def list_tools(self, caller: Caller) -> list[dict[str, Any]]:
        return await self.gateway.list_tools(caller)

    async def search(self, caller: Caller, arguments: Mapping[str, Any]) -> SearchOutcome:
        _require(caller, "search")
        return await self.gateway.search(caller, arguments)

    async def call(self, caller: Caller, params: Mapping[str, Any], downstream: Downstream) -> dict[str, Any]:
        _require(caller, "call")
        await self.limits.calls(service_caller(caller))
        return await self.gateway.call(caller, params, downstream)


def service_caller(caller: Caller) -> ServiceCaller:
    """The caller as the service knows it."""
    return ServiceCaller(
        caller.principal, caller.scopes, caller.key, session=caller.session, request_id=caller.request_id
    )


async def require_scopes(ctx: Context, call_next: CallNext) -> HandlerResult:
    """The middleware of the SDK's server that asks for the scope of what is not tools."""
    if ctx.method in _CALLS:
        try:
            _require(caller_of(ctx), "call")
        except NotPermittedError as error:
            raise MCPError(INVALID_REQUEST, str(error), {ERROR_CODE: error.code}) from error
    return await call_next(ctx)


def _require(caller: Caller, scope: Scope) -> None:
    if not includes(caller.scopes, scope):
        raise NotPermittedError(scope)
