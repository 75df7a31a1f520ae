"""Callers that are bound to a session of the engine: what is found by MCP is there for all who use the session."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from tests.kit.fake_servers import OWN, FakeConnection, call, names, search, told
from toolsearch.access.principals import Grant, Principal
from toolsearch.access.reach import Reach
from toolsearch.discovery.pass_through import PassThrough
from toolsearch.engine import ToolSearch
from toolsearch.errors import UnknownSessionError
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.changes import ListChanges
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.settings import GatewayConfig, GatewaySettings
from toolsearch.sessions.options import SessionOptions
from toolsearch.tools.definition import Tool, ToolContext, ToolDefinition
from toolsearch.wire.mcp.eras import Era

TEAM = Principal("team")
LEGACY = Caller(Grant(TEAM, session="ses_1"), Era.LEGACY, session_key="connection", client_name="claude-code")
GROWING = replace(LEGACY, client_name="growing")
MODERN = Caller(Grant(TEAM, session="ses_1"), Era.MODERN)
ERAS = pytest.mark.parametrize("caller", [LEGACY, MODERN], ids=["legacy", "modern"])


class Yes:
    async def call(self, arguments: object, context: ToolContext) -> object:  # noqa: ARG002
        return context["session"]


TOOLS = [Tool(ToolDefinition(name, f"Does {name}."), Yes()) for name in ("invoices", "weather", "flights")]


@asynccontextmanager
async def running() -> AsyncIterator[tuple[ToolSearch, Gateway]]:
    options = SessionOptions(pass_through=PassThrough(max_tools=0))
    with ToolSearch(TOOLS, options=options) as engine:
        settings = GatewaySettings(exposure={"clients": {"growing": "expand"}})
        async with Gateway(GatewayConfig("here", (), settings), engine=engine) as gateway:
            yield engine, gateway


@ERAS
async def test_a_search_by_mcp_discovers_into_the_session(caller: Caller) -> None:
    async with running() as (engine, gateway):
        session = engine.session("ses_1", principal=TEAM)
        await search(gateway, caller, "weather")

        assert session.discovered == ["weather"]
        assert session.state.counters.searches == 1


async def test_a_list_that_grows_has_what_was_found_elsewhere() -> None:
    async with running() as (engine, gateway):
        engine.session("ses_1", principal=TEAM).search("select:invoices")

        assert await names(gateway, GROWING) == [*OWN, "invoices"]
        assert await names(gateway, MODERN) == OWN


@ERAS
async def test_the_pins_of_the_session_are_listed(caller: Caller) -> None:
    async with running() as (engine, gateway):
        engine.session("ses_1", principal=TEAM, pins=["flights"])

        assert await names(gateway, caller) == [*OWN, "flights"]


@ERAS
async def test_a_session_that_was_never_made_or_has_ended_is_not_made_anew(caller: Caller) -> None:
    async with running() as (engine, gateway):
        for what in (search(gateway, caller, "weather"), gateway.list_tools(caller)):
            with pytest.raises(UnknownSessionError):
                await what
        assert engine.sessions.ids() == []


@ERAS
async def test_the_session_of_another_principal_is_unknown(caller: Caller) -> None:
    async with running() as (engine, gateway):
        engine.session("ses_1", principal=Principal("others"))
        with pytest.raises(UnknownSessionError):
            await search(gateway, caller, "weather")


@ERAS
async def test_a_call_is_noted_in_the_session_and_told_whose_it_is(caller: Caller) -> None:
    async with running() as (engine, gateway):
        session = engine.session("ses_1", principal=TEAM)
        result = await call(gateway, "weather", {}, caller)

        assert result["content"][0]["text"] == "ses_1"
        assert session.state.counters.calls == 1


async def test_the_session_outlives_the_connection() -> None:
    async with running() as (engine, gateway):
        engine.session("ses_1", principal=TEAM)
        gateway.surface.forget(LEGACY)

        assert engine.sessions.ids() == ["ses_1"]


@pytest.mark.parametrize("caller", [GROWING, LEGACY, MODERN], ids=["growing", "legacy", "modern"])
async def test_neither_the_reach_of_the_session_nor_that_of_the_caller_is_left(caller: Caller) -> None:
    """What a wider key has found in the session stays, and is not listed for a narrower one."""
    narrow = replace(
        caller, grant=replace(caller.grant, principal=Principal("team", Reach.parse(["weather", "flights"])))
    )
    async with running() as (engine, gateway):
        session = engine.session("ses_1", principal=TEAM, reach=Reach.parse(["invoices", "weather"]))
        session.search("select:invoices")
        assert await names(gateway, narrow) == OWN

        for query in ("select:invoices", "select:flights", "select:weather"):
            await search(gateway, narrow, query)
        assert session.discovered == ["invoices", "weather"]
        assert await names(gateway, narrow) == ([*OWN, "weather"] if caller is GROWING else OWN)


@pytest.mark.parametrize(("exposure", "listed"), [("append", ["weather"]), ("fixed", []), ("auto", [])])
async def test_the_exposure_of_the_session_goes_before_the_table_of_clients(exposure: Any, listed: list[str]) -> None:
    async with running() as (engine, gateway):
        engine.session("ses_1", principal=TEAM, exposure=exposure)
        await search(gateway, LEGACY, "weather")

        assert await names(gateway, LEGACY) == [*OWN, *listed]


async def test_each_client_of_a_session_is_told_of_what_others_find_in_it() -> None:
    """By MCP or elsewhere; clients of other sessions are not told."""
    async with running() as (engine, gateway):
        for session in ("ses_1", "ses_2"):
            engine.session(session, principal=TEAM)
        changes = ListChanges(gateway)
        connections = {key: FakeConnection() for key in ("a", "b", "c")}
        callers = {
            key: replace(GROWING, session_key=key, grant=Grant(TEAM, session=session))
            for key, session in {"a": "ses_1", "b": "ses_1", "c": "ses_2"}.items()
        }
        for key, caller in callers.items():
            await changes.follow(connections[key], caller)  # type: ignore[arg-type]

        found = await search(gateway, callers["a"], "weather")
        assert found.list_changed
        await changes.session_changed(callers["a"])
        await told(changes)
        assert {key: each.told for key, each in connections.items()} == {"a": 1, "b": 1, "c": 0}

        engine.session("ses_1", principal=TEAM).search("invoices")
        gateway.session_changed("ses_1")
        await told(changes)
        assert {key: each.told for key, each in connections.items()} == {"a": 2, "b": 2, "c": 0}
