"""Serves the gateway over streamable HTTP to any number of clients, of both eras, at ``/mcp``."""

from __future__ import annotations

import uvicorn
from starlette.applications import Starlette

from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.server import make_server
from toolsearch.gateway.status.page import status_routes


def http_app(gateway: Gateway, *, host: str = "127.0.0.1") -> Starlette:
    """The ASGI application; *host* is what it is bound to, by which the SDK checks Host and Origin on loopback."""
    settings = gateway.config.settings.http
    return make_server(gateway).streamable_http_app(
        host=host,
        custom_starlette_routes=[*status_routes(gateway)],
        max_sessions=settings.max_sessions,
        session_idle_timeout=settings.session_idle_s,
        max_request_body_size=settings.max_body_bytes,
    )


async def serve_http(gateway: Gateway, *, host: str, port: int) -> None:
    """Serve until a signal ends the process. Logs go to stderr."""
    config = uvicorn.Config(http_app(gateway, host=host), host=host, port=port, log_config=None, ws="none")
    await uvicorn.Server(config).serve()
