"""The balancer of `examples/deployment`, a real HAProxy, before replicas that say who has answered."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest

CONFIGURATION = Path(__file__).parents[2] / "examples" / "deployment" / "haproxy.cfg"


class Replica:
    """A server that answers with its name. *paths* are those of the requests that it got, without those about health.

    *before_answer* may wait; if it returns False, the connection is cut instead of an answer.
    """

    def __init__(self, name: str, port: int = 0) -> None:
        self.paths: list[str] = []
        self.is_ready = True
        self.before_answer: Callable[[], bool] = lambda: True
        self.stream: Callable[[Callable[[bytes], None]], None] | None = None  # what a stream of events writes
        self.answer_headers: dict[str, str] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self, name))
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(replica: Replica, name: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self._answer()

        def _answer(self) -> None:
            if self.path == "/readyz":
                self.send_response(200 if replica.is_ready else 503)
                self.end_headers()
                return
            replica.paths.append(self.path)
            if not replica.before_answer():
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(200)
            for header, value in replica.answer_headers.items():
                self.send_header(header, value)
            self.end_headers()
            if replica.stream is None:
                self.wfile.write(name.encode())
            else:
                replica.stream(self.wfile.write)

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002
            """Nothing."""

    return Handler


@dataclass
class Balancer:
    """*log* is complete once the block of `balancer` is left."""

    url: str
    log: list[str] = field(default_factory=list)

    def client(self) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, timeout=20, trust_env=False)


@contextmanager
def balancer(replicas: Sequence[int], folder: Path) -> Generator[Balancer]:
    """HAProxy before two replicas at these ports of this machine."""
    program = shutil.which("haproxy", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
    if program is None:
        pytest.skip("HAProxy is not installed")
    addresses = {f"REPLICA_{number}": f"127.0.0.1:{port}" for number, port in enumerate(replicas, 1)}
    log = folder / "haproxy.log"
    with socket.create_server(("127.0.0.1", 0)) as listener, log.open("wb") as output:
        running = Balancer(f"http://127.0.0.1:{listener.getsockname()[1]}")
        process = subprocess.Popen(
            [program, "-db", "-f", CONFIGURATION],
            env=os.environ | addresses | {"BALANCER_ADDRESS": f"fd@{listener.fileno()}"},
            pass_fds=[listener.fileno()],
            stdout=output,
            stderr=output,
        )
        try:
            yield running
        finally:
            process.send_signal(signal.SIGUSR1)  # it writes its log to the end, and waits for connections
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
            process.kill()
            process.wait()
            running.log += log.read_text(encoding="utf-8").splitlines()
