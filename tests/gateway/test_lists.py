"""What a client is listed: few tools whole, none that waits for approval, and more as they are found."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from mcp import MCPError

from tests.kit.fake_servers import EXPANDING, LEGACY, MODERN, OWN, FakeConnection, call, gateway_of, names, search
from toolsearch.access.principals import Grant, Principal
from toolsearch.access.reach import Reach
from toolsearch.catalog.request_packs import NoRequests
from toolsearch.gateway.changes import ListChanges
from toolsearch.gateway.trust.verdicts import ReviewItem, ReviewReason, Verdict
from toolsearch.tools.definition import ToolDefinition

# few tools: shown whole


async def test_few_tools_are_listed_whole_and_without_ours_yet_can_be_searched():
    async with gateway_of("a", section={"passThrough": {"maxTools": 10}}) as (gateway, servers):
        await servers["a"].lists("dig", "sow")

        for caller in (LEGACY, MODERN):
            assert await names(gateway, caller) == ["a__dig", "a__sow"]
            found = await search(gateway, caller, "select:a__sow")
            assert found.structured["tools"][0]["callWith"] == "callToolDestructive"
            assert not found.list_changed
            assert await names(gateway, caller) == ["a__dig", "a__sow"]


async def test_few_tools_stay_listed_whole_until_they_are_a_quarter_too_many_and_the_other_way_round():
    async def shown_whole(count: int) -> bool:
        await servers["a"].lists(*(f"tool{n:02}" for n in range(count)))
        return await names(gateway, MODERN) != OWN

    async with gateway_of("a", section={"passThrough": {"maxTools": 8, "maxTokens": 10_000}}) as (gateway, servers):
        assert [(count, await shown_whole(count)) for count in (8, 9, 10, 11, 10, 8, 7, 6, 8, 10)] == [
            (8, True),
            (9, True),
            (10, True),
            (11, False),
            (10, False),
            (8, False),
            (7, False),
            (6, True),
            (8, True),
            (10, True),
        ]


async def test_whether_tools_are_few_is_not_decided_before_every_server_has_listed_its_own():
    async with gateway_of("a", "b", section={"passThrough": {"maxTools": 2}}) as (gateway, servers):
        await servers["a"].lists("dig")
        listing = asyncio.create_task(names(gateway, MODERN))
        await servers["b"].lists("eat", "cook", "serve")

        assert await listing == OWN


# tools that wait for approval


class Holding:
    """A gate that holds the tools of these names."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def version(self) -> int:
        return 0

    def judge(self, server: str, tools: Any, **_: Any) -> Verdict:  # noqa: ARG002
        held = tuple(ReviewItem.of(tool, ReviewReason.NEW) for tool in tools if tool.name in self.names)
        return Verdict(tuple(tool for tool in tools if tool.name not in self.names), held)


async def test_a_tool_that_was_approved_or_is_listed_no_more_does_not_wait():
    gate = Holding()
    async with gateway_of("a", "b", gate=gate) as (gateway, servers):
        gate.names = {"a__dig", "b__eat"}
        await servers["a"].lists("dig", "sow")
        await servers["b"].lists("eat")
        assert sorted(gateway.registry.held) == ["a__dig", "b__eat"]

        gate.names = {"b__eat"}
        await gateway.registry.review("a")
        assert sorted(gateway.registry.held) == ["b__eat"]
        assert not (await call(gateway, "a__dig", {})).get("isError")

        await servers["b"].lists("cook")
        assert gateway.registry.held == {}
        with pytest.raises(MCPError, match="Unknown tool: no tool named 'b__eat'"):
            await call(gateway, "b__eat", {})


async def test_a_session_that_has_listed_ours_goes_on_with_them_when_few_tools_are_left():
    """A client that is told that its list is another one may take a while, and its model has read the first one."""
    async with gateway_of("a", section={"passThrough": {"maxTools": 2}}) as (gateway, servers):
        await servers["a"].lists("dig", "sow", "mow")
        assert await names(gateway, LEGACY) == OWN
        await servers["a"].lists("dig")

        assert await names(gateway, LEGACY) == OWN
        assert await names(gateway, replace(LEGACY, session_key="another")) == ["a__dig"]
        gateway.surface.forget(LEGACY)
        assert await names(gateway, LEGACY) == ["a__dig"]


async def test_ours_name_only_servers_in_reach_also_to_another_caller_in_the_same_session():
    narrow = replace(LEGACY, grant=Grant(Principal("ann", Reach.parse(["server:b"]))))
    async with gateway_of("a", "b") as (gateway, servers):
        await servers["a"].lists("dig_hole")
        await servers["b"].lists("eat_cake")
        everything = (await gateway.list_tools(LEGACY))[0]["description"]
        reached = (await gateway.list_tools(narrow))[0]["description"]

    assert everything.startswith("Finds tools of a (dig, hole), b (cake, eat) beyond")
    assert reached.startswith("Finds tools of b (cake, eat) beyond")
    assert narrow.session_key == LEGACY.session_key


# every tool, for a client that searches by itself


async def test_a_client_may_be_listed_every_tool_with_what_users_ask_for():
    """The tool's own text ends with requests; Claude Code takes them as a hint, which its model does not read."""
    asked = {"name": "send", "description": "Sends it.", "inputSchema": {"type": "object"}}
    claude = replace(LEGACY, session_key="three", client_name="claude-code")
    modern = replace(MODERN, client_name="codex")
    async with gateway_of("a", clients={"whoever": "whole", "claude-code": "whole", "codex": "whole"}) as (
        gateway,
        servers,
    ):
        gateway.engine.requests = Requests()
        await servers["a"].lists(asked, "dig")
        older, hinted, newest = [
            {each["name"]: each for each in await gateway.list_tools(caller)} for caller in (LEGACY, claude, modern)
        ]

        assert sorted(older) == sorted(hinted) == sorted(newest) == ["a__dig", "a__send"]
        for entries in (older, newest):
            assert entries["a__send"]["description"] == "Sends it. Asked for as: mail this; post it"
            assert entries["a__dig"]["description"] == "Does dig."
        assert hinted["a__send"]["description"] == "Sends it."
        assert hinted["a__send"]["_meta"] == {"anthropic/searchHint": "mail this; post it"}
        assert await names(gateway, MODERN) == OWN


class Requests(NoRequests):
    def requests_for(self, definition: ToolDefinition) -> tuple[str, ...]:
        return ("mail this", "post it") if definition.name == "a__send" else ()


# lists that grow, where the configuration says so


async def test_pins_come_first_in_the_order_of_the_configuration_and_found_tools_in_that_of_their_finding():
    async with gateway_of("a", pins=["a__sow", "a__dig", "a__gone"]) as (gateway, servers):
        await servers["a"].lists("dig", "hoe", "mow", "sow")
        await search(gateway, EXPANDING, "select:a__mow")
        await search(gateway, EXPANDING, "select:a__hoe")

        assert await names(gateway, EXPANDING) == [*OWN, "a__sow", "a__dig", "a__mow", "a__hoe"]
        assert await names(gateway, MODERN) == [*OWN, "a__sow", "a__dig"]


async def test_a_search_changes_a_list_only_by_tools_that_were_not_in_it():
    async with gateway_of("a", pins=["a__sow"]) as (gateway, servers):
        await servers["a"].lists("dig", "sow")

        first, again, pinned, nothing = [
            (await search(gateway, EXPANDING, query)).list_changed
            for query in ("select:a__dig", "select:a__dig", "select:a__sow", "select:a__none")
        ]
        assert (first, again, pinned, nothing) == (True, False, False, False)


async def test_tools_leave_a_list_that_is_full_only_with_a_search_that_adds_some_and_many_at_a_time():
    async with gateway_of("a", section={"budget": {"maxTools": 4}}) as (gateway, servers):
        await servers["a"].lists(*"bcdefg")
        for tool in "bcde":
            await search(gateway, EXPANDING, f"select:a__{tool}")
        full = await names(gateway, EXPANDING)
        await search(gateway, EXPANDING, "select:a__b")
        unchanged = await names(gateway, EXPANDING)
        await search(gateway, EXPANDING, "select:a__f")
        changed = await names(gateway, EXPANDING)

    assert full == unchanged == [*OWN, "a__b", "a__c", "a__d", "a__e"]
    assert changed == [*OWN, "a__b", "a__e", "a__f"]  # three of four are kept: those used last


async def test_one_sessions_finds_are_not_in_anothers_list():
    async with gateway_of("a") as (gateway, servers):
        await servers["a"].lists("dig", "sow")
        await search(gateway, EXPANDING, "select:a__dig")

        assert await names(gateway, LEGACY) == OWN


async def test_what_a_session_found_is_forgotten_when_it_ends_and_one_that_only_calls_is_not_kept():
    async with gateway_of("a") as (gateway, servers):
        await servers["a"].lists("dig", "sow")
        connection = FakeConnection()
        await ListChanges(gateway).follow(connection, EXPANDING)
        await search(gateway, EXPANDING, "select:a__dig")
        await call(gateway, "a__dig", {}, LEGACY)
        kept = gateway.engine.sessions.ids()
        await connection.exit_stack.aclose()

        assert kept == ["local/one"]
        assert gateway.engine.sessions.ids() == []
