"""Serves the application until a signal asks it to end, and then ends in good order."""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from toolsearch.errors import BadSettingError
from toolsearch.gateway.http import server_config
from toolsearch.gateway.settings import HttpSettings
from toolsearch.service.settings import ServeSettings
from toolsearch.service.shutdown import Shutdown

_BACKLOG = 2_048


async def serve(
    app: ASGIApp,
    settings: ServeSettings,
    *,
    listener: socket.socket,
    shutdown: Shutdown,
    on_started: Callable[[], None],
) -> None:
    """Serve *app* at *listener*; *on_started* is called once requests are accepted.

    On SIGTERM or SIGINT no new request is accepted, those that run have ``settings.shutdown_timeout_s`` to end, and the
    lifespan of *app* ends. A second signal ends the process at once.
    """
    limits = HttpSettings(max_connections=settings.max_connections, request_timeout_s=settings.arrival_timeout_s)
    config = server_config(app, limits, timeout_graceful_shutdown=settings.shutdown_timeout_s, lifespan="on")
    await _Server(config, shutdown, on_started).serve([listener])


def listening(host: str, port: int) -> socket.socket:
    """A socket that is bound to *host* and *port*; 0 is any free port. Raises BadSettingError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise BadSettingError(f"cannot listen at {host}:{port}: {_why(error)}") from error
    # Connections inherit it. Without it the body of an answer waits 40 ms until the client has acknowledged the head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _why(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "another program uses this port; end that one, or name another port by --bind (port 0: any free one)"
    reason = os.strerror(error.errno) if error.errno is not None else str(error)
    return f"{reason}; name another address by --bind"


def url_of(listener: socket.socket) -> str:
    """Where a client on this machine reaches what is bound to all addresses, and else the address itself."""
    address: tuple[str, int] = listener.getsockname()[:2]
    host, port = address
    named = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"http://{f'[{named}]' if ':' in named else named}:{port}"


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, shutdown: Shutdown, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._shutdown = shutdown
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._shutdown.begin()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self.should_exit:
            signal.signal(sig, signal.SIG_DFL)
            signal.raise_signal(sig)
        self.should_exit = True
