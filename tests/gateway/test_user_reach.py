"""Servers that list other things to each user: what is of one user is nowhere to be met by another."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from mcp import Client, MCPError

from tests.kit.callers import caller_with
from tests.kit.clock import Clock
from tests.kit.fake_servers import FakeServer, Nobody, call, entry, search
from tests.kit.fake_servers import names as all_names
from toolsearch.access.principals import LOCAL, Grant, Principal
from toolsearch.access.reach import Reach
from toolsearch.errors import CallDeniedError, ServerUnavailableError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.proxy.addresses import Address, wrap
from toolsearch.gateway.server import make_server
from toolsearch.gateway.trust.verdicts import OpenGate
from toolsearch.upstreams import per_user
from toolsearch.upstreams.interface import UpstreamRequest, UpstreamSinks, UpstreamStatus
from toolsearch.upstreams.settings import UpstreamSettings
from toolsearch.upstreams.user_login import owner_of
from toolsearch.wire.mcp.eras import Era

OPEN = OpenGate()
ALICE, BOB = caller_with("alice"), caller_with("bob")
LISTED: dict[str, list[Any]] = {
    "alice": ["common", "hers", entry("pay", title="as judged")],
    "bob": ["common", "his", entry("pay", title="otherwise")],
}
CONTENTS: dict[str, dict[str, Any]] = {
    user: {
        "resources": (
            {"uri": f"file:///{user}.txt", "name": f"{user}.txt"},
            {"uri": f"odd:///{user}.txt", "name": f"{user}.odd", "uriTemplate": "no entry for a catalog"},
        ),
        "prompts": ({"name": f"{user}-prompt"}, {"name": f"{user}-odd", "arguments": [{"name": "a"}, {"name": "a"}]}),
        "instructions": f"projects of {user}",
    }
    for user in LISTED
}


class UserServer(FakeServer):
    """Lists each user something else as soon as it is connected."""

    made: list["UserServer"]

    def __init__(self, settings: UpstreamSettings, sinks: UpstreamSinks) -> None:
        super().__init__(settings, sinks)
        self.user = settings.server.headers["X-User"]
        self.is_closed = False
        self.made.append(self)

    def start(self) -> None:
        self.listing = asyncio.get_running_loop().create_task(
            self.lists(*LISTED.get(self.user, ()), **CONTENTS.get(self.user, {}))
        )

    async def request(self, request: UpstreamRequest) -> dict[str, Any]:
        await self.listing
        return await super().request(request)

    def status(self) -> UpstreamStatus:
        return replace(super().status(), starts=1)

    async def aclose(self) -> None:
        self.is_closed = True


@asynccontextmanager
async def gateway(gate: Any = OPEN, **section: Any) -> AsyncIterator[tuple[Gateway, list[UserServer]]]:
    server = {"url": "http://x.example/mcp", "headers": {"X-User": "${claim:sub}"}}
    config = {"mcpServers": {"s": server}, "toolsearch": {"passThrough": {"maxTools": 100}, **section}}
    made: list[UserServer] = []
    kind = type("Made", (UserServer,), {"made": made})
    async with Gateway(read_gateway_config(config, {}), upstreams=kind, gate=gate) as running:
        yield running, made


async def names(running: Gateway, caller: Caller) -> list[str]:
    return [name for name in await all_names(running, caller) if name.startswith("s__")]


async def both(running: Gateway) -> None:
    for caller in (ALICE, BOB, ALICE):
        await names(running, caller)


async def test_each_is_listed_and_finds_only_what_its_own_account_is_listed_in_the_way_that_was_judged():
    async with gateway() as (running, _):
        await both(running)
        assert await names(running, ALICE) == ["s__common", "s__hers", "s__pay"]
        assert await names(running, BOB) == ["s__common", "s__his"]
        assert set((await search(running, BOB, "hers his pay common")).found) == {"s__common", "s__his"}
        status = running.status()
        assert "defines 'pay' in another way for 1 of its users" in status.servers[0].upstream.last_error


async def test_what_only_another_is_listed_cannot_be_called_and_is_as_if_it_were_not_there():
    async with gateway() as (running, made):
        await both(running)
        told = []
        for name in ("s__hers", "s__pay", "s__none"):
            with pytest.raises(MCPError) as refused:
                await call(running, name, {}, BOB)
            told.append(str(refused.value).replace(name, "NAME").partition(";")[0])
        assert len(set(told)) == 1
        assert running.surface.input_schema("s__hers", running.reach_of(BOB.grant)) is None
        assert running.surface.input_schema("s__hers", running.reach_of(ALICE.grant)) is not None
    assert [each.called for each in made] == [[], []]


async def test_contents_are_of_the_user_alone_to_whom_they_are_listed():
    async with gateway() as (running, made):
        await both(running)
        content = running.content
        for user, caller in (("alice", ALICE), ("bob", BOB)):
            seen = running.seen_by(caller)
            assert [each["name"] for each in content.resources(seen)] == [f"{user}.txt", f"{user}.odd"]
            assert [each["name"] for each in content.prompts(seen)] == [f"s__{user}-prompt", f"s__{user}-odd"]
            assert content.instructions(seen) == {}
        for kind in ("file", "odd"):
            with pytest.raises(MCPError, match="Resource not found"):
                await running.read_resource(BOB, {"uri": f"{kind}:///alice.txt"}, Nobody())
        for kind in ("prompt", "odd"):
            with pytest.raises(MCPError, match="Unknown prompt"):
                await content.get_prompt(running.seen_by(BOB), {"name": f"s__alice-{kind}"}, Nobody())
        await running.read_resource(ALICE, {"uri": "file:///alice.txt"}, Nobody())
    assert {each.user: each.called for each in made} == {"alice": [("file:///alice.txt", None)], "bob": []}


async def test_a_prompt_of_one_user_is_hidden_from_others_even_where_they_have_a_tool_of_its_name(monkeypatch):
    hers = {**CONTENTS["alice"], "prompts": ({"name": "common"},)}
    monkeypatch.setitem(CONTENTS, "alice", hers)
    async with gateway() as (running, _):
        await both(running)
        shown = {who: running.content.prompts(running.seen_by(each)) for who, each in (("a", ALICE), ("b", BOB))}
        assert [each["name"] for each in shown["a"]] == ["s__common"]
        assert "s__common" not in [each["name"] for each in shown["b"]]
        with pytest.raises(MCPError, match="Unknown prompt"):
            await running.content.get_prompt(running.seen_by(BOB), {"name": "s__common"}, Nobody())


async def test_calls_go_over_the_callers_own_connection():
    async with gateway() as (running, made):
        await both(running)
        await asyncio.gather(*(call(running, "s__common", {"n": n}, (ALICE, BOB)[n % 2]) for n in range(10)))
    assert {each.user: sorted(given["n"] for _, given in each.called) for each in made} == {
        "alice": [0, 2, 4, 6, 8],
        "bob": [1, 3, 5, 7, 9],
    }


async def test_a_definition_that_becomes_another_right_before_a_call_is_not_called():
    async with gateway() as (running, made):
        await both(running)
        his = next(each for each in made if each.user == "bob")
        his.lists_first = (entry("common", title="changed for him"), entry("his"))
        with pytest.raises(MCPError, match="Unknown tool"):
            await call(running, "s__common", {}, BOB)
        assert his.called == []
        assert not (await call(running, "s__common", {}, ALICE)).get("isError")


async def test_what_no_list_names_is_not_read_once_the_server_lists_its_user_nothing_right_before():
    async with gateway() as (running, made):
        await both(running)
        his, unlisted = next(each for each in made if each.user == "bob"), wrap(Address("s", "other:///unlisted"))
        his.lists_first = (entry("pay", title="yet another"),)
        with pytest.raises(MCPError, match="Resource not found"):
            await running.read_resource(BOB, {"uri": unlisted}, Nobody())
        assert his.called == []
        await running.read_resource(ALICE, {"uri": unlisted}, Nobody())


async def test_the_connection_itself_sends_no_call_of_what_is_defined_otherwise_for_its_user():
    async with gateway() as (running, made):
        await both(running)
        for name in ("pay", "hers", "none"):
            with pytest.raises(CallDeniedError, match=f"does not list '{name}' to this user"):
                await running.relay.send(BOB, "s", "tools/call", {"name": name}, Nobody(), lambda: None)
        await running.relay.send(ALICE, "s", "tools/call", {"name": "pay"}, Nobody(), lambda: None)
    assert [[name for name, _ in each.called] for each in made] == [["pay"], []]


async def test_one_user_with_other_claims_has_another_connection():
    async with gateway() as (running, made):
        await names(running, ALICE)
        assert await names(running, caller_with("alice", sub="bob")) == ["s__common", "s__his"]
        await call(running, "s__hers", {}, ALICE)
    assert [(each.user, len(each.called)) for each in made] == [("alice", 1), ("bob", 0)]


async def test_two_principals_with_the_same_claims_have_a_connection_each():
    async with gateway() as (running, made):
        for caller in (ALICE, caller_with("eve", sub="alice")):
            assert await names(running, caller) == ["s__common", "s__hers", "s__pay"]
    assert [each.user for each in made] == ["alice", "alice"]


async def test_tokens_of_other_scopes_are_exchanged_for_another_connection():
    async with gateway() as (running, _):
        exchanged = replace(running.per_user["s"]._settings, credentials="exchange")
        reads, writes = (caller_with("alice", scopes=(each,)).grant for each in ("read", "write"))
        assert owner_of(reads, exchanged) != owner_of(writes, exchanged)


async def test_what_a_principal_may_not_reach_stays_so_where_its_account_is_listed_it():
    denied = replace(BOB, grant=replace(BOB.grant, principal=Principal("bob", Reach.parse(deny=["s__common"]))))
    async with gateway() as (running, made):
        assert await names(running, denied) == ["s__his", "s__pay"]
        with pytest.raises(MCPError, match="Unknown tool"):
            await call(running, "s__common", {}, denied)
    assert [each.called for each in made] == [[]]


async def test_a_user_sees_more_or_less_as_its_list_changes_and_others_do_not():
    async with gateway() as (running, made):
        await both(running)
        his = next(each for each in made if each.user == "bob")
        await his.lists("his", "new", "hers")
        assert await names(running, BOB) == ["s__hers", "s__his", "s__new"]
        assert await names(running, ALICE) == ["s__common", "s__hers", "s__pay"]


async def test_nothing_is_sent_for_who_has_no_such_claim_or_one_that_no_header_can_hold():
    nobody = Caller(Grant(LOCAL), Era.MODERN)
    injecting = caller_with("eve")
    injecting.grant.claims.values["sub"] = "alice\r\nX-Admin: yes"  # type: ignore[index,union-attr]
    async with gateway() as (running, made):
        await both(running)
        for caller in (nobody, injecting):
            assert await names(running, caller) == []
            with pytest.raises(MCPError, match="Unknown tool"):
                await call(running, "s__common", {}, caller)
            with pytest.raises(CallDeniedError, match="the claim 'sub'"):
                await running.relay.send(caller, "s", "tools/call", {"name": "common"}, Nobody(), lambda: None)
    assert sorted(each.user for each in made) == ["alice", "bob"]


async def test_a_request_of_nobody_is_not_sent():
    async with gateway() as (running, _):
        await both(running)
        assert not hasattr(running.upstreams["s"], "request")  # only the connection of somebody has that


async def test_a_change_of_a_resource_is_told_to_the_sessions_of_the_user_who_is_told_it():
    told: list[str] = []

    def telling(user: str) -> Any:
        async def tell() -> None:
            told.append(user)

        return tell

    async with gateway() as (running, made):
        await both(running)
        shared = Address("s", "any://thing")
        for user, caller in (("alice", ALICE), ("bob", BOB)):
            await running.subscriptions.subscribe(caller.grant, shared, user, telling(user))
        by_user = {each.user: each for each in made}
        assert [[name for name, _ in each.called] for each in made] == [["any://thing"], ["any://thing"]]
        for user in ("bob", "alice"):
            told.clear()
            by_user[user]._sinks.updated("s", "any://thing", "")
            await asyncio.gather(*running.subscriptions._chores._tasks)
            assert told == [user]
        await running.subscriptions.unsubscribe(ALICE.grant, shared, "alice")
        assert [name for name, _ in by_user["bob"].called] == ["any://thing"]


async def test_streams_of_one_user_with_other_claims_are_told_of_their_own_lists():
    asking = [ALICE]
    async with gateway() as (running, made):
        await both(running)
        server = make_server(running, who=lambda _: asking[0])
        async with (
            Client(server, mode="2026-07-28") as client,
            asyncio.timeout(20),
            client.listen(tools_list_changed=True),
        ):
            asking[0] = caller_with("alice", sub="bob")
            await names(running, asking[0])
            async with client.listen(tools_list_changed=True) as stream:
                await made[-1].lists("common", "his", "new")
                heard = await anext(stream)
    assert (made[-1].user, type(heard).__name__) == ("bob", "ToolsListChanged")


async def test_the_state_of_a_suspended_call_of_one_user_is_none_of_another():
    asks = {"resultType": "input_required", "inputRequests": {}, "requestState": "hers"}
    async with gateway() as (running, made):
        await both(running)
        for each in made:
            each.is_modern = True
            each.has = {"common": asks}
        params = {"name": "s__common", "arguments": {}}
        given = await running.call(ALICE, params, Nobody())
        brought = {**params, "requestState": given["requestState"]}
        await running.call(ALICE, brought, Nobody())
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await running.call(BOB, brought, Nobody())


async def test_a_task_of_one_user_is_unknown_to_another_and_asked_about_over_the_users_own_connection():
    knows = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    alice, bob = (replace(each, capabilities=knows) for each in (ALICE, BOB))
    asked: list[str] = []
    done = {"status": "completed", "result": {"content": []}}
    async with gateway() as (running, made):
        await both(running)

        def answering(server: UserServer) -> Any:
            async def request(request: UpstreamRequest) -> dict[str, Any]:
                asked.append(f"{server.user} {request.method}")
                task = {"resultType": "task", "taskId": "1", "status": "working", "pollIntervalMs": 1}
                return task | ({} if request.method == "tools/call" else done)

            return request

        for each in made:
            each.is_modern = True
            each.request = answering(each)  # type: ignore[method-assign]
        given = await running.call(alice, {"name": "s__common", "arguments": {}}, Following())
        with pytest.raises(MCPError, match="Task not found"):
            running.tasks.find(running.seen_by(bob), given["taskId"])
        assert running.tasks.of(running.seen_by(bob)) == []
        guest = replace(caller_with("alice", sub="bob"), capabilities=knows)
        assert "s__common" in await names(running, guest)
        with pytest.raises(MCPError, match="Task not found"):
            running.tasks.find(running.seen_by(guest), given["taskId"])
        task = running.tasks.find(running.seen_by(alice), given["taskId"])
        await asyncio.wait([task.run])
        assert task.detailed()["status"] == "completed"
    assert asked == ["alice tools/call", "alice tasks/get"]


class Following(Nobody):
    """A client that follows tasks itself."""

    capabilities = MappingProxyType({"extensions": {"io.modelcontextprotocol/tasks": {}}})


async def test_connections_that_nobody_uses_are_closed_and_those_of_subscribers_and_running_calls_are_not():
    clock = Clock()
    async with gateway() as (running, made):
        server = running.per_user["s"]
        server.clock = clock
        await both(running)
        await running.subscriptions.subscribe(BOB.grant, Address("s", "any://thing"), "bob", lambda: None)
        clock.now_s += per_user.IDLE_S + 1
        await server.close_idle()
        assert {each.user: each.is_closed for each in made} == {"alice": True, "bob": False}
        assert await names(running, ALICE) == ["s__common", "s__hers", "s__pay"]
        await call(running, "s__hers", {}, ALICE)
        assert [each.user for each in made] == ["alice", "bob", "alice"]


async def test_only_so_many_users_are_remembered_and_the_one_unused_for_the_longest_time_goes(monkeypatch):
    monkeypatch.setattr(per_user, "MOST_CONNECTIONS", 2)
    async with gateway() as (running, made):
        await both(running)
        await names(running, caller_with("carol"))
        assert sorted(each.login.account for each in running.per_user["s"]._connections.values()) == ["alice", "carol"]
        assert await names(running, BOB) == ["s__common", "s__his", "s__pay"]  # nobody is left who is listed another
        assert [each.user for each in made] == ["alice", "bob", "carol", "bob"]


async def test_a_connection_that_had_to_make_room_is_known_again_once_it_is_used_and_closed_at_the_end(monkeypatch):
    monkeypatch.setattr(per_user, "MOST_CONNECTIONS", 2)
    async with gateway() as (running, made):
        await both(running)
        server = running.per_user["s"]
        his = server.of(BOB.grant)  # as a request that waits for something has it
        await names(running, ALICE)
        await names(running, caller_with("carol"))
        assert his not in server._connections.values()
        await his.request(UpstreamRequest("tools/call", {"name": "common"}))
        assert server.of(BOB.grant) is his
    assert all(each.is_closed for each in made)


async def test_a_request_over_a_connection_that_had_to_make_room_goes_over_the_one_in_its_place(monkeypatch):
    monkeypatch.setattr(per_user, "MOST_CONNECTIONS", 2)
    async with gateway() as (running, made):
        await both(running)
        his = running.per_user["s"].of(BOB.grant)
        await names(running, ALICE)
        await names(running, caller_with("carol"))
        await names(running, BOB)
        await his.request(UpstreamRequest("resources/subscribe", {"uri": "any://thing"}))
        assert running.per_user["s"].of(BOB.grant)._subscribed == {"any://thing"}  # it is not closed for idleness
    assert [(each.user, len(each.called)) for each in made if each.user == "bob"] == [("bob", 0), ("bob", 1)]


async def test_a_server_is_asked_anew_for_a_resource_once_the_users_connection_was_made_anew():
    async with gateway() as (running, made):
        await both(running)
        shared = Address("s", "any://thing")

        async def tell() -> None: ...

        await running.subscriptions.subscribe(ALICE.grant, shared, "one", tell)
        await running.per_user["s"].of(ALICE.grant).log_out()
        await names(running, ALICE)
        await running.subscriptions.subscribe(ALICE.grant, shared, "two", tell)
        assert [[name for name, _ in each.called] for each in made if each.user == "alice"] == [["any://thing"]] * 2
        assert running.status().servers[0].upstream.starts == 3  # none is counted twice


async def test_a_server_that_is_removed_while_it_is_called_leaves_nothing_behind():
    async with gateway() as (running, made):
        await both(running)
        hers = running.per_user["s"].of(ALICE.grant)
        await running.servers.remove("s")
        assert all(each.is_closed for each in made)
        assert await names(running, ALICE) == []
        with pytest.raises(ServerUnavailableError, match="not there any more"):
            await hers.request(UpstreamRequest("tools/call", {"name": "common"}, downstream=Nobody()))
    assert len(made) == 2


def reached(running: Gateway, caller: Caller) -> frozenset[str]:
    """The names of the per-user server that *caller* may meet."""
    return dict(running.reach_of(caller.grant).only)["s"]


async def test_the_reach_of_each_has_the_names_of_what_it_is_listed_and_of_the_server_and_no_others():
    async with gateway() as (running, _):
        await both(running)
        hers, his = reached(running, ALICE), reached(running, BOB)
        assert hers >= {"s", "s__common", "s__hers", "s__pay", "s__alice-prompt", "s__alice-odd"}
        assert his >= {"s", "s__common", "s__his", "s__bob-prompt", "s__bob-odd"}
        assert not [name for name in his if "alice" in name or name in ("s__hers", "s__pay")]
        assert reached(running, caller_with("carol")) == set()


async def test_a_name_that_becomes_that_of_another_entry_is_not_reached_by_whom_that_is_not_listed(monkeypatch):
    monkeypatch.setitem(LISTED, "bob", [entry("a.b", title="his")])
    monkeypatch.setitem(LISTED, "alice", [entry("a_b", title="hers")])
    async with gateway() as (running, made):
        assert await names(running, BOB) == ["s__a_b"]
        await names(running, ALICE)
        (his,) = await names(running, BOB)
        await call(running, his, {}, BOB)
        assert [(each.user, each.called) for each in made] == [("bob", [("a.b", {})]), ("alice", [])]


async def test_a_tool_that_awaits_approval_is_known_to_those_alone_to_whom_it_is_listed(tmp_path):
    async with gateway(stateDir=str(tmp_path), trust={"firstSeen": "quarantine"}, gate=None) as (running, _):
        await both(running)
        held = {
            who: [tool.name for tool in running.registry.held_within(running.reach_of(caller.grant))]
            for who, caller in (("alice", ALICE), ("bob", BOB))
        }
    assert held == {
        "alice": ["s__alice-prompt", "s__alice_txt", "s__common", "s__hers", "s__pay"],
        "bob": ["s__bob-prompt", "s__bob_txt", "s__common", "s__his"],
    }


async def test_nobody_is_invited_to_log_in_to_a_server_that_rules_keep_from_them(tmp_path):
    section = {"servers": {"s": {"credentials": "per-user"}}, "stateDir": str(tmp_path)}
    config = {"mcpServers": {"s": {"url": "http://x.example/mcp"}}, "toolsearch": section}
    denied = replace(BOB, grant=replace(BOB.grant, principal=Principal("bob", Reach.parse(deny=["server:s"]))))
    async with Gateway(read_gateway_config(config, {}), gate=OpenGate()) as running:
        assert len(await running.user_reach.invitations(BOB)) == 1
        assert await running.user_reach.invitations(denied) == []
        assert await running.user_reach.unseen_of(BOB, "s__any") is not None
        assert await running.user_reach.unseen_of(denied, "s__any") is None


async def test_rules_hold_beside_what_is_listed():
    async with gateway(rules={"deny": ["s__common"]}) as (running, _):
        await both(running)
        assert await names(running, BOB) == ["s__his"]
