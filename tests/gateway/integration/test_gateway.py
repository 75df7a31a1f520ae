"""The gateway from end to end: the official client of either era, over either transport, and real servers behind it."""

import asyncio
from typing import Any

import pytest
from mcp import Client

from benchmarks.fault_kit import StdioFault, until
from tests.kit.gateway import connected, names, raw_server, served, text, time_server
from toolsearch.upstreams.interface import UpstreamState

OWN = ["toolSearchTool", "callToolRead", "callToolWrite", "callToolDestructive"]

both_ways = pytest.mark.parametrize(  # the fourth is tried in test_table.py
    ("transport", "era"), [("stdio", "legacy"), ("http", "legacy"), ("http", "auto")]
)


@pytest.fixture
def config() -> dict[str, Any]:
    return {"mcpServers": {"time": time_server(), "raw": raw_server()}}


@both_ways
async def test_a_tool_that_a_search_finds_can_be_called(config, tmp_path, transport, era):
    async with connected(config, transport, era, tmp_path) as client:
        assert await names(client) == OWN

        found = await client.call_tool("toolSearchTool", {"query": "convert a time between timezones", "limit": 1})
        assert [tool["name"] for tool in found.structured_content["tools"]] == ["time__convert_time"]

        arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Kathmandu"}
        call = {"name": "time__convert_time", "arguments": arguments}
        result = await client.call_tool(found.structured_content["tools"][0]["callWith"], call)
        assert "+5.75h" in text(result)


@both_ways
async def test_only_the_list_of_an_older_client_grows_where_that_is_configured_and_it_is_told_once(
    config, tmp_path, transport, era
):
    told: list[str] = []

    async def hear(message: object) -> None:
        told.append(type(message).__name__)

    config["toolsearch"] = {"exposure": {"clients": {"*": "expand"}}}
    async with connected(config, transport, era, tmp_path, message_handler=hear) as client:
        assert client.server_capabilities.tools.list_changed is True
        await client.call_tool("toolSearchTool", {"query": "select:raw__pid"})
        await client.call_tool("toolSearchTool", {"query": "select:raw__pid"})
        listed = await names(client)

    assert listed == ([*OWN, "raw__pid"] if era == "legacy" else OWN)
    assert told == (["ToolListChangedNotification"] if era == "legacy" else [])


@both_ways
async def test_a_server_that_dies_in_a_call_costs_that_call_only(config, tmp_path, transport, era):
    async with connected(config, transport, era, tmp_path) as client:
        before = text(await client.call_tool("callToolRead", {"name": "raw__pid"}))
        lost = await client.call_tool("callToolRead", {"name": "raw__crash"})
        after = text(await client.call_tool("callToolRead", {"name": "raw__pid"}))

    assert lost.is_error
    assert text(lost) == "MCP server 'raw': the connection was lost during the call, which may have run"
    assert after.isdecimal()
    assert after != before


async def test_few_tools_are_listed_alone_and_ours_answer_all_the_same(tmp_path):
    async with connected({"mcpServers": {"raw": raw_server()}}, "http", "auto", tmp_path) as client:
        listed = await names(client)
        found = await client.call_tool("toolSearchTool", {"query": "select:raw__pid"})
        called = await client.call_tool("callToolRead", {"name": "raw__pid"})

    assert "raw__pid" in listed
    assert not set(OWN) & set(listed)
    assert found.structured_content["tools"][0]["callWith"] == "callToolRead"
    assert text(called).isdecimal()


async def test_a_call_tool_takes_a_harmless_tool_and_names_those_near_a_misspelt_one(config, tmp_path):
    async with connected(config, "http", "auto", tmp_path) as client:
        harmless = await client.call_tool("callToolDestructive", {"name": "raw__pid"})
        misspelt = await client.call_tool("callToolRead", {"name": "raw__pit"})

    assert not harmless.is_error
    assert misspelt.is_error
    assert "raw__pid" in text(misspelt)


async def test_a_server_that_hangs_at_the_start_keeps_nobody_from_the_first_list_and_its_tools_are_told_of_later(
    tmp_path,
):
    hung = StdioFault(tmp_path / "hung")
    hung.mode = "silent"
    config = {
        "mcpServers": {"raw": raw_server(), "hung": hung.entry},
        "toolsearch": {"exposure": {"firstListWaitS": 2}},
    }
    told = asyncio.Event()

    async def hear(_: object) -> None:
        told.set()

    async with (
        served(config) as (gateway, url),
        Client(url, mode="auto", message_handler=hear) as client,
        client.listen(tools_list_changed=True),
    ):
        assert await names(client) == OWN
        assert gateway.upstreams["hung"].state is UpstreamState.STARTING
        called = await client.call_tool("callToolRead", {"name": "raw__pid"})
        assert text(called).isdecimal()

        hung.mode = "ok"
        hung.kill()  # so that it is started anew
        async with asyncio.timeout(30):
            while "hung__work" not in await names(client):
                await told.wait()
                told.clear()
        assert "raw__pid" in await names(client)
        assert not set(OWN) & set(await names(client))


async def test_what_is_known_from_last_time_is_listed_whole_while_every_server_hangs(tmp_path):
    server = StdioFault(tmp_path / "server")
    config = {
        "mcpServers": {"s": server.entry},
        "toolsearch": {"stateDir": str(tmp_path / "state"), "servers": {"s": {"lazy": False}}},
    }
    async with served(config) as (_, url), Client(url) as client:
        assert await names(client) == ["s__work"]
        await until(lambda: bool(list(tmp_path.glob("state/listings/*.json"))))
    server.mode = "silent"
    async with served(config) as (gateway, url), Client(url) as client:
        assert await names(client) == ["s__work"]
        assert gateway.upstreams["s"].status().starts == 0
