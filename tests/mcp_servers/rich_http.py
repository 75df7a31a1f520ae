"""The rich server over HTTP, in the test's own process, so that a test can wait for what it sees."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server

from tests.mcp_servers.rich_server import Rich, make_server


def rich_over_http(rich: Rich) -> AbstractAsyncContextManager[str]:
    """Its URL, while it is served."""
    return over_http(make_server(rich))


def over_http(mcp_server: Server[Any]) -> AbstractAsyncContextManager[str]:
    """The URL of any server, while it is served."""
    return app_over_http(mcp_server.streamable_http_app(host="127.0.0.1"))


@asynccontextmanager
async def app_over_http(app: Any) -> AsyncIterator[str]:
    """The URL of an MCP server that is an ASGI application, while it is served."""
    ready = asyncio.Event()

    class Uvicorn(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            ready.set()

    server = Uvicorn(uvicorn.Config(app, port=0, log_config=None, ws="none", timeout_graceful_shutdown=1))
    serving = asyncio.create_task(server.serve())
    await ready.wait()
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        await serving
