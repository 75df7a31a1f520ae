"""What the search and the call tools answer, whatever becomes of what they were asked."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kit.clock import Clock
from tests.kit.fake_servers import EXPANDING, LEGACY, MODERN, OWN, call, entry, gateway_of, names, search, text
from toolsearch.access.principals import Grant, Principal
from toolsearch.access.reach import Reach
from toolsearch.errors import BadQueryError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.trust.gate import make_gate
from toolsearch.gateway.trust.verdicts import OpenGate, ToolGate
from toolsearch.tokens import O200kTokenCounter
from toolsearch.upstreams.interface import (
    UpstreamState,
)


async def test_an_answer_says_how_this_client_can_call_what_was_found():
    async with gateway_of("a") as (gateway, servers):
        await servers["a"].lists(entry("dig", annotations={"destructiveHint": True}))
        fixed = await search(gateway, MODERN, "select:a__dig")
        older = await search(gateway, LEGACY, "select:a__dig")
        claude = await search(gateway, replace(MODERN, client_name="claude-code"), "select:a__dig")
        grown = await search(gateway, EXPANDING, "select:a__dig")

    assert fixed.structured["tools"][0]["callWith"] == "callToolDestructive"
    assert "tool list" not in fixed.text
    assert (older.text, older.structured) == (fixed.text, fixed.structured)
    assert claude.structured["tools"][0]["callWith"] == "mcp__toolsearch__callToolDestructive"
    assert grown.text.splitlines()[0].startswith("Tools marked 'loaded' are in")
    assert "[fits, loaded]" in grown.text
    hint, line = grown.text.splitlines()
    assert grown.structured == {"tools": [{"name": "a__dig", "is": line.removeprefix("- ")}], "howToCall": hint}


async def test_an_answer_says_where_even_the_best_is_only_related_and_loads_none():
    weakly = "Probably none of these fits."
    async with gateway_of("a", "b") as (gateway, servers):
        await servers["a"].lists(entry("mow", description="Cuts the grass of a lawn"))
        await servers["b"].lists(entry("bake", description="Bakes a loaf of bread"))
        for caller in (MODERN, LEGACY, EXPANDING):
            weak = await search(gateway, caller, "plant a tree")
            assert weakly in weak.text
            assert weakly in weak.structured["note"]
            assert (weak.structured["tools"], weak.list_changed) == ([], False)
            assert "[related]" in weak.structured["alsoFound"][0]
            sure = await search(gateway, caller, "bake bread")
            assert weakly not in sure.text + str(sure.structured)
            assert [tool["name"] for tool in sure.structured["tools"]] == ["b__bake"]


async def test_several_queries_of_a_client_are_answered_in_one_call_and_every_loaded_tool_is_listed():
    async with gateway_of("a", "b") as (gateway, servers):
        await servers["a"].lists(entry("mow", description="Cuts the grass of a lawn"))
        await servers["b"].lists(entry("bake", description="Bakes a loaf of bread"))
        asked = {"queries": ["bake bread", "cut the grass"]}
        found = await gateway.search(EXPANDING, asked)
        listed = await names(gateway, EXPANDING)
        fixed = await gateway.search(MODERN, asked)

    assert listed == [*OWN, "b__bake", "a__mow"]
    assert found.list_changed
    assert [line for line in found.text.splitlines() if line.startswith('"')] == [
        '"bake bread":',
        '"cut the grass":',
    ]
    assert [tool["name"] for tool in fixed.structured["tools"]] == ["b__bake", "a__mow"]
    assert gateway.ledger.last_searches[0].query == "bake bread; cut the grass"


async def test_a_full_name_is_the_one_definition_of_an_answer_and_names_that_are_not_there_get_near_ones():
    async with gateway_of("a", "b") as (gateway, servers):
        await servers["a"].lists(
            *(entry(f"dig_{what}", description="Digs a hole") for what in ("hole", "deep", "well"))
        )
        await servers["b"].lists(entry("bury", description="Buries a bone in a hole"))
        for caller in (MODERN, LEGACY, EXPANDING):
            alone = await search(gateway, caller, "a__dig_well")
            missing = await search(gateway, caller, "select:a__dig_well,a__dig_wel,nope")

            assert [tool["name"] for tool in alone.structured["tools"]] == ["a__dig_well"]
            assert len(alone.structured["alsoFound"]) >= 2
            assert [tool["name"] for tool in missing.structured["tools"]] == ["a__dig_well"]
            told = "No tool is named a__dig_wel (did you mean a__dig_well?), nope."
            assert told in missing.text
            assert told in missing.structured["note"]


async def test_the_search_tool_names_no_strategy_and_takes_one_all_the_same():
    async with gateway_of("a") as (gateway, servers):
        await servers["a"].lists(entry("dig"), entry("dig_deep"))
        own = (await gateway.list_tools(MODERN))[0]
        found = await gateway.search(MODERN, {"queries": ["^dig$|_dig$"], "strategy": "regex"})

    assert list(own["inputSchema"]["properties"]) == ["queries", "limit", "server"]
    assert "required" not in own["inputSchema"]  # clients would refuse the call of a model that sends ``query``
    assert [tool["name"] for tool in found.structured["tools"]] == ["a__dig"]


async def test_an_operators_hint_ends_the_search_tools_description():
    section = {"search": {"searchHint": "Gardens and kitchens."}, "passThrough": {"maxTools": 0}}
    async with Gateway(read_gateway_config({"mcpServers": {}, "toolsearch": section}, {}), gate=OpenGate()) as gateway:
        own = (await gateway.list_tools(MODERN))[0]

    assert own["description"].endswith(" Gardens and kitchens.")


async def test_no_definition_costs_a_client_more_than_one_may_however_it_is_shown():
    long = "Digs a hole. " + "It digs and digs. " * 3_000
    many = {"type": "object", "properties": {f"parameter_{i}": {"type": "string"} for i in range(1_500)}}
    servers_tools = (
        entry("dig", description=long),
        entry("bury", _meta={"story": long}),
        entry("wide", description="Digs wide.", inputSchema=many),
    )
    shown = ["a__bury", "a__dig"]
    for exposure in (
        {},
        {"pins": ["a__dig", "a__bury", "a__wide"]},
        {"section": {"passThrough": {"maxTools": 9, "maxTokens": 10**7}}},
    ):
        async with gateway_of("a", **exposure) as (gateway, servers):
            await servers["a"].lists(*servers_tools)
            for caller in (EXPANDING, LEGACY, MODERN):
                found = await gateway.search(caller, {"query": "select:dig,bury,wide"})
                assert tokens(found.text) <= 8_100
                assert tokens(found.structured) <= 8_100
                assert "parameter_1" not in str(found)
                assert "too long to show: a__wide." in found.text
                listed = await gateway.list_tools(caller)
                assert all(tokens(each) <= 8_000 for each in listed)
                theirs = [each for each in listed if each["name"] not in OWN]
                if exposure or caller is EXPANDING:
                    assert sorted(each["name"] for each in theirs) == shown
                    assert "has 54,013 characters]" in str(theirs)
                    assert "story" not in str(theirs)
            assert await call(gateway, "a__wide", {}) == {"content": []}


def tokens(value: object) -> int:
    return O200kTokenCounter().count(value if isinstance(value, str) else json.dumps(value))


async def test_an_answer_is_short_enough_for_a_client_that_cuts_results():
    """Cline hands its model 8,000 characters of a result that is written as JSON, in which an answer is a text."""
    wide = {
        "type": "object",
        "properties": {f"part_{i}": {"type": "string", "description": "x" * 60} for i in range(20)},
    }
    cline = replace(LEGACY, client_name="@cline/core")
    async with gateway_of("a") as (gateway, servers):
        await servers["a"].lists(*(entry(f"dig_{i}", description="Digs a hole.", inputSchema=wide) for i in range(9)))
        asked = {"queries": [f"select:a__dig_{i}" for i in range(8)]}
        usual, short = [await gateway.search(caller, asked) for caller in (LEGACY, cline)]

    assert len(json.dumps({"content": [{"type": "text", "text": usual.text}]})) > 8_000
    assert len(json.dumps({"content": [{"type": "text", "text": short.text}]})) < 8_000
    assert short.structured["tools"]


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
        found = await search(gateway, MODERN, "select:a__dig")
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
        found = (await search(gateway, MODERN, "select:a__dig")).structured["tools"][0]
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
    assert described["callToolWrite"].endswith("that they destroy nothing.")
    assert described["callToolDestructive"].endswith("say what they do.")


async def test_arguments_that_come_as_text_are_read_and_checked_as_the_object_that_they_stand_for():
    async with gateway_of("a") as (gateway, servers):
        await servers["a"].lists(entry("dig", inputSchema={"type": "object", "required": ["depth"]}))
        ran = await call(gateway, "callToolDestructive", {"name": "a__dig", "arguments": '{"depth": 2}'})
        unfit = await call(gateway, "callToolDestructive", {"name": "a__dig", "arguments": "{}"})
        no_object = await call(gateway, "callToolDestructive", {"name": "a__dig", "arguments": "two metres"})

    assert servers["a"].called == [("dig", {"depth": 2})]
    assert not ran.get("isError")
    assert "missing depth" in text(unfit)
    assert text(no_object).startswith("the arguments are not valid")


async def test_a_search_of_any_server_with_its_limit_as_text_is_understood():
    async with gateway_of("a", "b") as (gateway, servers):
        await servers["a"].lists("dig", "dig deep")
        await servers["b"].lists(entry("dig", description="Digs with a spade."))
        found = await gateway.search(MODERN, {"query": "dig", "limit": "2", "server": "all"})
    assert len(found.structured["tools"]) == 2


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
        (UpstreamState.DOWN, "The server a is not reachable; a call tries to reach it once more."),
        (UpstreamState.NEEDS_LOGIN, "The server a is waiting for a person to sign in; calls fail until then."),
    ],
)
async def test_an_answer_says_what_a_call_will_meet(state, said):
    async with gateway_of("a", "b") as (gateway, servers):
        await servers["a"].lists("dig")
        await servers["b"].lists("eat")
        servers["a"].is_now(state)

        for caller in (EXPANDING, LEGACY, MODERN):
            text = (await search(gateway, caller, "select:a__dig")).text
            assert [line for line in text.splitlines() if line.startswith("The server")] == ([said] if said else [])


async def test_finding_nothing_names_the_servers_whose_tools_are_not_known_yet():
    async with gateway_of("a", "b", "c") as (gateway, servers):
        await servers["a"].lists("dig")
        servers["b"].is_now(UpstreamState.NEEDS_LOGIN)
        servers["c"].is_now(UpstreamState.DOWN)
        answer = await search(gateway, MODERN, "select:b__eat")

    assert answer.text.splitlines()[-1].startswith("Not searched, ")
    assert answer.text.endswith(": b (waiting for a person to sign in), c (not reachable).")


async def test_the_list_of_servers_says_which_of_them_cannot_be_reached():
    async with gateway_of("a", "b", "c") as (gateway, servers):
        await servers["a"].lists("dig")
        await servers["b"].lists("eat")
        servers["b"].is_now(UpstreamState.DOWN)
        servers["c"].is_now(UpstreamState.NEEDS_LOGIN)
        for caller in (EXPANDING, LEGACY, MODERN):
            before = json.dumps(await gateway.list_tools(caller))
            for query in ("servers:", "volcano"):
                told = (await search(gateway, caller, query)).text.splitlines()
                assert told[-3:-1] == ["- a (1)", "- b (1, not reachable)"]
                assert told[-1].endswith("not known yet: c (waiting for a person to sign in).")
            assert json.dumps(await gateway.list_tools(caller)) == before  # the list of tools says nothing of it
        servers["b"].is_now(UpstreamState.READY)
        assert "- b (1)" in (await search(gateway, MODERN, "servers:")).text.splitlines()


def quarantine(folder: Path, *servers: str) -> ToolGate:
    """The gate of a gateway of *servers* that holds everything new."""
    trust = {"stateDir": str(folder), "trust": {"firstSeen": "quarantine"}}
    servers_of_it = {name: {"command": "none"} for name in servers}
    return make_gate(read_gateway_config({"mcpServers": servers_of_it, "toolsearch": trust}, {}))


async def test_a_configured_server_without_tools_to_search_is_told_apart_from_one_that_does_not_exist():
    clock = Clock()
    async with gateway_of("a", "b", "c", "d", clock=clock) as (gateway, servers):
        await servers["a"].lists("dig")
        await servers["d"].lists()
        clock.now_s = 10  # no search waits longer for a server that starts
        servers["b"].is_now(UpstreamState.STARTING)
        servers["c"].is_now(UpstreamState.DOWN)
        servers["c"].last_error = "cannot start 'none'"

        async def refusal(server: str, caller: Caller = MODERN) -> str:
            with pytest.raises(BadQueryError) as error:
                await gateway.search(caller, {"queries": ["dig", "eat"], "server": server})
            return str(error.value)

        unknown = "the tools of the server {} are not known yet, since it is {}"
        assert await refusal("b") == unknown.format("b", "starting")
        assert await refusal("c") == unknown.format("c", "not reachable")  # and not what it printed
        one = {"query": "dig", "server": "e"}
        for server in ("d", "e"):  # d is there, and lists no tool
            with pytest.raises(BadQueryError, match=rf"there is no server '{server}'; there are: a$"):
                await gateway.search(MODERN, {**one, "server": server})
        kept_out = replace(MODERN, grant=Grant(Principal("ann", Reach.parse(deny=["server:c"]))))
        with pytest.raises(BadQueryError, match=r"there is no server 'c'; there are: a$"):
            await gateway.search(kept_out, {**one, "server": "c"})


async def test_who_may_use_tools_that_await_approval_is_told_whose_they_are_and_how_they_are_approved(tmp_path):
    with closing(quarantine(tmp_path, "a", "b")) as gate:
        async with gateway_of("a", "b", gate=gate) as (gateway, servers):
            await servers["a"].lists("dig")
            await servers["b"].lists("eat")
            note = "Not searched, since a person has to approve them with `toolsearch gateway approve`: tools of a, b."
            assert note in (await search(gateway, MODERN, "dig a hole")).text.splitlines()
            with pytest.raises(BadQueryError, match=r"of the server a wait for .* with `toolsearch gateway approve a`"):
                await gateway.search(MODERN, {"query": "dig", "server": "a"})

            kept_out = replace(MODERN, grant=Grant(Principal("ann", Reach.parse(deny=["a__*"]))))
            assert note.replace("a, b", "b") in (await search(gateway, kept_out, "dig a hole")).text
            with pytest.raises(BadQueryError, match=r"there is no server 'a'"):
                await gateway.search(kept_out, {"query": "dig", "server": "a"})
