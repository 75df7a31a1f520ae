"""MCP servers that a catalog has as sources: connected, kept up, there after a restart, and gone when deleted."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.kit.changing_server import ADD, CHANGED, ChangingServer
from tests.kit.fake_servers import MODERN, Nobody
from tests.kit.pages import sign_in
from tests.kit.service import ServiceKit, serving
from tests.mcp_servers.rich_http import rich_over_http
from tests.mcp_servers.rich_server import Rich
from toolsearch.service.catalogs.imports.servers import Noting
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.storage.seal import Seal
from toolsearch.storage.sqlite.place import SqliteStorage

UPDATE = {**ADD, "name": "update"}
SOURCES = "/v1/catalogs/default/sources"
SERVERS = "/v1/catalogs/default/servers"
LOOPBACK = {"allowed_networks": ["127.0.0.0/8"]}


class Deaf(Nobody):
    """A client that takes no notice of anything."""

    async def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        raise AssertionError(method, params)

    async def tell(self, method: str, params: Mapping[str, Any]) -> None: ...


@asynccontextmanager
async def service(folder: Path, **sections: Any) -> AsyncIterator[tuple[ServiceKit, httpx2.AsyncClient]]:
    """A service that may reach servers of this machine, and a client of its operator, with a catalog ``default``."""
    async with serving(folder, **{"outbound": LOOPBACK, **sections}) as kit, kit.client(kit.operator) as client:
        await kit.catalog(kit.operator, tools=[])
        yield kit, client


async def added(client: httpx2.AsyncClient, body: dict[str, Any]) -> dict[str, Any]:
    """Add a source, and return the outcome of its job."""
    answer = await client.post(SOURCES, json=body)
    assert answer.status_code == 202, answer.text
    return await outcome(client, answer)


async def outcome(client: httpx2.AsyncClient, answer: httpx2.Response) -> dict[str, Any]:
    told = await client.get(f"/v1/jobs/{answer.json()['job']['id']}/events")
    ended: dict[str, Any] = json.loads(told.text.rpartition("event: ended\ndata: ")[2])
    return ended


async def tools(kit: ServiceKit) -> list[str]:
    async with kit.service.corpora.using(CorpusRef("default", "catalog", "default")) as corpus:
        await corpus.gateway.settled()
        return sorted(corpus.engine.catalog.names())


async def test_a_server_behind_a_url_is_connected_and_its_tools_are_found_and_called(tmp_path: Path) -> None:
    async with rich_over_http(Rich()) as url, service(tmp_path) as (kit, client):
        job = await added(client, {"kind": "mcp", "name": "rich", "url": url})
        assert (job["state"], job["outcome"]) == ("done", {"tools": 11, "held": 0, "refused": 0})

        (server,) = (await client.get(SERVERS)).json()["items"]
        assert (server["name"], server["state"], server["tools"]) == ("rich", "ready", 11)
        assert server["tokens"] > 100
        shown = (await client.get(f"{SOURCES}/rich")).json()
        assert (shown["state"], shown["tools"], shown["tokens"]) == ("ready", 11, server["tokens"])
        async with kit.service.corpora.using(CorpusRef("default", "catalog", "default")) as corpus:
            result = await corpus.gateway.call(MODERN, {"name": "rich__contents", "arguments": {}}, Deaf())
        assert result["content"][0]["text"] == "hello"


async def test_the_tools_of_a_server_that_is_down_are_there_at_once_after_a_restart(tmp_path: Path) -> None:
    async with rich_over_http(Rich()) as url, service(tmp_path) as (kit, client):
        await added(client, {"kind": "mcp", "name": "rich", "url": url})
        known = await tools(kit)
    assert len(known) == 11

    async with serving(tmp_path, outbound=LOOPBACK, seal=kit.service.seal) as kit:
        assert await tools(kit) == known
        async with kit.client(kit.key("default")) as client:
            (server,) = (await client.get(SERVERS)).json()["items"]
    assert (server["state"], server["tools"], server["error"]) == ("idle", 11, "")


async def test_a_catalog_has_the_same_number_of_tools_wherever_it_is_shown(tmp_path: Path) -> None:
    """The tools that can be found: those of the store, and those of its MCP servers. Also before it is in memory."""
    seal, counts = Seal.until_restart(), list[list[int]]()
    async with rich_over_http(Rich()) as url, service(tmp_path, seal=seal) as (kit, client):
        await client.post("/v1/catalogs/default/tools", json=[{"name": "one"}, {"name": "two"}, {"name": ""}])
        await added(client, {"kind": "mcp", "name": "rich", "url": url})
        counts.append(await shown_counts(kit))
    async with serving(tmp_path, seal=seal, outbound=LOOPBACK) as kit:
        kit.operator = kit.key("default")
        counts.append(await shown_counts(kit))
        found = len(await tools(kit))

    assert counts == [[found] * 5] * 2
    assert found > 2


async def shown_counts(kit: ServiceKit) -> list[int]:
    client, browser = kit.client(kit.operator), kit.client()
    await sign_in(browser, kit.operator)
    listed = [(await client.get("/v1/catalogs")).json()["items"][0]["tools"]]
    listed.append(int(re.findall(r'data-label="Tools">(\d+)<', (await browser.get("/pages/catalogs")).text)[0]))
    listed.append((await client.get("/v1/catalogs/default")).json()["tools"])
    pages = [await browser.get(path) for path in ("/pages/catalogs/default", "/pages/catalogs/default?q=one")]
    return listed + [int(re.findall(r"<dt>Tools</dt><dd>(\d+)<", page.text)[0]) for page in pages]


async def test_a_server_that_cannot_be_reached_is_a_source_that_says_so(tmp_path: Path) -> None:
    async with service(tmp_path, mcp_servers={"connect_timeout_s": 5}) as (_, client):
        job = await added(client, {"kind": "mcp", "name": "gone", "url": "http://127.0.0.1:9999/mcp"})
        assert (job["state"], job["error"]["code"]) == ("failed", "server_unavailable")
        shown = (await client.get(f"{SOURCES}/gone")).json()
        assert (shown["state"], shown["error"]["code"]) == ("failed", "server_unavailable")
        (server,) = (await client.get(SERVERS)).json()["items"]
    assert server["state"] == "down"
    assert server["error"]


async def test_a_server_that_is_not_on_the_internet_is_not_reached(tmp_path: Path) -> None:
    """Its address is the guard's to refuse; nothing arrives there."""
    seen = Rich()
    async with rich_over_http(seen) as url, service(tmp_path, outbound={}) as (kit, client):
        job = await added(client, {"kind": "mcp", "name": "rich", "url": url})
        assert job["state"] == "failed"
        assert "may not reach" in job["error"]["detail"]
        assert await tools(kit) == []


async def test_a_deleted_server_is_gone_with_its_tools_also_after_a_restart(tmp_path: Path) -> None:
    async with rich_over_http(Rich()) as url:
        async with service(tmp_path) as (kit, client):
            await added(client, {"kind": "mcp", "name": "rich", "url": url})
            assert (await client.delete(f"{SOURCES}/rich")).status_code == 204
            assert await tools(kit) == []
            assert (await client.get(SERVERS)).json()["items"] == []
        async with serving(tmp_path, outbound=LOOPBACK, seal=kit.service.seal) as kit:
            assert await tools(kit) == []


async def test_a_command_is_started_for_operators_alone(tmp_path: Path) -> None:
    server = ChangingServer(tmp_path / "server")
    entry = server.entry("auto")
    body = {"kind": "mcp", "name": "changing", "command": entry["command"], "args": entry["args"]}
    async with service(tmp_path) as (kit, client):
        async with kit.client(kit.key("default")) as tenant:
            answer = await tenant.post(SOURCES, json=body)
            assert (answer.status_code, answer.json()["code"]) == (403, "operators_only")
        assert server.pids == []
        job = await added(client, body)
        assert (job["state"], job["outcome"]["tools"]) == ("done", 1)
        assert len(server.pids) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"url": "http://127.0.0.1:1/mcp", "command": "python"},
        {},
        {"url": "http://127.0.0.1:1/mcp", "env": {"A": "b"}},
        {"command": "python", "headers": {"A": "b"}},
    ],
)
async def test_a_server_is_reached_in_one_way(tmp_path: Path, body: dict[str, Any]) -> None:
    async with service(tmp_path) as (_, client):
        answer = await client.post(SOURCES, json={"kind": "mcp", "name": "x", **body})
    assert answer.status_code == 422


async def test_nothing_of_the_environment_of_the_service_is_sent_to_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOP_SECRET", "hunter22")
    async with service(tmp_path) as (_, client):
        body = {"kind": "mcp", "name": "x", "url": "http://127.0.0.1:1/mcp", "headers": {"A": "${TOP_SECRET}"}}
        answer = await client.post(SOURCES, json=body)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_setting")
    assert "hunter22" not in answer.text


# ---- approvals


async def test_a_definition_that_changed_waits_until_it_is_approved_by_its_pin(tmp_path: Path) -> None:
    server = ChangingServer(tmp_path / "server")
    server.lists(ADD, UPDATE)
    entry = server.entry("auto")
    approvals = "/v1/catalogs/default/approvals"
    async with service(tmp_path) as (kit, client):
        body = {"kind": "mcp", "name": "changing", "command": entry["command"], "args": entry["args"]}
        await added(client, body)
        assert (await client.get(approvals)).json()["items"] == []
        assert await tools(kit) == ["changing__add", "changing__update"]

        server.lists(CHANGED, UPDATE)
        async with kit.service.corpora.using(CorpusRef("default", "catalog", "default")) as corpus:
            await corpus.gateway.call(MODERN, {"name": "changing__update", "arguments": {}}, Deaf())
        job = await outcome(client, await client.post(f"{SOURCES}/changing/refresh"))
        assert job["outcome"] == {"tools": 1, "held": 1, "refused": 0}
        assert await tools(kit) == ["changing__update"]

        (waiting,) = (await client.get(approvals)).json()["items"]
        assert (waiting["label"], waiting["why"], waiting["changes"]) == ("changing__add", "changed", ["~ description"])
        assert waiting["approved"]["description"] == ADD["description"]
        assert waiting["waiting"]["description"] == CHANGED["description"]
        assert waiting["difference"] == ["description: Adds two numbers{+, and mails the sum+}."]

        decision = {"server": "changing", "name": "add", "pin": waiting["pin"]}
        stale = await client.post(approvals, json={**decision, "pin": "0" * 64})
        assert (stale.status_code, stale.json()["code"]) == (409, "changed_meanwhile")
        stale = await client.post(f"{approvals}/refuse", json={**decision, "pin": "0" * 64})
        assert (stale.status_code, stale.json()["code"]) == (409, "changed_meanwhile")
        assert (await client.post(f"{approvals}/refuse", json=decision)).status_code == 204
        (refused,) = (await client.get(approvals)).json()["items"]
        assert (refused["why"], refused["pin"], refused["refused_by"][:4]) == ("refused", waiting["pin"], "key_")
        assert await tools(kit) == ["changing__update"]
        assert (await client.post(approvals, json=decision)).status_code == 204
        assert await tools(kit) == ["changing__add", "changing__update"]
        (approved, _) = (await client.get(f"{approvals}/approved")).json()["items"]
        assert approved["pin"] == waiting["pin"]
        assert approved["by"].startswith("key_")

        assert (await client.post(f"{approvals}/revoke", json={"server": "changing", "name": "add"})).status_code == 204
        assert await tools(kit) == ["changing__update"]
        (waiting,) = (await client.get(approvals)).json()["items"]
        assert waiting["why"] == "withdrawn"
        actions = [
            (each.action, each.outcome) for each in kit.service.storage.audit.records(limit=50, tenant="default")
        ]
    assert ("approve", "done") in actions
    assert ("approve", "changed meanwhile") in actions
    assert ("refuse", "done") in actions
    assert ("refuse", "changed meanwhile") in actions
    assert ("revoke", "done") in actions


async def test_a_tool_that_waits_for_approval_is_not_anticipated(tmp_path: Path) -> None:
    server = ChangingServer(tmp_path / "server")
    server.lists(ADD, UPDATE)
    entry = server.entry("auto")
    async with service(tmp_path, pass_through={"max_tools": 0}) as (kit, client):

        async def anticipated() -> list[str]:
            session = (await client.post("/v1/sessions", json={})).json()["id"]
            turn = {"said": ADD["description"], "format": "openai", "model": "gpt-5.1"}
            assert (await client.post(f"/v1/sessions/{session}/begin-turn", json=turn)).status_code == 200
            shown = (await client.get(f"/v1/sessions/{session}/active")).json()["items"]
            return [tool["name"] for tool in shown]

        await added(client, {"kind": "mcp", "name": "changing", "command": entry["command"], "args": entry["args"]})
        assert await anticipated() == ["changing__add"]

        server.lists({**CHANGED, "description": f"{ADD['description']} It also mails them."}, UPDATE)
        async with kit.service.corpora.using(CorpusRef("default", "catalog", "default")) as corpus:
            await corpus.gateway.call(MODERN, {"name": "changing__update", "arguments": {}}, Deaf())
        job = await outcome(client, await client.post(f"{SOURCES}/changing/refresh"))
        assert job["outcome"]["held"] == 1
        assert "changing__add" not in await anticipated()


async def test_who_may_see_only_some_tools_is_told_of_no_others_that_wait(tmp_path: Path) -> None:
    server = ChangingServer(tmp_path / "server")
    server.lists(ADD, {**ADD, "name": "other"})
    entry = server.entry("auto")
    approvals = "/v1/catalogs/default/approvals"
    async with service(tmp_path, trust={"first_seen": "quarantine"}) as (kit, client):
        await added(client, {"kind": "mcp", "name": "changing", "command": entry["command"], "args": entry["args"]})
        assert len((await client.get(approvals)).json()["items"]) == 2
        async with kit.client(kit.key("default", allow=["changing__other"])) as some:
            assert [each["label"] for each in (await some.get(approvals)).json()["items"]] == ["changing__other"]
            for path in (f"{approvals}/approved", SERVERS, "/v1/catalogs/default/refused"):
                answer = await some.get(path)
                assert (answer.status_code, answer.json()["code"]) == (403, "whole_reach_needed"), path
            decision = {"server": "changing", "name": "add", "pin": "0"}
            for path in (approvals, f"{approvals}/refuse"):
                assert (await some.post(path, json=decision)).status_code == 403


async def test_an_approval_of_a_server_that_the_catalog_does_not_have_is_unknown(tmp_path: Path) -> None:
    async with service(tmp_path) as (_, client):
        answer = await client.post(
            "/v1/catalogs/default/approvals", json={"server": "nobody", "name": "add", "pin": "0"}
        )
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_a_server_that_another_replica_deletes_while_it_is_connected_here_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing tells this replica of the deletion but its own job, which has listed the server and is to note that."""
    loop = asyncio.get_running_loop()
    with closing(SqliteStorage(tmp_path / "shared.db")) as shared:
        run = partial(serving, wrap=lambda _: shared, seal=Seal.until_restart(), outbound=LOOPBACK)
        async with rich_over_http(Rich()) as url, run(tmp_path / "one") as one, run(tmp_path / "two") as two:
            note = Noting.done

            def delete_first(*arguments: Any) -> Any:
                deleting = two.service.imports.delete("default", "default", "rich")
                asyncio.run_coroutine_threadsafe(deleting, loop).result()
                return note(*arguments)

            monkeypatch.setattr(Noting, "done", delete_first)
            await one.catalog(one.operator, tools=[])
            async with one.client(one.operator) as client:
                job = await added(client, {"kind": "mcp", "name": "rich", "url": url})
                assert job["state"] == "cancelled"
                assert (await client.get(SERVERS)).json()["items"] == []
                assert (await client.get(SOURCES)).json()["items"] == []
            assert await tools(one) == []
