"""Who makes a request: the principal of its credential, and the client and session that it comes by."""

from __future__ import annotations

from typing import Any, TypeAlias

from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolsearch.gateway.principals.protocol import LOCAL, Caller, Era

Context: TypeAlias = ServerRequestContext[Any, Any]

_SESSION_HEADER = "mcp-session-id"


def caller_of(ctx: Context) -> Caller:
    """Who makes the request of *ctx*."""
    is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    client = ctx.session.client_params.client_info if ctx.session.client_params else None
    capabilities = ctx.session.client_capabilities
    return Caller(
        LOCAL,
        Era.MODERN if is_modern else Era.LEGACY,
        session_key=None if is_modern else _session_key(ctx),
        client_name=client.name if client else "",
        client_version=client.version if client else "",
        capabilities=capabilities.model_dump(by_alias=True, mode="json", exclude_none=True) if capabilities else {},
    )


def _session_key(ctx: Context) -> str | None:
    """On stdio the process serves one session; over HTTP a header says which, and none where no sessions are kept."""
    return "stdio" if ctx.request is None else ctx.request.headers.get(_SESSION_HEADER)
