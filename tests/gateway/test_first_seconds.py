"""The first seconds of a gateway: who waits for servers that nothing is known of, and for how long."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from mcp import Client

from tests.kit.clock import Clock
from tests.kit.fake_servers import EXPANDING, LEGACY, MODERN, OWN, FakeConnection, call, gateway_of, names, search, told
from toolsearch.gateway.changes import ListChanges
from toolsearch.gateway.server import make_server
from toolsearch.upstreams.interface import (
    UpstreamState,
)


def done_at_once(asking: Coroutine[Any, Any, None]) -> bool:
    """Whether *asking* ends without waiting for anything."""
    try:
        asking.send(None)
    except StopIteration:
        return True
    asking.close()
    return False


async def test_lists_wait_two_seconds_after_the_start_for_servers_that_nothing_is_known_of_and_searches_ten():
    clock = Clock(100.0)
    async with gateway_of("a", "hung", clock=clock) as (gateway, servers):
        await servers["a"].lists("dig")
        waited = []
        for clock.now_s in (100, 101.9, 102, 109.9, 110):
            waited.append((done_at_once(gateway.lists_settled()), done_at_once(gateway.settled())))
        assert waited == [(False, False), (False, False), (True, False), (True, False), (True, True)]

        clock.now_s = 100
        servers["hung"].is_now(UpstreamState.DOWN)
        assert done_at_once(gateway.lists_settled())
        assert done_at_once(gateway.settled())


async def test_the_wait_is_from_the_start_and_ends_as_the_last_server_is_heard_of():
    clock = Clock(100.0)
    async with gateway_of("a", "b", clock=clock) as (gateway, servers):
        listing = asyncio.create_task(names(gateway, MODERN))
        await servers["a"].lists("dig")
        assert not listing.done()
        await servers["b"].lists("eat")
        assert await listing == OWN


async def test_how_long_the_first_list_waits_is_a_setting():
    clock = Clock(100.0)
    async with gateway_of("hung", clock=clock, firstListWaitS=0) as (gateway, _):
        assert await names(gateway, MODERN) == OWN
        assert not done_at_once(gateway.settled())


async def test_what_is_known_can_be_called_while_another_server_hangs_and_what_is_not_is_waited_for(monkeypatch):
    async with gateway_of("a", "hung", clock=Clock(100.0)) as (gateway, servers):
        await servers["a"].lists("dig")
        with monkeypatch.context() as patched:
            patched.setattr(gateway.first_listings, "wait", forbidden)
            for name, arguments in (("a__dig", {}), ("callToolDestructive", {"name": "a__dig"})):
                assert not (await call(gateway, name, arguments)).get("isError")
        for name, arguments in (("hung__sow", {}), ("callToolDestructive", {"name": "hung__mow"})):
            calling = asyncio.create_task(call(gateway, name, arguments))
            await asyncio.sleep(0)
            await servers["hung"].lists("sow", "mow")
            assert not (await calling).get("isError")


async def forbidden(*_: float) -> None:
    raise AssertionError


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_no_list_waits_longer_than_the_first_two_seconds(mode, monkeypatch):
    clock = Clock(100.0)
    async with gateway_of("a", "hung", clock=clock) as (gateway, servers):
        await servers["a"].lists("dig", prompts=({"name": "greet"},), resources=({"uri": "a:///1", "name": "one"},))
        monkeypatch.setattr(gateway, "settled", forbidden)
        monkeypatch.setattr(gateway.first_listings, "begin", lambda: None)  # it began before the client came
        clock.now_s += 2
        async with Client(make_server(gateway), mode=mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == OWN
            assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["a__greet"]
            assert len((await client.list_resources()).resources) == 1
            assert (await client.list_resource_templates()).resource_templates == []


async def test_who_is_listed_ours_before_every_server_was_heard_of_keeps_them_and_the_next_is_listed_few_tools_whole():
    clock = Clock(100.0)
    async with gateway_of("a", "hung", clock=clock, section={"passThrough": {"maxTools": 10}}) as (gateway, servers):
        await servers["a"].lists("dig")
        changes, connection = ListChanges(gateway), FakeConnection()
        clock.now_s += 2
        await changes.follow(connection, EXPANDING)
        assert await names(gateway, EXPANDING) == OWN
        await servers["a"].lists("dig", "sow")
        await told(changes)
        assert connection.told == 0

        servers["hung"].is_now(UpstreamState.DOWN)
        await told(changes)
        assert connection.told == 0
        assert await names(gateway, EXPANDING) == OWN
        assert await names(gateway, LEGACY) == ["a__dig", "a__sow"]
        await changes.follow(connection, LEGACY)

        await servers["hung"].lists("eat")
        await told(changes)
        assert connection.told == 1
        assert await names(gateway, LEGACY) == ["a__dig", "a__sow", "hung__eat"]


async def test_a_list_that_the_last_server_completes_is_told_of_once():
    clock = Clock(100.0)
    async with gateway_of("a", "slow", clock=clock, section={"passThrough": {"maxTools": 10}}) as (gateway, servers):
        await servers["a"].lists("dig")
        changes, connection = ListChanges(gateway), FakeConnection()
        clock.now_s += 2
        await changes.follow(connection, EXPANDING)
        await servers["slow"].lists("eat", prompts=({"name": "greet"},))
        await told(changes)
        assert (connection.told, connection.told_of_prompts) == (0, 1)
        assert await names(gateway, EXPANDING) == OWN


async def test_an_answer_says_whose_tools_are_about_to_come_and_a_later_search_finds_them():
    clock = Clock(100.0)
    async with gateway_of("a", "b", "c", clock=clock) as (gateway, servers):
        await servers["a"].lists("dig")
        servers["b"].state = UpstreamState.READY  # connected, and not listed yet
        servers["c"].is_now(UpstreamState.DOWN)
        clock.now_s += 10
        found = await search(gateway, MODERN, "select:a__dig")
        nothing = await search(gateway, MODERN, "select:b__eat")
        await servers["b"].lists("eat")
        later = await search(gateway, MODERN, "select:b__eat")

    unsearched = "Not searched, since their tools are not known yet: b (listing its tools)"
    assert found.text.splitlines()[-1] == f"{unsearched}."
    assert nothing.text.splitlines()[-1] == f"{unsearched}, c (not reachable)."
    assert [tool["name"] for tool in later.structured["tools"]] == ["b__eat"]


async def test_the_server_of_the_best_tool_is_started_while_the_answer_is_read():
    async with gateway_of("a", "b") as (gateway, servers):
        await servers["a"].lists("dig", "sow")
        await servers["b"].lists("eat")
        for caller in (EXPANDING, LEGACY, MODERN):
            await search(gateway, caller, "select:b__eat,a__dig")
        await search(gateway, MODERN, "select:nothing")

        assert (servers["a"].woken, servers["b"].woken) == (0, 3)
