"""Who makes a request to the gateway, by its credential and its connection, and the answer if the request fails.

An unexpected failure is answered with the id of the request to look up, and with no internals.
"""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from mcp import MCPError
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.types import INTERNAL_ERROR, INVALID_REQUEST
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field, InstanceOf, ValidationError
from starlette.authentication import AuthCredentials, AuthenticationBackend
from starlette.requests import HTTPConnection

from toolsearch.access.principals import LOCAL, Grant, Principal, PrincipalDirectory
from toolsearch.calling.hooks import log_failure
from toolsearch.errors import ToolSearchError, text_for_model
from toolsearch.request_ids import answering, new_request_id, request_id_now
from toolsearch.wire.mcp.eras import Era
from toolsearch.wire.mcp.lists import ListOf
from toolsearch.wire.mcp.requests import CALL_TOOL, ERROR_CODE, REQUEST_ID, carrying, error_result, meta_of, with_meta


class UserEntries(Protocol):
    """What per-user servers list to each principal. Safe to share between threads."""

    def principal(self, grant: Grant) -> Principal: ...

    def claims_key(self, grant: Grant) -> str: ...

    def lists(self, grant: Grant, server: str, which: ListOf, name: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes one request, and with which client.

    grant         the rights of its credential, and the session that was made for it beforehand, if there is one
    session_key   tells sessions of clients apart, over all principals; None where protocol or transport has none
    connection    tells connections over stdio apart; "" over HTTP, where one client may have many
    client_name   the client's name for itself, or "". It may change how the client is served, never its rights
    capabilities  the capabilities that the client has declared, as MCP writes them
    request_id    the id of the request, as logs, errors and the audit name it
    reached_at    the address at which the client reaches the gateway over HTTP: ``https://tools.example``, or ""
    user_reach    knows what per-user servers list to this caller; None: there are no such servers
    principal     the principal, whose reach ends at what its own account was listed when this was made; see `again`
    """

    grant: Grant
    era: Era
    session_key: str | None = None
    client_name: str = ""
    client_version: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    request_id: str = ""
    connection: str = ""
    reached_at: str = ""
    user_reach: UserEntries | None = field(default=None, repr=False, compare=False)
    principal: Principal = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        seen = self.grant.principal if self.user_reach is None else self.user_reach.principal(self.grant)
        object.__setattr__(self, "principal", seen)

    def again(self) -> Self:
        """The caller, whose reach ends at what its own account is listed by now: after a wait, and before sending."""
        return self if self.user_reach is None else replace(self)

    def lists(self, server: str, which: ListOf, name: str) -> bool:
        """Whether *server*, which lists this entry to somebody, lists it to the caller, too."""
        return self.user_reach is None or self.user_reach.lists(self.grant, server, which, name)

    @property
    def session(self) -> str:
        """The id of the session that was made for this caller beforehand; "": it gets one of its own."""
        return self.grant.session

    @property
    def may_approve(self) -> bool:
        """Whether a person who makes this request may approve definitions: the user of the process, or an operator.
        Nobody may in a session that was made for them, as those of the service are: its pages are for that.
        """
        return self.grant.is_operator and not self.session

    @property
    def user(self) -> tuple[str, str, str]:
        """The owner of what outlives a connection: the user, and the session that was made for the user. Over stdio all
        clients are the one user who can open the socket. A token of the same user with other claims owns nothing of it
        if these lead to other connections.
        """
        claims = self.user_reach.claims_key(self.grant) if self.user_reach is not None else ""
        return self.grant.account, self.session or ("stdio" if self.connection else ""), claims

    @property
    def owner(self) -> str:
        """The owner of the states, links and tasks in its requests: the user, with its connection over stdio, because
        clients that share a process are strangers to each other.
        """
        return " ".join(filter(None, (*self.user, self.connection)))


class GrantToken(AccessToken):
    """The token that the SDK binds a session to. It holds the rights of a credential, never the credential."""

    grant: InstanceOf[Grant] = Field(repr=False)

    @classmethod
    def of(cls, grant: Grant) -> GrantToken:
        """A session of the SDK can only be used with a token of the same client and subject."""
        who = grant.principal.id
        subject = f"{who} {grant.session}" if grant.session else who
        return cls(token="", client_id=grant.key_id or who, subject=subject, scopes=sorted(grant.scopes), grant=grant)


@dataclass(frozen=True, slots=True)
class CredentialBackend(AuthenticationBackend):
    """Reads a bearer token. Unless *bearer_only*, it also reads the password that a browser asks for; the password is
    the token.
    """

    directory: PrincipalDirectory
    bearer_only: str

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, AuthenticatedUser] | None:
        scheme, _, credential = conn.headers.get("authorization", "").partition(" ")
        token = ""
        if scheme.lower() == "bearer":
            token = credential.strip()
        elif scheme.lower() == "basic" and conn.url.path != self.bearer_only:
            token = _password(credential)
        grant = await self.directory.of_token(token) if token else None
        if grant is None:
            return None
        return AuthCredentials(sorted(grant.scopes)), AuthenticatedUser(GrantToken.of(grant))


def _password(credential: str) -> str:
    try:
        return base64.b64decode(credential, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""


Context: TypeAlias = ServerRequestContext[Any, Any]
_SESSION_HEADER = "mcp-session-id"
local_connection = ContextVar("local_connection", default="stdio")  # the connection over stdio that is being served


def caller_of(ctx: Context) -> Caller:
    """Return who makes the request of *ctx*. Raises MCPError if authentication is required and missing."""
    grant = _grant_of(ctx)
    if grant is None:
        raise MCPError(INVALID_REQUEST, "Authentication required")
    is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    client = ctx.session.client_params.client_info if ctx.session.client_params else None
    capabilities = ctx.session.client_capabilities
    return Caller(
        grant,
        Era.MODERN if is_modern else Era.LEGACY,
        session_key=None if is_modern else _session_key(ctx),
        client_name=client.name if client else "",
        client_version=client.version if client else "",
        capabilities=capabilities.model_dump(by_alias=True, mode="json", exclude_none=True) if capabilities else {},
        request_id=request_id_now(),
        connection=local_connection.get() if ctx.request is None else "",
        reached_at=str(ctx.request.base_url).removesuffix("/") if ctx.request is not None else "",
    )


def _request_id(ctx: Context) -> str:
    state: Mapping[str, Any] = ctx.request.scope.get("state", {}) if ctx.request is not None else {}
    return str(state.get("request_id", "")) or new_request_id()


def grant_of_request() -> Grant:
    """The grant of the current HTTP request; everybody's if no credential is required."""
    token = get_access_token()
    return token.grant if isinstance(token, GrantToken) else Grant(LOCAL)


def grant_in(scope: Mapping[str, Any]) -> Grant | None:
    """The grant of the HTTP request of *scope*: everybody's if no credential is required; None if one is missing."""
    if "auth" not in scope:
        return Grant(LOCAL)
    user = scope.get("user")
    token = user.access_token if isinstance(user, AuthenticatedUser) else None
    return token.grant if isinstance(token, GrantToken) else None


def _grant_of(ctx: Context) -> Grant | None:
    """Read the grant from the request, not from the context variable: a session's task keeps the context of the request
    that opened the session. Over stdio it is that of our own user.
    """
    return Grant(LOCAL, is_operator=True) if ctx.request is None else grant_in(ctx.request.scope)


def _session_key(ctx: Context) -> str | None:
    """Over stdio, a connection is a session. Over HTTP, a header names it; without the header there is none."""
    return local_connection.get() if ctx.request is None else ctx.request.headers.get(_SESSION_HEADER)


logger = logging.getLogger(__name__)
_Params = TypeVar("_Params")
Handler: TypeAlias = Callable[[Context, _Params], Awaitable[Any]]


def guarded(handler: Handler[_Params]) -> Handler[_Params]:
    """*handler*, with the id of the request in logs and errors.

    A failed ``tools/call`` is answered with a result, because models read it; any other failure with an error. Without
    this the SDK would send clients the text of an exception, with the paths and secrets in it.
    """

    async def answer(ctx: Context, params: _Params) -> Any:
        with answering(_request_id(ctx)):
            try:
                return await handler(ctx, params)
            except (MCPError, ValidationError):  # the SDK answers these as the protocol demands
                raise
            except Exception as error:
                text, code = _failure(ctx, error)
                if ctx.method == CALL_TOOL:
                    return carrying(CALL_TOOL, with_request_id(error_result(text, code)))
                raise MCPError(INTERNAL_ERROR, text, about_error(code)) from error

    return answer


def _failure(ctx: Context, error: Exception) -> tuple[str, str]:
    """The text for the client, and the code."""
    if isinstance(error, ToolSearchError):
        log_failure(logger, f"{ctx.method} failed", error)
        return text_for_model(error), error.code
    logger.error("%s failed, request %s", ctx.method, request_id_now(), exc_info=error)
    return f"The gateway failed at this request. The reason is in its log, under {request_id_now()}", "internal_error"


def about_error(code: str) -> dict[str, Any]:
    """The data of an error of ours."""
    return {ERROR_CODE: code, REQUEST_ID: request_id_now()}


def with_request_id(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """*result* with the id of the request, if it is an error of ours."""
    return with_meta(result, {REQUEST_ID: request_id_now()}) if ERROR_CODE in meta_of(result) else result
