"""Finds out who makes a request: the principal by its credential, and the client and session by the connection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from mcp import MCPError
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.context import ServerRequestContext
from mcp.types import INVALID_REQUEST
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolsearch.access.principals import LOCAL
from toolsearch.access.reach import Reach
from toolsearch.gateway.bearer import PrincipalToken
from toolsearch.gateway.caller import Caller
from toolsearch.wire.mcp.eras import Era

Context: TypeAlias = ServerRequestContext[Any, Any]

_SESSION_HEADER = "mcp-session-id"


def caller_of(ctx: Context) -> Caller:
    """Return who makes the request of *ctx*. Raises MCPError if authentication is required and missing."""
    is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    client = ctx.session.client_params.client_info if ctx.session.client_params else None
    capabilities = ctx.session.client_capabilities
    token = _token_of(ctx)
    return Caller(
        token.principal if token else LOCAL,
        Era.MODERN if is_modern else Era.LEGACY,
        session_key=None if is_modern else _session_key(ctx),
        client_name=client.name if client else "",
        client_version=client.version if client else "",
        session=token.session if token else "",
        key=token.key if token else "",
        request_id=_request_id(ctx),
        scopes=frozenset(token.scopes) if token else frozenset(),
        capabilities=capabilities.model_dump(by_alias=True, mode="json", exclude_none=True) if capabilities else {},
    )


def _request_id(ctx: Context) -> str:
    state: Mapping[str, Any] = ctx.request.scope.get("state", {}) if ctx.request is not None else {}
    return str(state.get("request_id", ""))


def reach_of_request() -> Reach:
    """The reach of whoever makes the current HTTP request; everything where nobody has to authenticate."""
    token = get_access_token()
    return token.principal.reach if isinstance(token, PrincipalToken) else LOCAL.reach


def _token_of(ctx: Context) -> PrincipalToken | None:
    """Read the token from the request, not from the context variable: a session's task keeps the context of the request
    that opened the session. None on stdio, or where no tokens are asked for.
    """
    scope: Mapping[str, Any] = ctx.request.scope if ctx.request is not None else {}
    if "auth" not in scope:
        return None
    user = scope.get("user")
    token = user.access_token if isinstance(user, AuthenticatedUser) else None
    if not isinstance(token, PrincipalToken):
        raise MCPError(INVALID_REQUEST, "Authentication required")
    return token


def _session_key(ctx: Context) -> str | None:
    """On stdio, the process serves one session. Over HTTP, a header names it; without the header there is none."""
    return "stdio" if ctx.request is None else ctx.request.headers.get(_SESSION_HEADER)
