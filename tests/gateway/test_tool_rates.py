"""Limits of calls by principal and tool, in a gateway."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.kit.clock import Clock
from tests.kit.fake_servers import LEGACY, MODERN, Nobody, call, entry, gateway_of, text
from toolsearch import tool as as_tool
from toolsearch.access.principals import Grant, Principal
from toolsearch.access.reach import Reach
from toolsearch.calling.rates import ToolRate
from toolsearch.engine import ToolSearch
from toolsearch.errors import BadSettingError, ServerUnavailableError, TooManyError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.proxy.suspended_calls import Room
from toolsearch.gateway.proxy.tool_rates import ToolRates
from toolsearch.gateway.settings import GatewayConfig, GatewaySettings
from toolsearch.gateway.status import CallEnd
from toolsearch.tokens import HeuristicTokenCounter
from toolsearch.tools.calls import ToolResult
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.tools.results import text_block
from toolsearch.upstreams.interface import UpstreamRequest
from toolsearch.wire.mcp.eras import Era

LOG = Tool(ToolDefinition("git__log", server="git"))
PUSH = Tool(ToolDefinition("git__push", server="git", annotations={"destructiveHint": True}))


def caller(name: str, key: str = "", reach: Reach | None = None) -> Caller:
    return Caller(Grant(Principal(name, reach or Reach()), key_id=key), Era.MODERN)


ANN, BEN = caller("ann"), caller("ben")


def rates(clock: Clock, **limits: ToolRate) -> ToolRates:
    return ToolRates(limits, HeuristicTokenCounter(), clock)


def refusal(made: ToolRates, who: Caller, tool: Tool) -> str:
    """The message of a refusal; "" if the call may begin."""
    try:
        made.begin(who, tool)
    except TooManyError as error:
        return str(error)
    return ""


def limited(**rate: Any) -> dict[str, Any]:
    return {"limits": {"rates": {"git": {"tools": ["server:git"], **rate}}}}


def code(result: Mapping[str, Any]) -> str | None:
    return result.get("_meta", {}).get("toolsearch/error")


async def test_a_call_over_a_limit_is_told_when_to_try_again_and_its_server_hears_nothing(clock: Clock) -> None:
    async with gateway_of("git", "hub", clock=clock, section=limited(perMinute=2)) as (gateway, servers):
        await servers["git"].lists("log", "show")
        await servers["hub"].lists("issues")
        answers = [await call(gateway, name, {}) for name in ("git__log", "git__show", "git__log")]
        other = await call(gateway, "hub__issues", {})
        clock.now_s += 30
        later = await call(gateway, "git__log", {})

    assert [code(each) for each in (*answers, other, later)] == [None, None, "rate_limited", None, None]
    assert "'git' of 2 calls in a minute" in text(answers[2])
    assert text(answers[2]).endswith("retry after 30 s")
    assert answers[2]["isError"]
    assert [name for name, _ in servers["git"].called] == ["log", "show", "log"]


async def test_what_is_read_directly_counts_with_the_calls_so_that_no_method_avoids_a_limit(clock: Clock) -> None:
    uri, prompt = {"uri": "git:///log"}, {"name": "git__ask"}
    template = {"ref": {"type": "ref/resource", "uri": "git:///{id}"}, "argument": {"name": "id", "value": "l"}}
    section = limited(perMinute=4)
    section["limits"]["rates"]["by-id"] = {"tools": ["git__by-id"], "perMinute": 1}
    async with gateway_of("git", clock=clock, section=section) as (gateway, servers):
        await servers["git"].lists(
            "log",
            prompts=({"name": "ask"},),
            resources=({**uri, "name": "log file"},),
            resource_templates=({"uriTemplate": "git:///{id}", "name": "by-id"},),
        )
        asks = [
            lambda: gateway.read_resource(ANN, uri, Nobody()),
            lambda: gateway.content.get_prompt(ANN, prompt, Nobody()),
            lambda: gateway.content.complete(ANN, template, Nobody()),
        ]
        for ask in asks:
            await ask()
        with pytest.raises(TooManyError, match="'by-id' of 1 calls"):
            await gateway.read_resource(ANN, {"uri": "git:///7"}, Nobody())
        assert code(await call(gateway, "git__log", {}, ANN)) is None
        for ask in asks:
            with pytest.raises(TooManyError, match="'git' of 4 calls"):
                await ask()
        assert code(await call(gateway, "git__log", {}, ANN)) == "rate_limited"
        await gateway.read_resource(BEN, uri, Nobody())

    assert len(servers["git"].called) == 5


async def test_what_is_read_directly_counts_by_its_tokens_and_runs_until_it_is_answered(clock: Clock) -> None:
    uri, words = {"uri": "git:///log"}, "words of a file " * 100
    section = limited(tokensPerMinute=100, atOnce=1)
    async with gateway_of("git", clock=clock, section=section) as (gateway, servers):
        await servers["git"].lists("log", resources=({**uri, "name": "log file"},), prompts=({"name": "ask"},))
        servers["git"].has |= {
            "git:///log": {"contents": [{**uri, "text": words}]},
            "ask": {"messages": [{"role": "user", "content": {"type": "text", "text": words}}]},
        }
        await gateway.read_resource(ANN, uri, Nobody())
        await gateway.content.get_prompt(BEN, {"name": "git__ask"}, Nobody())
        refused = [await call(gateway, "git__log", {}, who) for who in (ANN, BEN)]
        clock.now_s += 3_600
        later = await call(gateway, "git__log", {}, ANN)

    assert ["tokens of results" in text(each) for each in refused] == [True, True]
    assert code(later) is None


async def test_a_call_through_a_call_tool_counts_for_the_tool(clock: Clock) -> None:
    async with gateway_of("git", clock=clock, section=limited(perMinute=1)) as (gateway, servers):
        await servers["git"].lists(entry("log", annotations={"readOnlyHint": True}))
        first = await call(gateway, "callToolRead", {"name": "git__log", "arguments": {}})
        second = await call(gateway, "callToolRead", {"name": "git__log", "arguments": {}})

    assert (code(first), code(second)) == (None, "rate_limited")


async def test_a_tool_out_of_reach_reveals_no_limit_and_uses_none_up(clock: Clock) -> None:
    """Nor do arguments that do not fit."""
    poor = caller("ann", reach=Reach.parse(deny=["git__log"]))
    needs = entry("show") | {"inputSchema": {"type": "object", "required": ["path"]}}
    async with gateway_of("git", clock=clock, section=limited(perMinute=1)) as (gateway, servers):
        await servers["git"].lists("log", needs)
        made = {"name": "git__log", "arguments": {}}
        hidden = [await call(gateway, "callToolDestructive", made, poor) for _ in range(2)]
        faulty = [await call(gateway, "git__show", {}, ANN) for _ in range(2)]
        sound = await call(gateway, "git__show", {"path": "x"}, ANN)

    assert [code(each) for each in (*hidden, *faulty, sound)] == ["unknown_tool"] * 2 + ["bad_arguments"] * 2 + [None]


@pytest.mark.parametrize("who", [MODERN, LEGACY], ids=["modern", "legacy"])
async def test_calls_at_once_are_counted_until_they_end_however_they_end(clock: Clock, who: Caller) -> None:
    """A call that is refused was not run."""
    ends: list[CallEnd] = []
    async with gateway_of("git", clock=clock, section=limited(atOnce=1)) as (gateway, servers):
        gateway.on_call_end(lambda _, end: ends.append(end))
        server, running = servers["git"], asyncio.Event()
        await server.lists("log")
        request = server.request

        async def waits(_: object) -> dict[str, Any]:
            running.set()
            await asyncio.Event().wait()
            raise AssertionError

        server.request = waits
        task = asyncio.create_task(call(gateway, "git__log", {}, who))
        await running.wait()
        refused = await call(gateway, "git__log", {}, who)
        other = asyncio.create_task(call(gateway, "git__log", {}, ANN))
        await asyncio.sleep(0)
        for each in (task, other):
            each.cancel()
        await asyncio.wait([task, other])
        server.request = request
        later = await call(gateway, "git__log", {}, who)

    assert [(end.code, end.was_run) for end in ends[:1]] == [("rate_limited", False)]
    assert code(refused) == "rate_limited"
    assert "1 calls at once" in text(refused)
    assert text(refused).endswith("retry after 1 s")
    assert code(later) is None


@pytest.mark.parametrize("is_raw", [False, True])
async def test_calls_of_callbacks_are_counted_while_they_run(clock: Clock, *, is_raw: bool) -> None:
    """A raw one, as toolsets have them, says itself how long it runs."""
    running, go_on = asyncio.Event(), asyncio.Event()

    class Raw:
        async def call(self, *_: Any) -> object:
            raise AssertionError

        async def call_raw(self, _: object, __: object, ___: object, room: Room) -> dict[str, Any]:
            with room:
                running.set()
                await go_on.wait()
            return {"content": []}

    @as_tool
    async def wait(n: int) -> int:
        """Waits."""
        running.set()
        await go_on.wait()
        return n

    made = rates(clock, one=ToolRate(at_once=1))
    raw = Tool(ToolDefinition("wait", "Waits.", {"type": "object"}), Raw())
    with ToolSearch([raw if is_raw else wait]) as engine:
        async with Gateway(GatewayConfig("here", (), GatewaySettings()), engine=engine, rates=made) as gateway:
            first = asyncio.create_task(call(gateway, "wait", {"n": 1}))
            await running.wait()
            refused = await call(gateway, "wait", {"n": 1})
            go_on.set()
            answers = [await first, refused, await call(gateway, "wait", {"n": 1})]

    assert [code(each) for each in answers] == [None, "rate_limited", None]


ASKED = Caller(Grant(Principal("ann")), Era.MODERN, capabilities={"elicitation": {}})


class Person(Nobody):
    """A client of 2026: it is asked by results, and answers with another request."""

    capabilities: Mapping[str, Any] = {"elicitation": {}}


async def asks(request: UpstreamRequest) -> dict[str, Any]:
    """What a server of the older protocol does that asks its client whether it may go on."""
    request.admit()
    assert request.downstream is not None
    return {"content": [await request.downstream.ask("elicitation/create", {"mode": "form", "message": "Sure?"})]}


def answered(asked: Mapping[str, Any]) -> dict[str, Any]:
    answers = {key: {"action": "accept"} for key in asked["inputRequests"]}
    return {"requestState": asked["requestState"], "inputResponses": answers}


async def test_a_call_whose_server_waits_for_an_answer_counts_as_running_until_it_has_ended(clock: Clock) -> None:
    async with gateway_of("git", clock=clock, section=limited(atOnce=1)) as (gateway, servers):
        await servers["git"].lists("log", "show")
        request = servers["git"].request
        servers["git"].request = asks
        made = {"name": "git__log", "arguments": {}}
        asked = await gateway.call(ASKED, made, Person())
        servers["git"].request = request
        refused = await call(gateway, "git__show", {}, ANN)
        done = await gateway.call(ASKED, {**made, **answered(asked)}, Person())
        later = await call(gateway, "git__show", {}, ANN)

    assert asked["resultType"] == "input_required"
    assert [code(each) for each in (refused, done, later)] == ["rate_limited", None, None]
    assert done["content"] == [{"action": "accept"}]


async def test_a_question_that_nobody_answers_takes_no_room_for_ever(clock: Clock) -> None:
    async with gateway_of("git", clock=clock, section=limited(atOnce=1)) as (gateway, servers):
        await servers["git"].lists("log", "show")
        request, gives_up = servers["git"].request, asyncio.Event()

        async def gives_up_asking(made: UpstreamRequest) -> dict[str, Any]:
            asking = asyncio.create_task(asks(made))
            await gives_up.wait()
            asking.cancel()
            raise ServerUnavailableError("nobody has answered")

        servers["git"].request = gives_up_asking
        await gateway.call(ASKED, {"name": "git__log", "arguments": {}}, Person())
        servers["git"].request = request
        refused = await call(gateway, "git__show", {}, ANN)
        gives_up.set()
        await asyncio.wait(gateway.relay._suspended._tasks)
        later = await call(gateway, "git__show", {}, ANN)

    assert [code(each) for each in (refused, later)] == ["rate_limited", None]


async def test_a_resource_whose_server_waits_for_an_answer_counts_as_running_too(clock: Clock) -> None:
    uri = {"uri": "git:///log"}
    async with gateway_of("git", clock=clock, section=limited(atOnce=1)) as (gateway, servers):
        await servers["git"].lists("log", resources=({**uri, "name": "log file"},))
        servers["git"].request, request = asks, servers["git"].request
        asked = await gateway.read_resource(ASKED, uri, Person())
        servers["git"].request = request
        refused = await call(gateway, "git__log", {}, ANN)
        await gateway.read_resource(ASKED, {**uri, **answered(asked)}, Person())
        later = await call(gateway, "git__log", {}, ANN)

    assert [code(each) for each in (refused, later)] == ["rate_limited", None]


@pytest.mark.parametrize("name", ["git__log", "git__history"])
async def test_a_limit_holds_for_a_renamed_tool_by_either_name(clock: Clock, name: str) -> None:
    limits = {"rates": {"few": {"tools": [name], "perMinute": 1}}}
    section = {"limits": limits, "servers": {"git": {"tools": {"log": {"name": "history"}}}}}
    async with gateway_of("git", clock=clock, section=section) as (gateway, servers):
        await servers["git"].lists("log", "show")
        codes = [code(await call(gateway, each, {})) for each in ("git__history", "git__history", "git__show")]

    assert codes == [None, "rate_limited", None]


async def test_the_tokens_of_results_are_counted_and_the_next_call_waits_for_them(clock: Clock) -> None:
    """A result of 12 words is 12 tokens: 2 too many, and one more is needed: 3 tokens take 18 s at 10 a minute."""
    async with gateway_of("git", clock=clock, section=limited(tokensPerMinute=10)) as (gateway, servers):
        await servers["git"].lists("log")
        servers["git"].has["log"] = {"content": [{"type": "text", "text": " ".join(["word"] * 12)}]}
        first, second = await call(gateway, "git__log", {}), await call(gateway, "git__log", {})
        clock.now_s += 18
        third = await call(gateway, "git__log", {})

    assert [code(each) for each in (first, second, third)] == [None, "rate_limited", None]
    assert "'git' of 10 tokens of results" in text(second)
    assert text(second).endswith("retry after 18 s")


async def test_limits_are_changed_while_the_gateway_runs_and_go_on_counting(clock: Clock) -> None:
    def config(per_minute: int | None) -> Any:
        section = {"passThrough": {"maxTools": 0}, **(limited(perMinute=per_minute) if per_minute else {})}
        return read_gateway_config({"mcpServers": {"git": {"command": "none"}}, "toolsearch": section}, {})

    async with gateway_of("git", clock=clock) as (gateway, servers):
        await gateway.reconfigure(replace(config(None), settings=gateway.config.settings))
        await servers["git"].lists("log")
        codes = [code(await call(gateway, "git__log", {}))]
        for per_minute in (2, 1, None):
            limits = config(per_minute).settings.limits
            settings = gateway.config.settings.model_copy(update={"limits": limits})
            await gateway.reconfigure(replace(gateway.config, settings=settings))
            codes += [code(await call(gateway, "git__log", {})), code(await call(gateway, "git__log", {}))]

    assert codes == [None, None, None, "rate_limited", "rate_limited", None, None]


def test_each_principal_has_its_own_count_and_so_has_each_key_of_it(clock: Clock) -> None:
    made = rates(clock, all=ToolRate(per_minute=1))

    who = [ANN, BEN, caller("ann", "key_1"), caller("ann", "key_2")]
    assert [bool(refusal(made, each, LOG)) for each in (*who, *who)] == [False] * 4 + [True] * 4


def test_a_limit_holds_for_the_tools_and_the_principals_that_it_names(clock: Clock) -> None:
    made = rates(
        clock,
        bots=ToolRate(principals=("bot-*", "ci"), per_minute=1),
        pushing=ToolRate(tools=("class:destructive",), per_minute=2),
    )

    assert not refusal(made, caller("bot-1"), PUSH)
    assert "'bots'" in refusal(made, caller("bot-1"), LOG)
    assert "'bots'" in refusal(made, caller("bot-1"), PUSH)
    assert [refusal(made, ANN, PUSH) for _ in range(2)] == ["", ""]
    assert "'pushing'" in refusal(made, ANN, PUSH)
    assert not refusal(made, ANN, LOG)


def test_a_call_that_one_limit_refuses_uses_up_none(clock: Clock) -> None:
    made = rates(clock, few=ToolRate(tools=("git__push",), per_minute=1), all=ToolRate(per_minute=2))

    assert [bool(refusal(made, ANN, each)) for each in (PUSH, PUSH, PUSH, LOG, LOG)] == [False, True, True, False, True]


def test_the_use_through_other_processes_counts_unless_they_have_other_limits(clock: Clock) -> None:
    told: list[tuple[tuple[str, str], int]] = []
    limits = {"all of it": ToolRate(per_minute=2)}
    ours, theirs = (ToolRates(limits, HeuristicTokenCounter(), clock, tell=lambda *use: told.append(use)) for _ in "ab")
    ours.begin(ANN, LOG)
    for bucket, amount in told:
        theirs.used_elsewhere(bucket, amount)
    theirs.used_elsewhere(("ann\n", "unheard of calls"), 9)
    theirs.used_elsewhere(("ann\n", "all of it tokens"), 9)

    assert [bool(refusal(theirs, ANN, LOG)) for _ in range(2)] == [False, True]


async def test_memory_is_bounded_over_many_principals(clock: Clock) -> None:
    made = rates(clock, all=ToolRate(per_minute=1, at_once=5, tokens_per_minute=5))
    for number in range(60_000):
        counted = made.begin(caller(f"p{number}"), LOG)
        with counted:
            pass
    await counted.answered(ToolResult("", "", (text_block("x" * 100),)))
    kept: dict[str, Any] = vars(made)

    assert (len(kept["_buckets"]), len(kept["_running"])) == (50_000, 0)


@pytest.mark.parametrize(
    ("rate", "reason"),
    [
        ({"tools": ["server:git"]}, "it limits nothing"),
        ({"tools": ["sever:git"], "perMinute": 1}, "cannot use the reach rule"),
        ({"principals": ["[a"], "perMinute": 1}, "without its"),
        ({"principals": [], "perMinute": 1}, "at least 1 item"),
        ({"perMinute": 0}, "greater than or equal to 1"),
        ({"perMinit": 1}, "perMinute"),
    ],
)
def test_a_limit_that_could_not_hold_is_an_error(rate: dict[str, Any], reason: str) -> None:
    document = {"mcpServers": {"git": {"command": "x"}}, "toolsearch": {"limits": {"rates": {"one": rate}}}}
    with pytest.raises(BadSettingError, match=r"toolsearch\.limits\.rates\.one") as caught:
        read_gateway_config(document, {})
    assert reason in str(caught.value)


def test_a_name_of_a_limit_is_short_and_plain() -> None:
    document = {"mcpServers": {}, "toolsearch": {"limits": {"rates": {"a\nb": {"perMinute": 1}}}}}
    with pytest.raises(BadSettingError, match="pattern"):
        read_gateway_config(document, {})
