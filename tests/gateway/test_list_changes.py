"""Who is told that a list has changed: each session that it changes for, and once."""

import asyncio

import pytest
from mcp import Client, MCPError, types

from tests.kit.fake_servers import EXPANDING, OWN, FakeConnection, entry, gateway_of, search, told
from toolsearch.access.principals import LOCAL, Grant
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.changes import ListChanges
from toolsearch.gateway.server import make_server
from toolsearch.wire.mcp.eras import Era


async def test_a_servers_change_is_told_once_to_each_session_that_has_one_of_its_tools_and_to_no_other():
    async with gateway_of("a", "b") as (gateway, servers):
        await servers["a"].lists("dig", "sow")
        await servers["b"].lists("eat")
        changes = ListChanges(gateway)
        dead, has, other = FakeConnection(is_dead=True), FakeConnection(), FakeConnection()
        for key, connection, query in (("x", dead, "dig"), ("y", has, "dig"), ("z", other, "sow")):
            caller = Caller(Grant(LOCAL), Era.LEGACY, session_key=key, client_name="growing")
            await search(gateway, caller, f"select:a__{query}")
            await changes.follow(connection, caller)

        await servers["a"].lists(entry("dig", description="Digs deeper."), "sow")
        await told(changes)
        assert (has.told, other.told) == (1, 0)

        await servers["a"].lists("sow", entry("dig", description="Digs deeper."))  # in another order
        await servers["b"].lists()
        await told(changes)
        assert (has.told, other.told) == (1, 0)

        await other.exit_stack.aclose()
        await servers["a"].lists()
        await told(changes)
        assert (has.told, other.told) == (2, 0)


async def test_prompts_that_change_are_told_of_and_no_other_list_is():
    async with gateway_of("a") as (gateway, servers):
        await servers["a"].lists("dig")
        changes, connection = ListChanges(gateway), FakeConnection()
        await changes.follow(connection, EXPANDING)
        for _ in range(2):
            await servers["a"].lists("dig", prompts=({"name": "greet"},))
            await told(changes)

    assert (connection.told, connection.told_of_prompts) == (0, 1)


async def test_a_session_is_told_once_of_what_its_own_search_has_changed():
    async with gateway_of("a") as (gateway, servers):
        await servers["a"].lists("dig")
        changes, connection = ListChanges(gateway), FakeConnection()
        await changes.follow(connection, EXPANDING)
        await search(gateway, EXPANDING, "select:a__dig")
        await changes.session_changed(EXPANDING)
        await changes.session_changed(EXPANDING)

    assert connection.told == 1


async def test_a_client_of_2026_hears_of_a_change_only_where_its_fixed_list_is_another_one():
    async with gateway_of("a", pins=["a__sow"]) as (gateway, servers):
        await servers["a"].lists("dig")
        async with Client(make_server(gateway), mode="2026-07-28") as client, asyncio.timeout(20):
            async with client.listen(tools_list_changed=True) as stream:
                await servers["a"].lists("dig", "hoe")
                await servers["a"].lists("dig", "hoe", "sow")
                heard = [await anext(stream)]
                await servers["a"].lists("sow")
                await servers["a"].lists()
                heard.append(await anext(stream))
            listed = [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]

    assert [type(event).__name__ for event in heard] == ["ToolsListChanged"] * 2
    assert listed == OWN


async def test_what_fails_unforeseen_is_answered_with_the_id_of_the_request_and_nothing_raw(caplog):
    async with gateway_of("a") as (gateway, servers):
        await servers["a"].lists("dig")

        def broken(*_: object) -> None:
            raise RuntimeError("/home/somebody/secret")

        gateway.surface.search = gateway.surface.entries = broken
        for mode in ("legacy", "2026-07-28"):
            async with Client(make_server(gateway), mode=mode) as client:
                unknown = await client.call_tool("callToolRead", {"name": "a__gone"})
                assert unknown.meta["toolsearch/error"] == "unknown_tool"
                failing = await client.call_tool("toolSearchTool", {"query": "dig"})
                assert failing.is_error
                request_id = failing.meta["toolsearch/requestId"]
                assert failing.content[0].text.endswith(f"under {request_id}")
                assert f"request {request_id}" in caplog.text
                with pytest.raises(MCPError) as failed:
                    await client.list_tools()
                assert failed.value.error.code == types.INTERNAL_ERROR
                assert str(failed.value).endswith(f"under {failed.value.error.data['toolsearch/requestId']}")
                assert request_id not in str(failed.value)

    assert "/home/somebody/secret" in caplog.text
