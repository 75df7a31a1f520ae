"""Servers that fail on demand and count what they run, a gateway before them, and a neighbour that must not notice."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import uvicorn
from mcp import Client, types
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.http import http_app
from toolsearch.upstreams.actor import UpstreamActor

_FAULT_SERVER = Path(__file__).parents[1] / "tests" / "mcp_servers" / "fault_server.py"
_LOOK_S = 0.002

Outcome = Literal["done", "did not run", "may have run", "untold"]


class StdioFault:
    """The stdio server that fails as told; *folder* is its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.mode = "ok"

    @property
    def entry(self) -> dict[str, Any]:
        return {"command": sys.executable, "args": [str(_FAULT_SERVER), str(self._folder)]}

    @property
    def mode(self) -> str:
        return (self._folder / "mode").read_text()

    @mode.setter
    def mode(self, mode: str) -> None:
        new = self._folder / "mode.new"
        new.write_text(mode)
        new.replace(self._folder / "mode")

    @property
    def pids(self) -> list[int]:
        return [int(pid) for pid in self._lines("pids")]

    @property
    def runs(self) -> Counter[str]:
        return Counter(self._lines("runs"))

    def kill(self) -> None:
        os.kill(self.pids[-1], signal.SIGKILL)

    async def running(self, call_id: str) -> None:
        """Wait until the call has begun to run."""
        await until(lambda: call_id in self.runs)

    def _lines(self, name: str) -> list[str]:
        path = self._folder / name
        return path.read_text().split() if path.exists() else []


class HttpFault:
    """An MCP server over HTTP, in this process, of the era that has sessions.

    mode  ok; a status that every request is answered with, with *headers* and *body*;
          ``after``: calls run and are then answered with 503
    """

    def __init__(self) -> None:
        self.mode = "ok"
        self.headers: dict[str, str] = {}
        self.body = "no"
        self.runs: Counter[str] = Counter()
        self.sessions: set[str] = set()
        self.opened = 0
        self.no_session: Response = JSONResponse({"error": "Session not found"}, 404)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port: int = probe.getsockname()[1]
        self._serving = AsyncExitStack()

    @property
    def entry(self) -> dict[str, Any]:
        return {"type": "http", "url": f"http://127.0.0.1:{self._port}/mcp"}

    async def start(self) -> None:
        app = Starlette(routes=[Route("/mcp", self._answer, methods=["GET", "POST", "DELETE"])])
        await self._serving.enter_async_context(serving(app, self._port))

    async def stop(self) -> None:
        await self._serving.aclose()

    async def _answer(self, request: Request) -> Response:
        if self.mode.isdecimal():
            return Response(self.body, int(self.mode), headers=self.headers)
        if request.method != "POST":
            return Response(status_code=405)
        message: dict[str, Any] = await request.json()
        session = request.headers.get("mcp-session-id")
        if session is not None and session not in self.sessions:
            return self.no_session
        match message["method"]:
            case "initialize":
                self.opened += 1
                self.sessions.add(str(self.opened))
                info = {"name": "faulty", "version": "1"}
                result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
                return _result(message, result, {"mcp-session-id": str(self.opened)})
            case "tools/list":
                tool = {"name": "work", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
                return _result(message, {"tools": [tool]})
            case "tools/call":
                call_id = message["params"]["arguments"]["id"]
                self.runs[call_id] += 1
                if self.mode == "after":
                    return Response("no", 503)
                return _result(message, {"content": [{"type": "text", "text": call_id}]})
            case "server/discover":
                error = {"code": -32601, "message": "no such method"}
                return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": error})
        return Response(status_code=202)


def _result(message: dict[str, Any], result: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result}, headers=headers)


@dataclass
class Steady:
    """One call after another to the neighbour, and how long each took (s)."""

    latencies_s: list[float] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    sent: int = 0

    async def run(self, client: Client) -> None:
        while True:
            self.sent += 1
            call_id = f"n{self.sent}"
            begun_s = time.perf_counter()
            outcome, text = await call(client, "neighbour", call_id)
            self.latencies_s.append(time.perf_counter() - begun_s)
            if outcome != "done" or text.split()[0] != call_id:
                self.lost.append(text)
            await asyncio.sleep(0.005)


@dataclass
class Bench:
    """A gateway before a server that fails and a neighbour that does not, and a client's session for each."""

    gateway: Gateway
    client: Client
    neighbour: Client
    steady: Steady = field(default_factory=Steady)

    async def work(self, call_id: str) -> tuple[Outcome, str]:
        return await call(self.client, "faulty", call_id)


@asynccontextmanager
async def bench(
    faulty: dict[str, Any], folder: Path, *, treated: dict[str, Any] | None = None, **actor: Any
) -> AsyncGenerator[Bench]:
    """*treated* are the faulty server's settings, and *actor* what its keeper is made with."""
    neighbour = StdioFault(folder / "neighbour")
    config = {
        "mcpServers": {"faulty": faulty, "neighbour": neighbour.entry},
        "toolsearch": {
            "stateDir": str(folder / "state"),
            "strategy": "keyword",
            "servers": {"faulty": treated or {}},
            "trust": {"changed": "allow"},
            "exposure": {"firstListWaitS": 30},
        },
    }
    gateway = Gateway(read_gateway_config(config, os.environ), upstreams=partial(UpstreamActor, **actor))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}/mcp"
    async with serving(http_app(gateway), port), Client(url) as client, Client(url) as other:
        made = Bench(gateway, client, other)
        await client.list_tools()  # waits for the servers' first listings
        loading = asyncio.create_task(made.steady.run(other))
        try:
            yield made
        finally:
            loading.cancel()
            await asyncio.wait([loading])


async def call(client: Client, server: str, call_id: str) -> tuple[Outcome, str]:
    """Call the server's one tool, and return what the answer says became of it."""
    arguments = {"name": f"{server}__work", "arguments": {"id": call_id}}
    result = await client.call_tool("callToolRead", arguments)
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    if not result.is_error:
        return "done", block.text
    for outcome in ("did not run", "may have run"):
        if outcome in block.text:
            return outcome, block.text
    return "untold", block.text


def is_true(outcome: Outcome, runs: int) -> bool:
    """Whether *outcome* is what has happened."""
    return {"done": runs == 1, "did not run": runs == 0, "may have run": runs <= 1, "untold": False}[outcome]


async def recovered(bench: Bench, prefix: str) -> float:
    """Call until it works; seconds until then."""
    begun_s = time.perf_counter()
    number = 0
    while True:
        number += 1
        outcome, _ = await bench.work(f"{prefix}-{number}")
        if outcome == "done":
            return time.perf_counter() - begun_s
        await asyncio.sleep(0.01)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what happens in another process, or tells nobody."""
    while not condition():  # noqa: ASYNC110  there is no event to wait for
        await asyncio.sleep(_LOOK_S)


@asynccontextmanager
async def serving(app: Starlette, port: int) -> AsyncIterator[None]:
    config = uvicorn.Config(app, port=port, log_config=None, ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    try:
        yield
    finally:
        server.should_exit = True
        await task
