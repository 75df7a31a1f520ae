"""What the tests of servers' actors share: an actor, and all that it has told."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp.types as types
from mcp.types import TextContent

from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.upstreams.actor import UpstreamActor
from toolsearch.upstreams.interface import Listing, UpstreamRequest, UpstreamSinks, UpstreamState
from toolsearch.upstreams.settings import UpstreamSettings


class Told:
    """Listings and states, in the order in which an actor told them."""

    def __init__(self) -> None:
        self.listings: list[Listing] = []
        self.states: list[UpstreamState] = []
        self._news = asyncio.Event()

    @property
    def sinks(self) -> UpstreamSinks:
        async def listing(told: Listing) -> None:
            self.listings.append(told)
            self._news.set()

        def state(_: str, told: UpstreamState) -> None:
            self.states.append(told)
            self._news.set()

        return UpstreamSinks(listing, state)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                self._news.clear()
                await self._news.wait()


def settings_of(entry: dict[str, Any], folder: Path | None = None, **treated: Any) -> UpstreamSettings:
    section = {"servers": {"s": treated}, **({} if folder is None else {"stateDir": str(folder)})}
    (settings,) = read_gateway_config({"mcpServers": {"s": entry}, "toolsearch": section}, {}).upstreams
    return settings


@asynccontextmanager
async def running(settings: UpstreamSettings, **options: Any) -> AsyncIterator[tuple[UpstreamActor, Told]]:
    """An actor that has been started, and is ended at the end."""
    told = Told()
    actor = UpstreamActor(settings, told.sinks, **{"random": lambda: 0.0, **options})
    actor.start()
    try:
        yield actor, told
    finally:
        await actor.aclose()


def call(name: str = "work", **arguments: Any) -> UpstreamRequest:
    return UpstreamRequest("tools/call", {"name": name, "arguments": arguments})


def text(result: dict[str, Any]) -> str:
    (block,) = result["content"]
    return TextContent.model_validate(block).text


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def list_work(*_) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name="work", input_schema={"type": "object"})])


async def echo(_, params) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=params.arguments["id"])])
