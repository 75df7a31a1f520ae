"""Results that wait for an operator: who decides, who gets them, and how many are kept."""

import asyncio
import json
from typing import Any

import pytest
from mcp import MCPError

from tests.gateway.test_marked_results import POISON, of_text
from tests.gateway.test_overridden_calls import code, config, listing
from tests.kit.clock import Clock
from tests.kit.fake_servers import LEGACY, MODERN, Nobody, call, entry, text
from tests.kit.skills import REFUND, entry_of, given, refund_text
from toolsearch.access.claims import Claims
from toolsearch.access.principals import Grant, Principal
from toolsearch.errors import ConflictError, StorageError, UnknownRecordError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.trust import held_results
from toolsearch.gateway.trust.held_results import KEPT_S, MAX_HELD, HeldResults
from toolsearch.wire.mcp.eras import Era
from toolsearch.wire.mcp.tasks import TASKS_EXTENSION, TaskStatus

TASKS = {"extensions": {TASKS_EXTENSION: {}}}
ANN, BOB = (Caller(Grant(Principal(name)), Era.MODERN) for name in ("ann", "bob"))


def holding(*tools: Any, **options: Any) -> Any:
    """A gateway that holds results, over a server whose tool ``it`` answers with what steers a model."""
    return listing(*(tools or (entry("it"),)), settings=config("hold", **options.pop("shapes", {})), **options)


async def held(gateway: Gateway, caller: Caller = ANN, arguments: Any = None) -> str:
    """Call the tool; the id of its result, which is held."""
    before = {each.id for each in gateway.held_results.waiting()}
    shown = await call(gateway, "hub__it", arguments or {}, caller)
    assert code(shown) == "result_held"
    assert POISON not in json.dumps(shown)
    (made,) = {each.id for each in gateway.held_results.waiting()} - before
    assert made in text(shown)
    return made


async def test_a_released_result_comes_by_the_same_call_which_is_not_sent_again() -> None:
    async with holding() as (gateway, server):
        server.has["it"] = of_text(POISON)
        held_id = await held(gateway)
        again = await call(gateway, "hub__it", {}, ANN)
        assert (code(again), held_id in text(again)) == ("result_held", True)

        await gateway.held_results.act("release", held_id, "op")
        released = await call(gateway, "callToolDestructive", {"name": "hub__it", "arguments": {}}, ANN)
        assert text(released) == POISON
        assert len(server.called) == 1
        await held(gateway)  # it is given once: a later call is sent
        assert len(server.called) == 2


async def test_asking_for_a_held_result_again_and_again_is_no_call_repeated_in_vain() -> None:
    section = {"servers": {"hub": {"results": "hold"}}, "limits": {"repeats": 2}}
    settings = read_gateway_config({"mcpServers": {"hub": {"command": "none"}}, "toolsearch": section}, {})
    async with listing(entry("it"), settings=settings) as (gateway, server):
        server.has["it"] = of_text(POISON)
        held_id = await held(gateway)
        for _ in range(3):
            assert code(await call(gateway, "hub__it", {}, ANN)) == "result_held"
        await gateway.held_results.act("release", held_id, "op")
        assert text(await call(gateway, "hub__it", {}, ANN)) == POISON


async def test_a_discarded_result_is_told_once_and_never_passed_on() -> None:
    async with holding() as (gateway, server):
        server.has["it"] = of_text(POISON)
        held_id = await held(gateway)
        await gateway.held_results.act("discard", held_id, "op")
        told = await call(gateway, "hub__it", {}, ANN)
        assert (code(told), held_id in text(told), POISON in text(told)) == ("result_held", True, False)
        assert len(server.called) == 1


async def test_an_operator_reads_the_whole_result_with_hidden_characters_written_out() -> None:
    async with holding() as (gateway, server):
        server.has["it"] = of_text(f"{POISON}\u202e")
        held_id = await held(gateway)
        (waiting,) = gateway.held_results.waiting()
        shown = waiting.shown()
        assert (shown["id"], shown["principal"], shown["server"], shown["name"]) == (held_id, "ann", "hub", "it")
        assert POISON not in json.dumps(shown)
        seen = str((await gateway.held_results.act("show", held_id, "op"))["text"])
        assert POISON in seen
        assert "\\u{202e}" in seen
        assert gateway.status().held_results == (held_id,)


def of_issuer(issuer: str) -> Caller:
    claims = Claims("7", (), 0, {"iss": issuer})
    return Caller(Grant(Principal("jwt:7"), claims=claims), Era.MODERN)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ANN, BOB),
        (
            Caller(Grant(Principal("ann"), session="1"), Era.MODERN),
            Caller(Grant(Principal("ann"), session="2"), Era.MODERN),
        ),
        (Caller(LEGACY.grant, Era.LEGACY, connection="1"), LEGACY),
        (of_issuer("https://a.example"), of_issuer("https://b.example")),
    ],
)
async def test_nobody_else_gets_a_released_result(one: Caller, other: Caller) -> None:
    async with holding() as (gateway, server):
        server.has["it"] = of_text(POISON)
        held_id = await held(gateway, one)
        await gateway.held_results.act("release", held_id, "op")
        await held(gateway, other)
        assert len(server.called) == 2
        assert text(await call(gateway, "hub__it", {}, one)) == POISON


async def test_a_client_over_stdio_that_has_connected_anew_gets_it() -> None:
    before, after = (Caller(LEGACY.grant, era, connection=era.value) for era in (Era.LEGACY, Era.MODERN))
    async with holding() as (gateway, server):
        server.has["it"] = of_text(POISON)
        held_id = await held(gateway, before)
        assert held_id in text(await call(gateway, "hub__it", {}, after))
        await gateway.held_results.act("release", held_id, "op")
        assert text(await call(gateway, "hub__it", {}, after)) == POISON
        assert len(server.called) == 1


async def test_a_task_of_a_client_over_stdio_that_has_left_does_not_take_it() -> None:
    before, after = (Caller(MODERN.grant, Era.MODERN, connection=name, capabilities=TASKS) for name in ("1", "2"))
    async with holding() as (gateway, server):
        server.has["it"] = of_text(POISON)
        assert (await call(gateway, "hub__it", {}, before))["resultType"] == "task"
        (waiting,) = gateway.held_results.waiting()
        gateway.tasks.left("2")
        assert [task.status for task in gateway.tasks.of(before)] == [TaskStatus.WORKING]
        gateway.tasks.left("1")
        await asyncio.sleep(0)
        await gateway.held_results.act("release", waiting.id, "op")
        assert text(await call(gateway, "hub__it", {}, after)) == POISON
        assert len(server.called) == 1


async def test_another_call_does_not_get_it() -> None:
    async with holding(entry("it"), entry("more")) as (gateway, server):
        server.has |= {"it": of_text(POISON), "more": of_text("harmless")}
        await gateway.held_results.act("release", await held(gateway, arguments={"a": 1}), "op")
        await held(gateway, arguments={"a": 2})
        assert text(await call(gateway, "hub__more", {"a": 1}, ANN)) == "harmless"
        assert text(await call(gateway, "hub__it", {"a": 1}, ANN)) == POISON


async def test_what_is_out_of_reach_by_then_is_not_given() -> None:
    async with holding() as (gateway, server):
        server.has["it"] = of_text(POISON)
        await gateway.held_results.act("release", await held(gateway), "op")
        await gateway.reconfigure(config("hold", rules={"deny": ["hub__it"]}))
        with pytest.raises(MCPError, match="Unknown tool"):
            await call(gateway, "hub__it", {}, ANN)


async def test_a_definition_that_changes_before_the_result_is_given_is_looked_at_again() -> None:
    """Between the checks of a call and its sending, a listing may come in which the tool is another one."""
    async with holding() as (gateway, server):
        server.has["it"] = of_text(POISON)
        await gateway.held_results.act("release", await held(gateway), "op")

        async def before() -> None:
            await server.lists("other")

        gateway.relay._before = before
        shown = await call(gateway, "callToolDestructive", {"name": "hub__it", "arguments": {}}, ANN)
        assert POISON not in json.dumps(shown)


async def test_an_error_of_the_protocol_is_released_as_the_error_that_it_was() -> None:
    async with holding() as (gateway, server):

        async def fail(_: Any) -> Any:
            raise MCPError(-32000, POISON)

        server.request = fail
        await gateway.held_results.act("release", await held(gateway), "op")
        with pytest.raises(MCPError) as refused:
            await call(gateway, "hub__it", {}, ANN)
        assert (refused.value.code, refused.value.message) == (-32000, POISON)


async def test_a_resource_is_released_too() -> None:
    async with holding() as (gateway, server):
        await server.lists("it", resources=({"uri": "a://b", "name": "b"},))
        server.has["a://b"] = {"contents": [{"uri": "a://b", "text": POISON}]}
        by_tool = await call(gateway, "callToolRead", {"name": "hub__b", "arguments": {}}, ANN)
        (waiting,) = gateway.held_results.waiting()
        assert (code(by_tool), waiting.name) == ("result_held", "a://b")
        await gateway.held_results.act("release", waiting.id, "op")
        read = await gateway.read_resource(ANN, {"uri": "a://b"}, Nobody())
        assert read["contents"][0]["text"] == POISON


async def test_a_skill_is_withheld_and_not_kept_since_its_reader_verifies_its_bytes() -> None:
    texts = {REFUND: refund_text(body=POISON)}
    async with holding() as (gateway, server):
        server.has |= given(texts)
        await server.lists("it", skills=(entry_of(texts),))
        read = await call(gateway, "readSkill", {"name": "hub__refunds"}, ANN)
        assert (code(read), POISON in json.dumps(read)) == ("result_held", False)
        assert gateway.held_results.waiting() == []


async def test_a_part_is_cut_out_before_it_is_held_and_the_rest_is_never_released() -> None:
    async with holding(shapes={"it": {"result": {"pick": ["/a"]}}}) as (gateway, server):
        server.has["it"] = {"content": [], "structuredContent": {"a": POISON, "b": "of others"}}
        held_id = await held(gateway)
        assert "of others" not in str((await gateway.held_results.act("show", held_id, "op"))["text"])
        await gateway.held_results.act("release", held_id, "op")
        assert "of others" not in json.dumps(await call(gateway, "hub__it", {}, ANN))


class Follower(Nobody):
    """A client that follows tasks: the call becomes one."""

    def __init__(self) -> None:
        self.follows = asyncio.Event()

    def as_task(self) -> Any:
        self.follows.set()
        return self


async def test_a_client_that_follows_tasks_waits_for_the_decision() -> None:
    async with holding() as (gateway, server):
        server.has["it"] = of_text(POISON)
        client = Follower()
        made = asyncio.create_task(gateway.call(ANN, {"name": "hub__it", "arguments": {}}, client))
        await client.follows.wait()
        waiting = gateway.held_results.waiting()
        assert not made.done()
        await gateway.held_results.act("release", waiting[0].id, "op")
        assert text(await made) == POISON
        assert gateway.held_results.waiting() == []


async def test_results_of_a_removed_server_are_not_those_of_the_next_one_with_its_name() -> None:
    async with holding() as (gateway, server):
        server.has["it"] = of_text(POISON)
        held_id = await held(gateway)
        await gateway.held_results.act("release", held_id, "op")
        client = Follower()
        waits = asyncio.create_task(gateway.call(BOB, {"name": "hub__it", "arguments": {}}, client))
        await client.follows.wait()

        await gateway.servers.remove("hub")
        assert gateway.held_results.waiting() == []
        assert "discarded" in text(await asyncio.wait_for(waits, 10))
        params = {"name": "it", "arguments": {}}
        assert gateway.held_results.of_request(ANN, "hub", "tools/call", params) is None


async def test_a_decision_is_made_once_and_only_about_what_is_kept(clock: Clock) -> None:
    async with holding(clock=clock) as (gateway, server):
        server.has["it"] = of_text(POISON)
        held_id = await held(gateway)
        await gateway.held_results.act("discard", held_id, "op")
        with pytest.raises(ConflictError):
            await gateway.held_results.act("release", held_id, "op")
        with pytest.raises(UnknownRecordError):
            await gateway.held_results.act("release", "nothing", "op")


async def test_what_nobody_decides_about_or_fetches_is_forgotten_after_an_hour(clock: Clock) -> None:
    async with holding(clock=clock) as (gateway, server):
        server.has["it"] = of_text(POISON)
        first = await held(gateway)
        clock.now_s += KEPT_S - 1
        await gateway.held_results.act("release", first, "op")
        clock.now_s += KEPT_S - 1
        assert text(await call(gateway, "hub__it", {}, ANN)) == POISON  # released results have their own hour
        await held(gateway)
        clock.now_s += KEPT_S
        assert gateway.held_results.waiting() == []
        await held(gateway)
        assert len(server.called) == 3


async def test_of_one_caller_only_so_many_are_kept_and_others_still_have_room() -> None:
    async with holding() as (gateway, server):
        server.has["it"] = of_text(POISON)
        for number in range(MAX_HELD):
            await held(gateway, arguments={"n": number})
        shown = await call(gateway, "hub__it", {"n": MAX_HELD}, ANN)
        assert (code(shown), "no room" in text(shown)) == ("result_held", True)
        assert POISON not in json.dumps(shown)
        await held(gateway, BOB)
        assert len(gateway.held_results.waiting()) == MAX_HELD + 1


@pytest.mark.parametrize(("bound", "value"), [("MAX_HELD_IN_ALL", 1), ("MAX_CHARACTERS", 400)])
async def test_all_callers_together_are_bounded_in_number_and_size(
    bound: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_results, bound, value)
    async with holding() as (gateway, server):
        server.has["it"] = of_text(POISON)
        await held(gateway)
        shown = await call(gateway, "hub__it", {}, BOB)
        assert ("no room" in text(shown), POISON in text(shown)) == (True, False)


async def test_each_step_is_in_the_audit_and_none_is_made_without_its_record() -> None:
    noted: list[tuple[str, str, str, str]] = []
    is_full = False

    async def note(who: str, action: str, subject: str, *, server: str = "") -> None:
        if is_full:
            raise StorageError("full")
        noted.append((who, action, subject, server))

    kept = HeldResults(note)
    params = {"name": "it", "arguments": {}}
    one = await kept.hold(ANN, "hub", "tools/call", params, of_text(POISON), ["rule"])
    await kept.act("show", one.id, "op")
    await kept.act("release", one.id, "op")
    assert noted == [
        (who, f"{action} result", f"it {one.id}", "hub")
        for who, action in (("ann", "hold"), ("op", "show"), ("op", "release"))
    ]
    two = await kept.hold(BOB, "hub", "tools/call", params, of_text(POISON), ["rule"])
    is_full = True
    for action in ("show", "release", "discard"):
        with pytest.raises(StorageError):
            await kept.act(action, two.id, "op")  # type: ignore[arg-type]
    with pytest.raises(StorageError):
        await kept.hold(LEGACY, "hub", "tools/call", params, of_text(POISON), ["rule"])
    assert [each.id for each in kept.waiting()] == [two.id]


async def test_what_finds_no_room_is_not_in_the_audit_and_no_record_in_the_making_lets_more_in() -> None:
    noted: list[str] = []
    writes = asyncio.Event()

    async def note(who: str, *_: str, server: str = "") -> None:
        await writes.wait()
        noted.append(f"{who} at {server}")

    kept = HeldResults(note)
    made = [
        asyncio.create_task(kept.hold(ANN, "hub", "tools/call", {"name": f"it{number}"}, of_text(POISON), ["rule"]))
        for number in range(MAX_HELD + 2)
    ]
    writes.set()
    results = await asyncio.gather(*made, return_exceptions=True)
    assert sum(isinstance(each, Exception) for each in results) == 2
    assert noted == ["ann at hub"] * MAX_HELD


async def test_of_two_operators_at_once_one_decides() -> None:
    async def note(*_: Any, **__: Any) -> None:
        await asyncio.sleep(0)

    kept = HeldResults(note)
    one = await kept.hold(MODERN, "hub", "tools/call", {"name": "it"}, of_text(POISON), ["rule"])
    done = await asyncio.gather(
        *(kept.act(action, one.id, "op") for action in ("release", "discard")), return_exceptions=True
    )
    assert [isinstance(each, ConflictError) for each in done] == [False, True]
    assert await kept.outcome_of(one, Nobody()) == of_text(POISON)  # type: ignore[arg-type]
