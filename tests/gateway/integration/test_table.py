"""What the official client can do through the gateway, speaking either era of the protocol over either transport."""

import asyncio
import sys
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, types

from tests.kit.gateway import ERAS, SERVERS, connected, names, text

OWN = ["toolSearchTool", "callToolRead", "callToolWrite", "callToolDestructive"]


class Way:
    """One cell's client: how it reaches the gateway, and what it was told."""

    def __init__(self, transport: str, era: str, folder: Path) -> None:
        self.era = era
        self.transport = transport
        self.told: asyncio.Queue[str] = asyncio.Queue()
        self._folder = folder

    def client(self, **options: Any) -> AbstractAsyncContextManager[Client]:
        config = {
            "mcpServers": {"table": {"command": sys.executable, "args": [str(SERVERS / "table_server.py")]}},
            "toolsearch": {
                "passThrough": {"maxTools": 0},
                "exposure": {"pins": ["table__harvest"]},
                "stateDir": str(self._folder),
            },
        }
        return connected(config, self.transport, self.era, self._folder, message_handler=self._hear, **options)

    async def _hear(self, message: object) -> None:
        if self.era == "legacy" and isinstance(message, types.ToolListChangedNotification):
            self.told.put_nowait("tools")

    async def listen(self, client: Client, until: AsyncExitStack) -> None:
        """Hear of changes in the era's own way: clients of 2026 open a stream for it."""
        if self.era == "legacy":
            await client.list_tools()
            return
        stream = await until.enter_async_context(client.listen(tools_list_changed=True))
        hearing = asyncio.create_task(self._drain(stream))
        until.callback(hearing.cancel)

    async def _drain(self, stream: Any) -> None:
        async for event in stream:
            self.told.put_nowait(type(event).__name__)

    async def call(self, client: Client, tool: str, arguments: dict[str, Any], **options: Any) -> str:
        call = {"name": f"table__{tool}", "arguments": arguments}
        result = await client.call_tool("callToolRead", call, **options)
        assert not result.is_error, text(result)
        return text(result)


def _way(cell: str, folder: Path) -> Way:
    era, transport = cell.split("-")
    return Way(transport, dict(zip(("legacy", "modern"), ERAS, strict=True))[era], folder)


@pytest.fixture(params=["legacy-http", "modern-http", "modern-stdio"])  # the fourth is tried in test_gateway.py
def way(request, tmp_path) -> Way:
    return _way(request.param, tmp_path)


@pytest.fixture(params=["legacy-http", "modern-http"])
def http_way(request, tmp_path) -> Way:
    """For what no transport changes."""
    return _way(request.param, tmp_path)


async def test_search(http_way):
    async with http_way.client() as client:
        found = await client.call_tool("toolSearchTool", {"query": "count up to a number", "limit": 1})

    (tool,) = found.structured_content["tools"]
    assert (tool["name"], tool["callWith"]) == ("table__count_slowly", "callToolRead")
    assert tool["inputSchema"]["required"] == ["steps"]


async def test_the_list_stays_fixed(http_way):
    async with http_way.client() as client:
        before = await names(client)
        await client.call_tool("toolSearchTool", {"query": "select:table__count_slowly"})
        after = await names(client)

    assert before == after == OWN
    assert http_way.told.empty()


async def test_call(way):
    async with way.client() as client:
        assert await way.call(client, "count_slowly", {"steps": 2}) == "counted to 2"
        by_name = await client.call_tool("table__count_slowly", {"steps": 3})
        refused = await client.call_tool("callToolRead", {"name": "table__count_slowly", "arguments": {}})

    assert text(by_name) == "counted to 3"
    assert refused.is_error
    assert "query select:table__count_slowly for its inputSchema" in text(refused)


async def test_list_changed(way):
    async with AsyncExitStack() as until, asyncio.timeout(20):
        client = await until.enter_async_context(way.client())
        await way.listen(client, until)
        assert await way.call(client, "grow", {}) == "grown"
        await way.told.get()
        assert await names(client) == [*OWN, "table__harvest"]
        assert await way.call(client, "harvest", {}) == "harvested"

        await way.call(client, "grow", {})
        await way.told.get()
        assert await names(client) == OWN
        assert way.told.empty()


async def test_cancel(way):
    async with way.client() as client, asyncio.timeout(20):
        hanging = asyncio.create_task(way.call(client, "hang", {}))
        assert await way.call(client, "await_hanging", {}) == "hanging"
        hanging.cancel()
        assert await way.call(client, "await_cancelled", {}) == "cancelled"


async def test_progress(way):
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with way.client() as client:
        await way.call(client, "count_slowly", {"steps": 3}, progress_callback=hear)

    assert heard == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


async def test_elicitation(way):
    asked: list[str] = []

    async def answer(_: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"colour": "green"})

    async with way.client(elicitation_callback=answer) as client:
        assert await way.call(client, "paint", {}) == "painted green"

    assert asked == ["Which colour?"]
