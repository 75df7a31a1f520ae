"""What the gateway counts, and the page that shows it."""

import asyncio
import json
import re
import sqlite3
from contextlib import closing
from dataclasses import asdict

import httpx2
import pytest
from mcp import Client

from tests.kit.clock import Clock
from tests.kit.fake_servers import EXPANDING, gateway_of, search
from tests.kit.gateway import raw_server, served
from toolsearch.access.principals import LOCAL, Grant, Principal
from toolsearch.cli.gateway import costs_in_words
from toolsearch.gateway.caller import Caller
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.status import CallEnd, Ledger, WireCosts, status_json
from toolsearch.gateway.trust.gate import PinStore
from toolsearch.gateway.trust.verdicts import ReviewReason
from toolsearch.tokens import HeuristicTokenCounter, definition_tokens
from toolsearch.wire.mcp.eras import Era


@pytest.fixture
def clock() -> Clock:
    return Clock(1_000.0)


def legacy(key: str, principal: Principal = LOCAL) -> Caller:
    return Caller(Grant(principal), Era.LEGACY, session_key=key, client_name="claude-code")


MODERN = Caller(Grant(LOCAL), Era.MODERN, client_name="inspector")
DONE, FAILED = CallEnd("t", None), CallEnd("t", None, code="tool_failed")


def test_what_is_shown_is_counted_beside_what_all_tools_had_cost(clock):
    """A list that is asked for anew because of a search would not have been asked for with every tool in it."""
    ledger = Ledger(clock)
    assert ledger.listed(legacy("a"), tools=4, shown_tokens=400)
    assert ledger.all_tools_tokens is None
    ledger.counted(9_000)
    for changed in (True, False):
        ledger.searched(
            legacy("a"),
            "open a file",
            ["fs__open"],
            seconds=0.0125,
            written_tokens=5,
            answer_tokens=50,
            list_changed=changed,
        )
    assert not ledger.listed(legacy("a"), tools=5, shown_tokens=450)
    assert ledger.listed(legacy("a"), tools=5, shown_tokens=450)
    ledger.counted(9_000)

    assert (ledger.lists, ledger.searches, ledger.written_tokens) == (3, 2, 10)
    assert (ledger.shown_tokens, ledger.all_tools_tokens) == (1_400, 18_000)
    latest, _ = ledger.last_searches
    assert (latest.query, latest.found, latest.milliseconds) == ("open a file", ("fs__open",), 12.5)


def test_sessions_are_told_apart_by_principal_and_key_and_clients_of_2026_by_name(clock):
    ledger = Ledger(clock)
    ann = Principal("ann")
    ledger.called(legacy("a"), DONE)
    ledger.called(legacy("a", ann), FAILED)
    ledger.called(MODERN, DONE)
    clock.now_s += 5
    ledger.called(MODERN, DONE)

    rows = [(row.principal, row.client, row.era, row.calls, row.idle_s) for row in ledger.sessions]
    assert rows == [
        ("local", "inspector", "modern", 2, 0.0),
        ("ann", "claude-code", "legacy", 1, 5.0),
        ("local", "claude-code", "legacy", 1, 5.0),
    ]
    assert (ledger.calls, ledger.failed_calls) == (4, 1)


def test_what_is_remembered_is_bounded(clock):
    ledger = Ledger(clock)
    for number in range(1_200):
        ledger.searched(legacy(str(number)), f"{number} " + "x" * 500, [], seconds=0, written_tokens=0, answer_tokens=0)

    assert len(ledger.sessions) == 1_000
    assert len(ledger.last_searches) == 50
    assert ledger.last_searches[0].query.startswith("1199 ")
    assert len(ledger.last_searches[0].query) == 200


def test_a_session_is_forgotten_after_half_an_hour(clock):
    ledger = Ledger(clock)
    ledger.called(legacy("old"), DONE)
    clock.now_s += 1_799
    assert len(ledger.sessions) == 1
    clock.now_s += 1
    assert ledger.sessions == ()


def test_a_list_costs_what_definitions_are_counted_by_and_nothing_else():
    costs = WireCosts(HeuristicTokenCounter())
    entry = {"name": "add", "description": "Adds.", "inputSchema": {"type": "object"}}
    counted = HeuristicTokenCounter().count('{"name":"add","description":"Adds.","input_schema":{"type":"object"}}')

    assert costs.of_list([entry, {**entry, "annotations": {"readOnlyHint": True}}]) == 2 * counted


async def test_what_a_list_saves_is_not_told_before_it_is_known_how_many_tools_there_are(clock):
    """A server that is still starting when the list is handed out counts once it has listed."""
    async with gateway_of("slow", clock=clock) as (gateway, servers):
        clock.now_s += 60  # nobody waits any longer
        await gateway.list_tools(EXPANDING)
        status = gateway.status()
        assert (status.lists, status.shown_tokens > 0, status.all_tools_tokens) == (1, True, None)
        assert json.loads(status_json(status))["all_tools_tokens"] is None
        assert "not known while" in costs_in_words(asdict(status))

        await servers["slow"].lists("read", "write")
        assert (await search(gateway, EXPANDING, "select:slow__read")).list_changed
        while gateway.status().all_tools_tokens is None:  # noqa: ASYNC110  the count sets no event
            await asyncio.sleep(0)
        everything = sum(
            definition_tokens(each, gateway.engine.counter) for each in gateway.engine.view(LOCAL.reach).definitions
        )
        assert gateway.status().all_tools_tokens == everything
        await gateway.list_tools(EXPANDING)  # asked for anew, since the search has changed it
        assert gateway.status().all_tools_tokens == everything
        assert f"would have taken {everything:,}." in costs_in_words(asdict(gateway.status()))


@pytest.mark.usefixtures("processes")
async def test_the_page_tells_what_a_client_did(tmp_path):
    config = {"mcpServers": {"raw": raw_server()}, "toolsearch": {"stateDir": str(tmp_path)}}
    async with served(config) as (_, url), Client(url, mode="legacy") as client, httpx2.AsyncClient() as browser:
        await client.list_tools()
        await client.call_tool("toolSearchTool", {"query": "select:raw__pid"})
        await client.call_tool("callToolRead", {"name": "raw__fail"})
        status = (await browser.get(url.removesuffix("/mcp") + "/status.json")).json()

    (server,) = status["servers"]
    assert (server["upstream"]["name"], server["upstream"]["state"], server["tools"]) == ("raw", "ready", 9)
    assert (status["search_count"], status["calls"], status["failed_calls"]) == (1, 1, 1)
    assert [search["found"] for search in status["searches"]] == [["raw__pid"]]
    assert [(session["searches"], session["calls"]) for session in status["sessions"]] == [(1, 1)]
    assert status["all_tools_tokens"] >= server["tokens"] > 0
    assert status["tokens_are_estimate"] is False


@pytest.mark.usefixtures("processes")
async def test_the_page_loads_and_runs_nothing_but_its_own(tmp_path):
    config = {"mcpServers": {"raw": raw_server()}, "toolsearch": {"stateDir": str(tmp_path)}}
    async with served(config) as (_, url), httpx2.AsyncClient() as browser:
        answer = await browser.get(url.removesuffix("/mcp") + "/")

    policy = dict(rule.split(" ", 1) for rule in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"].startswith("'sha256-")
    assert "unsafe" not in json.dumps(policy)
    assert re.findall(r"(?:src|href)=", answer.text) == []
    assert "innerHTML" not in answer.text


@pytest.mark.usefixtures("processes")
async def test_an_approval_by_another_process_is_followed(tmp_path):
    config = read_gateway_config(
        {
            "mcpServers": {"raw": raw_server()},
            "toolsearch": {"stateDir": str(tmp_path), "trust": {"firstSeen": "quarantine"}},
        },
        {},
    )
    told = asyncio.Event()
    async with Gateway(config, trust_poll_s=0.001) as gateway:
        assert await gateway.list_tools(MODERN)
        assert gateway.status().servers[0].tools == 0
        gateway.registry.on_change(told.set)
        store = PinStore.of(config)
        pins = store.waiting("raw")
        assert store.approve("raw", "pid", pins["pid"].pin, "ann")
        await told.wait()
        store.close()

        assert [tool.name for tool in gateway.registry.servers["raw"].admitted] == ["raw__pid"]


@pytest.mark.usefixtures("processes")
async def test_a_gateway_that_runs_holds_everything_once_the_approvals_cannot_be_read(tmp_path):
    config = read_gateway_config({"mcpServers": {"raw": raw_server()}, "toolsearch": {"stateDir": str(tmp_path)}}, {})
    told = asyncio.Event()
    async with Gateway(config, trust_poll_s=0.001) as gateway:
        assert await gateway.list_tools(MODERN)
        assert gateway.registry.servers["raw"].admitted
        gateway.registry.on_change(told.set)
        with closing(sqlite3.connect(tmp_path / "trust.db")) as pins:
            pins.execute("DROP TABLE pins")
        await told.wait()

        assert gateway.registry.servers["raw"].admitted == ()
        assert {held.why for held in gateway.registry.servers["raw"].held} == {ReviewReason.UNREADABLE}
