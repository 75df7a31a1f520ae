"""Serves the gateway to the one client that has started this process."""

from __future__ import annotations

from mcp.server.stdio import stdio_server

from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.server import make_server


async def serve_stdio(gateway: Gateway) -> None:
    """Serve until the client closes our stdin. Nothing but the protocol may go to stdout meanwhile."""
    server = make_server(gateway)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
