"""Serves the gateway over streamable HTTP to any number of clients, of both eras, at ``/mcp``."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import h11
import uvicorn
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.routes import build_resource_metadata_url
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolsearch.access.directory import make_directory
from toolsearch.access.principals import PrincipalDirectory
from toolsearch.access.settings import JwtSettings
from toolsearch.errors import BadSettingError
from toolsearch.gateway.caller import CredentialBackend
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.http_guard import (
    REQUEST_ID,
    BearerOnly,
    HostGuard,
    RequestIds,
    RetryAfter,
    guarded_route,
    require_safe_binding,
    served_hosts,
)
from toolsearch.gateway.login_pages import login_routes
from toolsearch.gateway.reports.operator_routes import operator_routes
from toolsearch.gateway.reports.page import status_routes
from toolsearch.gateway.server import make_server
from toolsearch.gateway.status import SESSION_IDLE_S

_BACKLOG: Final = 2_048
_LENGTHS: Final = frozenset({b"content-length", b"transfer-encoding"})
_MOST_HEAD_BYTES: Final = 65_536  # uvicorn's default
MAX_CONNECTIONS: Final = 10_000  # at once
ARRIVAL_TIMEOUT_S: Final = 30.0  # for a request to arrive whole, headers and body; its answer may take longer


def connection_protocol(
    *, max_connections: int = MAX_CONNECTIONS, arrival_timeout_s: float = ARRIVAL_TIMEOUT_S
) -> type[asyncio.Protocol]:
    """The HTTP protocol class for one uvicorn server, as `uvicorn.Config` takes it.

    Connections take at most half of the files that the process may have open.
    """
    most = min(max_connections, _files_for_connections())
    own: dict[str, Any] = {"timeout_s": arrival_timeout_s, "most": most, "unfinished": {}}
    return type("BoundedProtocol", (_BoundedProtocol,), own)


class _StrictConnection(h11.Connection):
    """Refuses a request that has both Content-Length and Transfer-Encoding, and closes its connection.

    A proxy in front may use the other header, and take the rest of the body for another client's request: RFC 9112,
    6.3.
    """

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request) and {name for name, _ in event.headers} >= _LENGTHS:
            raise h11.RemoteProtocolError("the request has both Content-Length and Transfer-Encoding")
        return event


class _BoundedProtocol(H11Protocol):
    """Closes a connection that has not sent a whole request within *timeout_s*.

    If there are more than *most* connections, the one that has been sending its request for the longest time is closed;
    if all have sent theirs, the new one is turned away.
    """

    timeout_s: float
    most: int
    unfinished: dict[_BoundedProtocol, asyncio.TimerHandle]  # connections whose request is incomplete, oldest first

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = _StrictConnection(h11.SERVER, _MOST_HEAD_BYTES)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most:
            next(iter(self.unfinished), self).transport.abort()
        self._await_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._has_request():
            self._stop_waiting()
        elif self not in self.unfinished:
            self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _has_request(self) -> bool:
        """Whether a whole request is here and not answered yet."""
        cycle: Any = self.cycle
        return cycle is not None and not cycle.more_body and not cycle.response_complete

    def _await_request(self) -> None:
        self.unfinished[self] = self.loop.call_later(self.timeout_s, self.transport.abort)

    def _stop_waiting(self) -> None:
        if (timer := self.unfinished.pop(self, None)) is not None:
            timer.cancel()


def _files_for_connections() -> int:
    """Half of the files that this process may open. The other half is for the servers and for storage."""
    try:
        import resource
    except ModuleNotFoundError:
        return sys.maxsize  # Windows has no such limit

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else max(soft // 2, 1)


_PATH = "/mcp"
_HEALTH = "/healthz"
_METADATA = "/.well-known/oauth-protected-resource"


MAX_BODY_BYTES: Final = 4 * 1024 * 1024  # of one request
# Longer than clients keep idle connections. If both ends close one at the same moment, a call is lost.
_KEEP_ALIVE_S = 75


def http_app(gateway: Gateway, *, host: str = "127.0.0.1", port: int | None = None) -> Starlette:
    """The ASGI application. It is bound to *host* and *port*, which also decide the hosts that requests may name.

    Raises BadSettingError if the settings would let in anybody whom they do not name.
    """
    settings = gateway.config.settings
    directory = make_directory(settings)
    require_safe_binding(settings.http, host, asks_for_tokens=directory is not None)
    hosts = served_hosts(settings.http.allowed_hosts, host, port)
    manager = StreamableHTTPSessionManager(
        make_server(gateway),
        max_sessions=settings.http.max_sessions,
        session_idle_timeout=SESSION_IDLE_S,
        max_request_body_size=MAX_BODY_BYTES,
    )
    mcp: ASGIApp = RetryAfter(StreamableHTTPASGIApp(manager), idle_s=SESSION_IDLE_S)
    routes: list[BaseRoute] = [Route(_HEALTH, _healthy)]
    pages = status_routes(gateway)
    scopes: tuple[str, ...] = ()
    if directory is None:
        routes += [Route(_PATH, endpoint=mcp), *login_routes(gateway)]
    else:
        resource = _resource(settings.jwt, host, port)
        metadata = build_resource_metadata_url(AnyHttpUrl(resource)) if resource else None
        scopes = directory.required_scopes
        routes += [Route(_PATH, endpoint=BearerOnly(mcp, scopes, str(metadata or "")))]
        routes += [guarded_route(page, scopes, is_for_operators=False) for page in login_routes(gateway)]
        pages += operator_routes(gateway)  # without tokens, nobody could tell an operator from their model
        if settings.jwt is not None and resource is not None:
            routes += _metadata_routes(settings.jwt, resource)
    routes += [guarded_route(page, scopes, is_for_operators=True) for page in pages]
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(RequestIds),
            Middleware(HostGuard, hosts=hosts, origins=settings.http.allowed_origins, open_paths=(_HEALTH,)),
            *_for_pages_of(settings.http.allowed_origins),
            *_for_credentials(directory),
        ],
        lifespan=lambda _: manager.run(),
    )


async def serve_http(gateway: Gateway, *, host: str, port: int) -> None:
    """Serve until a signal ends the process. Logs go to stderr."""
    app = http_app(gateway, host=host, port=port)
    await uvicorn.Server(server_config(app, host=host, port=port)).serve()


def server_config(app: ASGIApp, *, http: type[asyncio.Protocol] | None = None, **binding: Any) -> uvicorn.Config:
    """The uvicorn configuration for *app*; *binding* holds uvicorn's arguments for the address.

    *http* is a protocol class with other bounds than the default of `connection_protocol`.
    """
    return uvicorn.Config(
        app,
        http=http or connection_protocol(),
        log_config=None,
        ws="none",
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        **binding,
    )


def listening(host: str, port: int) -> socket.socket:
    """A socket that is bound to *host* and *port*; 0 is any free port. Raises BadSettingError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise BadSettingError(f"cannot listen at {host}:{port}: {_why(error)}") from error
    # Connections inherit this option. Without it, the body of an answer waits 40 ms until the client has acknowledged
    # the head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _why(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "another program uses this port; end that one, or name another port by --bind (port 0: any free one)"
    reason = os.strerror(error.errno) if error.errno is not None else str(error)
    return f"{reason}; name another address by --bind"


def url_of(listener: socket.socket) -> str:
    """The URL for a client on this machine: a loopback address if all addresses are bound, else the bound one."""
    address: tuple[str, int] = listener.getsockname()[:2]
    host, port = address
    named = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"http://{f'[{named}]' if ':' in named else named}:{port}"


def _for_credentials(directory: PrincipalDirectory | None) -> list[Middleware]:
    if directory is None:
        return []
    backend = CredentialBackend(directory, bearer_only=_PATH)
    return [Middleware(AuthenticationMiddleware, backend=backend), Middleware(AuthContextMiddleware)]


def _for_pages_of(origins: Sequence[str]) -> list[Middleware]:
    """The CORS rules by which a browser lets a page of another origin read answers."""
    if not origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=[origin.removesuffix("/") for origin in origins],
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=["mcp-session-id", "www-authenticate", "retry-after", REQUEST_ID],
        )
    ]


def _resource(jwt: JwtSettings | None, host: str, port: int | None) -> str | None:
    """The URL that tokens have to be issued for; None without an authorization server."""
    if jwt is None:
        return None
    named = jwt.resource or (jwt.audience if urlsplit(jwt.audience).scheme in {"http", "https"} else None)
    return named or f"http://{f'[{host}]' if ':' in host else host}{f':{port}' if port else ''}{_PATH}"


def _metadata_routes(jwt: JwtSettings, resource: str) -> list[Route]:
    """The routes at which clients learn where to get a token (RFC 9728). The issuer is written exactly as it writes
    itself.
    """
    document = {
        "resource": resource,
        "authorization_servers": [jwt.issuer],
        "scopes_supported": list(jwt.required_scopes),
        "bearer_methods_supported": ["header"],
    }

    async def metadata(_: Request) -> JSONResponse:
        return JSONResponse(document, headers={"access-control-allow-origin": "*"})

    paths = dict.fromkeys([_METADATA, f"{_METADATA}{urlsplit(resource).path.removesuffix('/')}"])
    return [Route(path, metadata) for path in paths]


async def _healthy(_: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})
