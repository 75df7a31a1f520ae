"""What clients are shown and told: their list, when it changes, what a search answers, and what of a tool is listed."""

import asyncio
import json
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any

import pytest
from mcp import Client, MCPError, types
from mcp.types import methods

from tests.kit.clock import Clock
from tests.kit.fake_servers import EXPANDING, HEDGED, MODERN, OWN, call, entry, gateway_of, names, search, text
from toolsearch.access.principals import LOCAL
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.changes import ListChanges
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.server import make_server
from toolsearch.gateway.settings import read_gateway_config
from toolsearch.gateway.trust.verdicts import OpenGate, ReviewItem, ReviewReason, Verdict
from toolsearch.tokens import O200kTokenCounter
from toolsearch.tools.definition import Tool
from toolsearch.upstreams.entries import read_listing
from toolsearch.upstreams.interface import (
    UpstreamState,
)
from toolsearch.wire.mcp.eras import Era, entry_for

# --- few tools: shown whole -------------------------------------------------------------------------------------------


async def test_few_tools_are_listed_whole_and_without_ours_yet_can_be_searched():
    async with gateway_of("a", passThroughTools=10) as (gateway, servers):
        await servers["a"].lists("dig", "sow")

        for caller in (EXPANDING, HEDGED, MODERN):
            assert await names(gateway, caller) == ["a__dig", "a__sow"]
            found = await search(gateway, caller, "select:a__sow")
            assert found.answer.text.splitlines() == [
                "1 tool found. They are in your tool list; call them by name.",
                "- a__sow: Does sow.",
            ]
            assert not found.list_changed
            assert await names(gateway, caller) == ["a__dig", "a__sow"]


async def test_few_tools_stay_listed_whole_until_they_are_a_quarter_too_many_and_the_other_way_round():
    async def shown_whole(count: int) -> bool:
        await servers["a"].lists(*(f"tool{n:02}" for n in range(count)))
        return await names(gateway, MODERN) != OWN

    async with gateway_of("a", passThroughTools=8, passThroughTokens=10_000) as (gateway, servers):
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
    async with gateway_of("a", "b", passThroughTools=2) as (gateway, servers):
        await servers["a"].lists("dig")
        listing = asyncio.create_task(names(gateway, MODERN))
        await servers["b"].lists("eat", "cook", "serve")

        assert await listing == OWN


# --- tools that wait for approval -------------------------------------------------------------------------------------


class Holding:
    """A gate that holds the tools of these names."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def version(self) -> int:
        return 0

    def judge(self, server: str, tools: Any, **_: Any) -> Verdict:
        held = tuple(
            ReviewItem(tool.name, server, tool.pin(), ReviewReason.NEW) for tool in tools if tool.name in self.names
        )
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


# --- the first seconds ------------------------------------------------------------------------------------------------


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
        async with Client(make_server(gateway), mode=mode) as client:
            clock.now_s += 2
            assert [tool.name for tool in (await client.list_tools()).tools] == OWN
            assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["a__greet"]
            assert len((await client.list_resources()).resources) == 1
            assert (await client.list_resource_templates()).resource_templates == []


async def test_before_every_server_was_heard_of_ours_are_listed_and_then_who_follows_is_told_that_few_tools_are():
    """A client that lists once has ours, which go on answering; one that was shown few tools would have no search."""
    clock = Clock(100.0)
    async with gateway_of("a", "hung", clock=clock, passThroughTools=10) as (gateway, servers):
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
        assert connection.told == 1
        assert await names(gateway, EXPANDING) == ["a__dig", "a__sow"]

        await servers["hung"].lists("eat")
        await told(changes)
        assert connection.told == 2
        assert await names(gateway, EXPANDING) == ["a__dig", "a__sow", "hung__eat"]


async def test_a_list_that_the_last_server_completes_is_told_of_once():
    clock = Clock(100.0)
    async with gateway_of("a", "slow", clock=clock, passThroughTools=10) as (gateway, servers):
        await servers["a"].lists("dig")
        changes, connection = ListChanges(gateway), FakeConnection()
        clock.now_s += 2
        await changes.follow(connection, EXPANDING)
        await servers["slow"].lists("eat", prompts=({"name": "greet"},))
        await told(changes)
        assert (connection.told, connection.told_of_prompts) == (1, 1)
        assert await names(gateway, EXPANDING) == ["a__dig", "slow__eat"]


async def test_an_answer_says_whose_tools_are_about_to_come_and_a_later_search_finds_them():
    clock = Clock(100.0)
    async with gateway_of("a", "b", "c", clock=clock) as (gateway, servers):
        await servers["a"].lists("dig")
        servers["b"].state = UpstreamState.READY  # connected, and not listed yet
        servers["c"].is_now(UpstreamState.DOWN)
        clock.now_s += 10
        found = (await search(gateway, MODERN, "select:a__dig")).answer
        nothing = (await search(gateway, MODERN, "select:b__eat")).answer
        await servers["b"].lists("eat")
        later = (await search(gateway, MODERN, "select:b__eat")).answer

    unsearched = "Not searched, since their tools are not known yet: b (listing its tools)"
    assert found.text.splitlines()[-1] == f"{unsearched}."
    assert nothing.text.splitlines()[-1] == f"{unsearched}, c (down)."
    assert [tool["name"] for tool in later.structured["tools"]] == ["b__eat"]


async def test_the_server_of_the_best_tool_is_started_while_the_answer_is_read():
    async with gateway_of("a", "b") as (gateway, servers):
        await servers["a"].lists("dig", "sow")
        await servers["b"].lists("eat")
        for caller in (EXPANDING, HEDGED, MODERN):
            await search(gateway, caller, "select:b__eat,a__dig")
        await search(gateway, MODERN, "select:nothing")

        assert (servers["a"].woken, servers["b"].woken) == (0, 3)


# --- lists that grow --------------------------------------------------------------------------------------------------


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
    async with gateway_of("a", sessionTools=4) as (gateway, servers):
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

        assert await names(gateway, HEDGED) == OWN


async def test_what_a_session_found_is_forgotten_when_it_ends_and_one_that_only_calls_is_not_kept():
    async with gateway_of("a") as (gateway, servers):
        await servers["a"].lists("dig", "sow")
        connection = FakeConnection()
        await ListChanges(gateway).follow(connection, EXPANDING)
        await search(gateway, EXPANDING, "select:a__dig")
        gateway.surface.resolve(HEDGED, "a__dig")
        kept = gateway.engine.sessions.ids()
        await connection.exit_stack.aclose()

        assert kept == ["local/one"]
        assert gateway.engine.sessions.ids() == []


# --- what an answer says ----------------------------------------------------------------------------------------------


async def test_an_answer_says_how_this_client_can_call_what_was_found():
    async with gateway_of("a") as (gateway, servers):
        await servers["a"].lists(entry("dig", annotations={"destructiveHint": True}))
        fixed = (await search(gateway, MODERN, "select:a__dig")).answer
        hedged = (await search(gateway, HEDGED, "select:a__dig")).answer
        grown = (await search(gateway, EXPANDING, "select:a__dig")).answer

    assert fixed.structured["tools"][0]["callWith"] == "callToolDestructive"
    assert "tool list" not in fixed.text
    assert "If your tool list has it by now, call it by name instead." in hedged.text
    assert hedged.structured["tools"] == fixed.structured["tools"]
    assert grown.text.splitlines()[0] == (
        "1 tool found, 1 of them new. They are in your tool list from now on; call them by name."
    )


async def test_an_answer_says_where_even_the_best_fits_only_weakly():
    weakly = "They fit only weakly: if none is what you need, search once more in other words."
    async with gateway_of("a", "b") as (gateway, servers):
        await servers["a"].lists(entry("mow", description="Cuts the grass of a lawn"))
        await servers["b"].lists(entry("bake", description="Bakes a loaf of bread"))
        for caller in (MODERN, HEDGED, EXPANDING):
            weak = (await search(gateway, caller, "what time is it")).answer
            assert weakly in weak.text
            assert weak.structured["howToCall"].endswith(weakly)
            sure = (await search(gateway, caller, "bake bread")).answer
            assert weakly not in sure.text + sure.structured["howToCall"]


async def test_no_definition_costs_a_client_more_than_one_may_however_it_is_shown():
    long = "Digs a hole. " + "It digs and digs. " * 30_000
    many = {"type": "object", "properties": {f"parameter_{i}": {"type": "string"} for i in range(5_000)}}
    servers_tools = (
        entry("dig", description=long),
        entry("bury", _meta={"story": long}),
        entry("wide", description="Digs wide.", inputSchema=many),
    )
    shown = ["a__bury", "a__dig"]
    for exposure in (
        {},
        {"pins": ["a__dig", "a__bury", "a__wide"]},
        {"passThroughTools": 9, "passThroughTokens": 10**7},
    ):
        async with gateway_of("a", **exposure) as (gateway, servers):
            await servers["a"].lists(*servers_tools)
            for caller in (EXPANDING, HEDGED, MODERN):
                found = await gateway.search(caller, {"query": "select:dig,bury,wide"})
                assert tokens(found.answer.text) <= 8_100
                assert tokens(found.answer.structured) <= 8_100
                assert "wide" not in str(found.answer)
                listed = await gateway.list_tools(caller)
                assert all(tokens(each) <= 8_000 for each in listed)
                theirs = [each for each in listed if each["name"] not in OWN]
                if exposure or caller is not MODERN:
                    assert sorted(each["name"] for each in theirs) == shown
                    assert "[cut: the description has 540,013 characters]" in str(theirs)
                    assert "story" not in str(theirs)
            assert await call(gateway, "a__wide", {}) == {"content": []}


def tokens(value: object) -> int:
    return O200kTokenCounter().count(value if isinstance(value, str) else json.dumps(value))


async def test_search_goes_by_meaning_unless_that_is_switched_off():
    async with gateway_of("a") as (gateway, _):
        assert gateway.engine.strategies[0] == "hybrid"
    config = read_gateway_config({"mcpServers": {}, "toolsearch": {"encoder": None}}, {})
    async with Gateway(config, gate=OpenGate()) as gateway:
        assert gateway.engine.strategies == ("keyword", "regex")


async def test_a_single_call_tool_is_named_where_the_user_wants_one():
    async with gateway_of("a", callTools="single") as (gateway, servers):
        await servers["a"].lists(entry("dig", annotations={"readOnlyHint": True}))

        assert await names(gateway, MODERN) == ["toolSearchTool", "callTool"]
        found = (await search(gateway, MODERN, "select:a__dig")).answer
        assert found.structured["tools"][0]["callWith"] == "callTool"


READS, WRITES, DESTROYS = {"readOnlyHint": True}, {"destructiveHint": False}, {"destructiveHint": True}


@pytest.mark.parametrize(
    ("annotations", "runs_it"),
    [
        (READS, OWN[1:]),
        (WRITES, OWN[2:]),
        (DESTROYS, OWN[3:]),
        ({}, OWN[3:]),  # MCP: a tool is destructive unless it says otherwise
        ({"readOnlyHint": False}, OWN[3:]),
        (READS | DESTROYS, OWN[3:]),
        ({"readOnlyHint": "true", "destructiveHint": "false"}, OWN[3:]),
    ],
)
async def test_a_call_tool_runs_no_tool_that_may_do_worse_than_it_says_of_itself(annotations, runs_it):
    async with gateway_of("a") as (gateway, servers):
        await servers["a"].lists(entry("dig", annotations=annotations))
        found = (await search(gateway, MODERN, "select:a__dig")).answer.structured["tools"][0]
        results = {own: await call(gateway, own, {"name": "a__dig"}) for own in OWN[1:]}

    assert found["callWith"] == runs_it[0]
    assert [own for own, result in results.items() if not result.get("isError")] == runs_it
    for own in set(OWN[1:]) - set(runs_it):
        assert results[own]["_meta"] == {"toolsearch/error": "call_denied"}
        assert text(results[own]).endswith(f"; call 'a__dig' with {runs_it[0]}")


async def test_a_refused_call_says_what_the_call_tool_is_for_as_its_description_does():
    async with gateway_of("a") as (gateway, servers):
        await servers["a"].lists("dig")
        refused = [text(await call(gateway, own, {"name": "a__dig"})) for own in OWN[1:3]]
        described = {own["name"]: own["description"] for own in await gateway.list_tools(MODERN)}

    assert refused == [
        "callToolRead runs tools that only read; call 'a__dig' with callToolDestructive",
        "callToolWrite runs tools that write and say that they destroy nothing; call 'a__dig' with callToolDestructive",
    ]
    assert described["callToolWrite"].endswith("For tools that write and say that they destroy nothing.")
    assert described["callToolDestructive"].endswith("For tools that may destroy, or do not say what they do.")


async def test_arguments_that_come_as_text_are_read_and_checked_as_the_object_that_they_stand_for():
    async with gateway_of("a") as (gateway, servers):
        await servers["a"].lists(entry("dig", inputSchema={"type": "object", "required": ["depth"]}))
        ran = await call(gateway, "callToolDestructive", {"name": "a__dig", "arguments": '{"depth": 2}'})
        unfit = await call(gateway, "callToolDestructive", {"name": "a__dig", "arguments": "{}"})
        no_object = await call(gateway, "callToolDestructive", {"name": "a__dig", "arguments": "two metres"})

    assert servers["a"].called == [("dig", {"depth": 2})]
    assert not ran.get("isError")
    assert "missing depth" in text(unfit)
    assert text(no_object).startswith("the arguments are not valid JSON")


async def test_a_search_of_any_server_with_its_limit_as_text_is_understood():
    async with gateway_of("a", "b") as (gateway, servers):
        await servers["a"].lists("dig", "dig deep")
        await servers["b"].lists("dig")
        found = await gateway.search(MODERN, {"query": "dig", "limit": "2", "server": "all"})
    assert len(found.answer.structured["tools"]) == 2


async def test_arguments_are_checked_the_same_whether_a_tool_is_called_by_name_or_through_a_call_tool():
    sizes = {"depth": {"type": "integer"}, "width": {"type": "integer"}}
    schema = {"type": "object", "properties": sizes, "required": ["depth"]}
    fault = "the arguments do not fit the schema of 'a__dig': "
    async with gateway_of("a") as (gateway, servers):
        await servers["a"].lists(entry("dig", inputSchema=schema))
        for arguments, wrong in (
            ({}, "arguments: missing depth"),
            ({"depth": "x"}, "depth: expected integer, got string"),
        ):
            by_name = await call(gateway, "a__dig", arguments)
            through = await call(gateway, "callToolDestructive", {"name": "a__dig", "arguments": arguments})
            assert text(by_name) == fault + wrong
            assert text(through) == f"{fault}{wrong}; query select:a__dig for its inputSchema"
            assert by_name["_meta"] == through["_meta"] == {"toolsearch/error": "bad_arguments"}
        assert servers["a"].called == []
        for name, arguments in (
            ("a__dig", {"depth": 1}),
            ("a__dig", {"depth": 1, "width": None}),
            ("callToolDestructive", {"name": "a__dig", "arguments": {"depth": 2, "width": None}}),
        ):
            assert not (await call(gateway, name, arguments)).get("isError")
        assert servers["a"].called == [("dig", {"depth": 1}), ("dig", {"depth": 1}), ("dig", {"depth": 2})]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (UpstreamState.READY, ""),
        (UpstreamState.DEGRADED, ""),
        (UpstreamState.IDLE, "The server a is not started yet; a call starts it."),
        (UpstreamState.DOWN, "The server a is down; a call tries to reach it once more."),
        (UpstreamState.NEEDS_LOGIN, "The server a is waiting for a person to log in; calls fail until then."),
    ],
)
async def test_an_answer_says_what_a_call_will_meet(state, said):
    async with gateway_of("a", "b") as (gateway, servers):
        await servers["a"].lists("dig")
        await servers["b"].lists("eat")
        servers["a"].is_now(state)

        for caller in (EXPANDING, HEDGED, MODERN):
            text = (await search(gateway, caller, "select:a__dig")).answer.text
            assert [line for line in text.splitlines() if line.startswith("The server")] == ([said] if said else [])


async def test_finding_nothing_names_the_servers_whose_tools_are_not_known_yet():
    async with gateway_of("a", "b", "c") as (gateway, servers):
        await servers["a"].lists("dig")
        servers["b"].is_now(UpstreamState.NEEDS_LOGIN)
        servers["c"].is_now(UpstreamState.DOWN)
        answer = (await search(gateway, MODERN, "select:b__eat")).answer

    assert answer.text.splitlines()[-1] == (
        "Not searched, since their tools are not known yet: b (waiting for a person to log in), c (down)."
    )


# --- who is told ------------------------------------------------------------------------------------------------------


class FakeConnection:
    """A session's own stream, which counts what it is told, or fails."""

    def __init__(self, *, is_dead: bool = False) -> None:
        self.exit_stack = AsyncExitStack()
        self.told = 0
        self.told_of_prompts = 0
        self._is_dead = is_dead

    @property
    def session(self) -> Any:
        return type("Session", (), {"_connection": self})()

    async def send_tool_list_changed(self) -> None:
        if self._is_dead:
            raise ConnectionError
        self.told += 1

    async def send_prompt_list_changed(self) -> None:
        self.told_of_prompts += 1


async def told(changes: ListChanges) -> None:
    """Wait until everybody has been told of all changes so far."""
    while changes._telling is not None:
        await changes._telling


async def test_a_servers_change_is_told_once_to_each_session_that_has_one_of_its_tools_and_to_no_other():
    async with gateway_of("a", "b") as (gateway, servers):
        await servers["a"].lists("dig", "sow")
        await servers["b"].lists("eat")
        changes = ListChanges(gateway)
        dead, has, other = FakeConnection(is_dead=True), FakeConnection(), FakeConnection()
        for key, connection, query in (("x", dead, "dig"), ("y", has, "dig"), ("z", other, "sow")):
            caller = Caller(LOCAL, Era.LEGACY, session_key=key, client_name="claude-code")
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


async def test_what_fails_unforeseen_is_answered_with_the_number_of_an_incident_and_nothing_raw(caplog):
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
                assert failing.content[0].text == "The gateway failed at this request; its log says how, as incident 1"
                with pytest.raises(MCPError) as failed:
                    await client.list_tools()
                assert failed.value.error.code == types.INTERNAL_ERROR
                assert str(failed.value) == "The gateway failed at this request; its log says how, as incident 2"

    assert "/home/somebody/secret" in caplog.text


# --- what of a tool is listed -----------------------------------------------------------------------------------------

FAULTY = {
    **entry("dig"),
    "title": 7,
    "icons": "none",
    "annotations": {"readOnlyHint": True, "destructiveHint": "perhaps", "colour": "green"},
    "_meta": [],
    "outputSchema": {"type": "array"},
    "x-unknown": {"kept": True},
}


def tool_of(raw: dict[str, Any]) -> Tool:
    ((tool,), _) = read_listing("a", [raw], "a")
    return tool


@pytest.mark.parametrize(("era", "version"), [(Era.LEGACY, "2025-11-25"), (Era.MODERN, "2026-07-28")])
def test_a_faulty_optional_field_is_left_out_and_what_no_version_knows_stays(era, version):
    listed = entry_for(tool_of(FAULTY), era)

    assert listed == {
        "name": "a__dig",
        "description": "Does dig.",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True, "colour": "green"},
        "x-unknown": {"kept": True},
        **({"outputSchema": {"type": "array"}} if era is Era.MODERN else {}),
    }
    whole = {"tools": [listed], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    methods.validate_server_result("tools/list", version, whole)


def test_an_entry_without_faults_is_listed_as_it_came_but_for_its_name():
    raw = entry("dig", title="Dig", icons=[{"src": "https://example.org/i.png"}], _meta={"a": [1]}, execution={})

    for era in Era:
        assert json.dumps(entry_for(tool_of(raw), era)) == json.dumps({**raw, "name": "a__dig"})
