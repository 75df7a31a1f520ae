"""The gateway from end to end: the official client of either era, over either transport, and real servers behind it."""

from typing import Any

import pytest

from tests.gateway_harness import ERAS, TRANSPORTS, connected, names, raw_server, text, time_server

OWN = ["toolSearchTool", "callToolRead", "callToolWrite", "callToolDestructive"]

both_ways = pytest.mark.parametrize(
    ("transport", "era"), [(transport, era) for transport in TRANSPORTS for era in ERAS]
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
async def test_only_the_list_of_an_older_client_grows_and_it_is_told_once(config, tmp_path, transport, era):
    told: list[str] = []

    async def hear(message: object) -> None:
        told.append(type(message).__name__)

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
    assert found.structured_content["tools"] == [{"name": "raw__pid"}]
    assert text(called).isdecimal()


async def test_a_call_tool_takes_a_harmless_tool_and_names_those_near_a_misspelt_one(config, tmp_path):
    async with connected(config, "http", "auto", tmp_path) as client:
        harmless = await client.call_tool("callToolDestructive", {"name": "raw__pid"})
        misspelt = await client.call_tool("callToolRead", {"name": "raw__pit"})

    assert not harmless.is_error
    assert misspelt.is_error
    assert "raw__pid" in text(misspelt)
