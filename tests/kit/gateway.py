"""What the gateway's tests share: a gateway that is really served, and the official client at its other end."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from mcp import Client, StdioServerParameters, types
from starlette.types import ASGIApp

from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.http import http_app

ERAS = ("legacy", "auto")  # the client's modes; "auto" comes to the protocol of 2026
TRANSPORTS = ("stdio", "http")
_OF_OUR_OWN = ("PATH", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")
SERVERS = Path(__file__).parents[1] / "mcp_servers"


def raw_server(behaviour: str = "") -> dict[str, Any]:
    """The entry of a server that misbehaves as told; see its own file."""
    return {"command": sys.executable, "args": [str(SERVERS / "raw_server.py"), *([behaviour] if behaviour else [])]}


def time_server() -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"]}


def _patient(config: dict[str, Any]) -> dict[str, Any]:
    """The same, with a first list that waits for every server, however slow the machine is."""
    section = config.get("toolsearch", {})
    return {**config, "toolsearch": {**section, "exposure": {"firstListWaitS": 30, **section.get("exposure", {})}}}


@asynccontextmanager
async def served(
    config: dict[str, Any], *, is_alone: bool = True, **options: Any
) -> AsyncIterator[tuple[Gateway, str]]:
    """A gateway over HTTP in this very process, made with *options*, and its URL.

    *is_alone* says that others do not end while it serves.
    """
    gateway = Gateway(read_gateway_config(_patient(config), os.environ), **options)
    async with listening(http_app(gateway), is_alone=is_alone) as base:
        yield gateway, f"{base}/mcp"


@asynccontextmanager
async def listening(app: ASGIApp, *, is_alone: bool = True, **options: Any) -> AsyncIterator[str]:
    """Serve *app* in this very process; give its URL. *options* are those of uvicorn."""
    with socket.socket() as at:
        at.bind(("127.0.0.1", 0))
        kind = _Uvicorn if is_alone else _UvicornAmongOthers
        server = kind(uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=2, **options))
        serving = asyncio.create_task(server.serve([at]))
        await server.is_up.wait()
        try:
            yield f"http://127.0.0.1:{at.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


@asynccontextmanager
async def connected(
    config: dict[str, Any], transport: str, era: str, folder: Path, **options: Any
) -> AsyncIterator[Client]:
    """The official client, made with *options*, at a gateway over *transport*; over stdio that is the real command."""
    if transport == "http":
        async with served(config) as (_, url), Client(url, mode=era, **options) as client:
            yield client
        return
    path = folder / "mcp.json"
    path.write_text(json.dumps(_patient(config)))
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "toolsearch", "gateway", "--config", str(path)],
        env={"PYTHONPATH": os.pathsep.join(sys.path)} | {name: os.environ[name] for name in _OF_OUR_OWN},
    )
    async with Client(command, mode=era, **options) as client:
        yield client


async def names(client: Client) -> list[str]:
    """The client's tool list as it is now, past the client's own cache."""
    return [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]


def text(result: types.CallToolResult) -> str:
    """The text of a result that is one text."""
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


class _Uvicorn(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_up.set()


class _UvicornAmongOthers(_Uvicorn):
    """Keeps off the process's signals, by which sse-starlette would end every server's streams as this one ends."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
