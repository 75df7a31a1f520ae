"""A proxy of ours in front of a scripted model API, served on the loopback interface."""

from __future__ import annotations

import asyncio
import socket
import socketserver
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import uvicorn

from toolsearch.catalog.catalog import Catalog
from toolsearch.cli.proxy import guarded
from toolsearch.gateway.http import listening, server_config
from toolsearch.proxy.app import ProxyApp
from toolsearch.proxy.upstream import SILENCE_S, Upstream
from toolsearch.settings import Settings
from toolsearch.wire.capabilities import Cloud


@contextmanager
def served_proxy(
    upstream: str,
    *,
    tools: Catalog | None = None,
    settings: Settings | None = None,
    cloud: Cloud | None = None,
    silence_s: float = SILENCE_S,
) -> Iterator[str]:
    """Yields the proxy's address."""
    settings = settings or Settings.model_validate({"index": {"encoder": None, "strategy": "keyword"}})
    listener = listening("127.0.0.1", 0)
    port: int = listener.getsockname()[1]
    app = guarded(ProxyApp(Upstream(upstream, silence_s=silence_s), settings, tools, cloud), (), "127.0.0.1", port)
    server = uvicorn.Server(server_config(app, lifespan="on"))
    thread = threading.Thread(target=_serve, args=(server, listener))
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def _serve(server: uvicorn.Server, listener: socket.socket) -> None:
    asyncio.run(server.serve([listener]))


class RawApi(socketserver.ThreadingTCPServer):
    """A server that keeps requests as they came, and answers each with the next of *answers*, byte for byte.

    A part of an answer that is an Event is waited for. `hung_up` is set once a client has left in the meantime.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, *answers: Sequence[bytes | threading.Event]) -> None:
        super().__init__(("127.0.0.1", 0), _RawHandler)
        self.answers = list(answers)
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.hung_up = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def raw_api(*answers: Sequence[bytes | threading.Event]) -> Iterator[RawApi]:
    with RawApi(*answers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _RawHandler(socketserver.StreamRequestHandler):
    server: RawApi

    def handle(self) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            if not (line := self.rfile.readline()):
                return
            head += line
        self.server.heads.append(head)
        self.server.bodies.append(self._body(head.lower()))
        for part in self.server.answers.pop(0):
            if isinstance(part, threading.Event):
                self._wait(part)
            else:
                self.wfile.write(part)

    def _wait(self, event: threading.Event) -> None:
        """Wait for *event* or for the client to leave."""
        self.connection.settimeout(0.02)
        while not event.is_set():
            with suppress(TimeoutError):
                if self.connection.recv(1) == b"":
                    self.server.hung_up.set()
                    return

    def _body(self, head: bytes) -> bytes:
        if b"transfer-encoding: chunked" in head:
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        lengths = [line for line in head.split(b"\r\n") if line.startswith(b"content-length:")]
        return self.rfile.read(int(lengths[0].split(b":")[1])) if lengths else b""


def post(path: str, body: bytes, *headers: bytes) -> bytes:
    """The bytes of a request, for `exchanged`."""
    lines = [f"POST {path} HTTP/1.1".encode(), b"Host: HOST", b"Connection: close", *headers]
    return b"\r\n".join([*lines, f"Content-Length: {len(body)}".encode(), b"", body])


def exchanged(url: str, request: bytes) -> bytes:
    """The bytes that the server at *url* answers to the bytes of a *request*, until it closes the connection."""
    address = urlsplit(url)
    with socket.create_connection((str(address.hostname), int(address.port or 0)), timeout=10) as connection:
        connection.sendall(request.replace(b"HOST", address.netloc.encode()))
        pieces = list[bytes]()
        while piece := connection.recv(65_536):
            pieces.append(piece)
    return b"".join(pieces)
