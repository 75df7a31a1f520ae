"""A service that really listens, whose sessions are asked by MCP and over HTTP."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.kit.clock import Clock
from tests.kit.gateway import listening
from tests.kit.service import ServiceKit, serving
from toolsearch.service.app import make_app
from toolsearch.tools.naming import TOOL_NAME

OWN = [TOOL_NAME, "callToolRead", "callToolWrite", "callToolDestructive"]


@dataclass
class Served:
    """A service that listens. *key* may do everything in the tenant ``acme``; *clock* is that of the MCP face."""

    kit: ServiceKit
    url: str
    key: str
    clock: Clock

    def http(self, token: str | None = None) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(base_url=self.url, headers={"authorization": f"Bearer {token or self.key}"})

    async def session(self, token: str | None = None, **body: Any) -> dict[str, Any]:
        """One that the tenant's key opens, or *token*."""
        async with self.http(token) as client:
            answer = await client.post("/v1/sessions", json=body)
        assert answer.status_code == 201, answer.text
        session: dict[str, Any] = answer.json()
        return session

    @asynccontextmanager
    async def mcp(self, url: str, era: str = "auto", token: str | None = "", **options: Any) -> AsyncIterator[Client]:
        """The official client; with the tenant's key unless *token* is another one, or None."""
        headers = {} if token is None else {"authorization": f"Bearer {token or self.key}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(url, http_client=http), mode=era, **options) as client,  # type: ignore[arg-type]
        ):
            yield client

    async def discovered(self, session: str) -> list[str]:
        """What the session shows over HTTP beside the search tool."""
        async with self.http() as client:
            tools = (await client.get(f"/v1/sessions/{session}/tools?format=openai")).json()["tools"]
        names = [each["function"]["name"] for each in tools]
        return [name for name in names if name not in OWN]


@asynccontextmanager
async def mcp_service(folder: Path, tools: Sequence[dict[str, Any]]) -> AsyncIterator[Served]:
    """Serve a catalog ``default`` of *tools*, which are always searched."""
    async with serving(folder, pass_through={"max_tools": 0}) as kit:
        clock = Clock()
        kit.service.mcp._clock = clock
        key = kit.key("acme")
        await kit.catalog(key, tools=tools)
        async with listening(make_app(kit.service), lifespan="off", proxy_headers=False) as url:
            yield Served(kit, url, key, clock)
