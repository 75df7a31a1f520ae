"""MCP servers and approvals of a catalog that another replica has in memory, too."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError

from tests.kit.changing_server import ADD, ChangingServer
from tests.kit.fake_servers import MODERN
from tests.kit.postgres import PostgresServer
from tests.kit.replicas import DEFAULT, Replicas, eventually, names, replicas, until_names
from tests.kit.service import ServiceKit
from tests.kit.upstream_actors import free_port
from tests.mcp_servers.rich_http import rich_over_http
from tests.mcp_servers.rich_server import Rich
from tests.service.integration.test_mcp_sources import LOOPBACK, SOURCES, UPDATE, Deaf, added, outcome
from toolsearch.errors import Kept, StorageError
from toolsearch.service.corpora.toolset_specs import by_subject, versions_of_catalog

APPROVALS = "/v1/catalogs/default/approvals"
BOTH_TOOLS = ["changing__add", "changing__update"]


@pytest.fixture
async def both(postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Replicas]:
    """Two replicas with an empty catalog in the memory of both. They look at the store only when they are told to."""
    monkeypatch.setattr("toolsearch.service.corpora.opening._TRUST_POLL_S", 100_000.0)
    async with replicas(postgres.new_database(), tmp_path, outbound=LOOPBACK) as running:
        await running.one.catalog(running.operator, tools=[])
        assert await names(running.two) == []
        yield running


@pytest.fixture
async def changing(both: Replicas, tmp_path: Path) -> ChangingServer:
    """A server that both replicas have connected."""
    server = ChangingServer(tmp_path / "server")
    server.lists(ADD, UPDATE)
    entry = server.entry("auto")
    async with both.one.client(both.operator) as client:
        body = {"kind": "mcp", "name": "changing", "command": entry["command"], "args": entry["args"]}
        assert (await added(client, body))["state"] == "done"
    await until_names(both.two, BOTH_TOOLS)
    await eventually(lambda: has_followed(both.two))
    async with both.two.service.corpora.using(DEFAULT) as corpus:
        await corpus.gateway.upstreams["changing"].relist()  # until now there may only be what the other one was listed
    return server


async def has_followed(kit: ServiceKit) -> bool:
    """Whether it has done all that is in the store by now."""
    there = by_subject(kit.service.storage.changes.current([DEFAULT.tenant]))
    async with kit.service.corpora.using(DEFAULT) as corpus:
        return kit.service.following.is_settled and corpus.seen == versions_of_catalog(DEFAULT.name, there)


async def call(kit: ServiceKit, name: str) -> str:
    async with kit.service.corpora.using(DEFAULT) as corpus:
        return str(await corpus.gateway.call(MODERN, {"name": name, "arguments": {}}, Deaf()))


async def revoke(both: Replicas, name: str) -> None:
    async with both.one.client(both.operator) as client:
        (await client.post(f"{APPROVALS}/revoke", json={"server": "changing", "name": name})).raise_for_status()


async def test_a_server_that_one_replica_adds_or_deletes_is_connected_or_gone_on_the_other(both: Replicas) -> None:
    async with rich_over_http(Rich()) as url, both.one.client(both.operator) as client:
        assert (await added(client, {"kind": "mcp", "name": "rich", "url": url}))["state"] == "done"
        found = await names(both.one)
        assert len(found) == 11
        await until_names(both.two, found)
        assert "hello" in await call(both.two, "rich__contents")

        assert (await client.delete(f"{SOURCES}/rich")).status_code == 204
        await until_names(both.two, [])


async def test_when_one_replica_asks_a_server_anew_the_others_do_so_too(both: Replicas, tmp_path: Path) -> None:
    """The server tells nobody that it lists another tool by now."""
    server, port = ChangingServer(tmp_path / "server"), free_port()
    silently = {**ADD, "name": "update silently"}
    server.lists(silently)
    async with server.over_http("http", port), both.one.client(both.operator) as client:
        body = {"kind": "mcp", "name": "changing", "url": f"http://127.0.0.1:{port}/mcp"}
        assert (await added(client, body))["outcome"]["tools"] == 1
        (name,) = await names(both.one)
        await until_names(both.two, [name])
        server.lists(silently, ADD)
        await call(both.one, name)
        job = await outcome(client, await client.post(f"{SOURCES}/changing/refresh"))
        assert job["outcome"]["tools"] == 2

        await until_names(both.two, ["changing__add", name])


async def test_a_withdrawn_approval_and_a_new_one_hold_on_the_other_replica(
    both: Replicas, changing: ChangingServer
) -> None:
    await revoke(both, "add")
    await until_names(both.two, ["changing__update"])

    async with both.one.client(both.operator) as client:
        (waiting,) = (await client.get(APPROVALS)).json()["items"]
        decision = {"server": "changing", "name": "add", "pin": waiting["pin"]}
        assert (await client.post(APPROVALS, json=decision)).status_code == 204
    await until_names(both.two, BOTH_TOOLS)


async def test_no_call_is_let_through_after_a_withdrawal_that_was_not_heard_of(
    both: Replicas, changing: ChangingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(both.two.service.following, "_heard", lambda _: None)
    assert "not" not in await call(both.two, "changing__add")
    ran = changing.ran
    await revoke(both, "add")
    assert await names(both.two) == BOTH_TOOLS

    with pytest.raises(MCPError, match="waits for a person to approve"):
        await call(both.two, "changing__add")
    assert changing.ran == ran
    assert await names(both.two) == ["changing__update"]


async def test_no_call_is_let_through_while_nobody_can_tell_what_is_approved(
    both: Replicas, changing: ChangingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = changing.ran
    storage = both.two.service.storage

    def fail(*_: Any, **__: Any) -> Any:
        raise StorageError("the disk is gone", Kept.PINS)

    for method in ("version", "approved", "waiting", "keep"):
        monkeypatch.setattr(type(storage.pins("default")), method, fail)
    with pytest.raises(MCPError, match="waits for a person to approve"):
        await call(both.two, "changing__add")
    assert changing.ran == ran

    monkeypatch.undo()
    async with both.two.service.corpora.using(DEFAULT) as corpus:
        await corpus.gateway.relay._before()  # type: ignore[misc]  # as the next look does
    await until_names(both.two, BOTH_TOOLS)


async def test_a_server_may_be_updated_by_several_at_once(both: Replicas, changing: ChangingServer) -> None:
    """As by an import here and by following what another replica has written."""
    async with both.two.service.corpora.using(DEFAULT) as corpus:
        gateway = corpus.gateway
        (settings,) = await both.two.service.approvals.directory.of_corpus(DEFAULT)
        await gateway.servers.remove("changing")
        await asyncio.gather(*(gateway.servers.update(settings) for _ in range(3)))
        assert list(gateway.upstreams) == ["changing"]
    await until_names(both.two, BOTH_TOOLS)
