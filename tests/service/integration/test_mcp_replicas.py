"""MCP clients of two replicas, behind a balancer that sends each request to the next of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastmcp
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.kit.gateway import ERAS, listening, names
from tests.kit.mcp_sessions import OWN
from tests.kit.postgres import PostgresServer
from tests.kit.round_robin import round_robin
from tests.kit.service import ServiceKit, serving, two_replicas
from toolsearch.service.app import make_app
from toolsearch.storage.seal import Seal
from toolsearch.tools.naming import TOOL_NAME

TOOLS = [
    {"name": "send_mail", "description": "Send an email message."},
    {"name": "list_events", "description": "List the events of a calendar on a day."},
    {"name": "pay_bill", "description": "Pay a bill with money."},
]
RPC = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}


@dataclass
class Replicas:
    """*urls* are those of the replicas, *balanced* that of the balancer. *key* may do everything."""

    kits: tuple[ServiceKit, ServiceKit]
    urls: tuple[str, str]
    balanced: str
    key: str

    def http(self, url: str, key: str | None = None) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(base_url=url, headers={"authorization": f"Bearer {key or self.key}"}, timeout=30)

    async def session(self, **body: Any) -> str:
        async with self.http(self.balanced) as client:
            answer = await client.post("/v1/sessions", json=body)
        session: str = answer.json()["id"]
        return session

    @asynccontextmanager
    async def mcp(self, url: str, session: str, era: str, **options: Any) -> AsyncIterator[Client]:
        async with self.http(url) as http:
            transport = streamable_http_client(f"{url}/v1/sessions/{session}/mcp", http_client=http)
            async with Client(transport, mode=era, **options) as client:
                yield client


@pytest.fixture
async def replicas(tmp_path: Path, postgres: PostgresServer) -> AsyncIterator[Replicas]:
    async with two_replicas(tmp_path, postgres.new_database(), pass_through={"max_tools": 0}) as kits:
        await kits[0].catalog(kits[0].operator, tools=TOOLS)
        apps = [make_app(kit.service) for kit in kits]
        options: dict[str, Any] = {"lifespan": "off", "proxy_headers": False, "is_alone": False}
        async with (
            listening(apps[0], **options) as one,
            listening(apps[1], **options) as other,
            round_robin([one, other]) as url,
        ):
            yield Replicas(kits, (one, other), url, kits[0].operator)


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_whose_requests_go_to_both_replicas_finds_and_keeps_its_tools(
    replicas: Replicas, era: str
) -> None:
    session = await replicas.session(exposure="append")
    async with replicas.mcp(replicas.balanced, session, era) as client:
        for name in ("pay_bill", "send_mail", "list_events"):
            await client.call_tool(TOOL_NAME, {"query": f"select:{name}"})
        lists = [await names(client) for _ in range(4)]

    found = ["pay_bill", "send_mail", "list_events"] if era == "legacy" else []
    assert lists == [[*OWN, *found]] * 4
    for url in replicas.urls:
        async with replicas.http(url) as http:
            active = (await http.get(f"/v1/sessions/{session}/active")).json()["items"]
        assert [tool["name"] for tool in active] == ["pay_bill", "send_mail", "list_events"]


async def test_the_client_of_fastmcp_finds_and_keeps_its_tools_on_both_replicas(replicas: Replicas) -> None:
    session = await replicas.session()
    transport = fastmcp.client.transports.StreamableHttpTransport(
        f"{replicas.balanced}/v1/sessions/{session}/mcp", headers={"authorization": f"Bearer {replicas.key}"}
    )
    async with fastmcp.Client(transport) as client:
        for name in ("pay_bill", "send_mail"):
            await client.call_tool(TOOL_NAME, {"query": f"select:{name}"})
        lists = [[tool.name for tool in await client.list_tools()] for _ in range(2)]

    assert lists[0] == lists[1]
    async with replicas.http(replicas.urls[1]) as http:
        active = (await http.get(f"/v1/sessions/{session}/active")).json()["items"]
    assert [tool["name"] for tool in active] == ["pay_bill", "send_mail"]


async def test_a_client_is_told_of_what_was_found_through_the_other_replica(replicas: Replicas) -> None:
    session, told = await replicas.session(exposure="append"), asyncio.Event()

    async def heard(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            told.set()

    one, other = replicas.urls
    async with replicas.mcp(one, session, "legacy", message_handler=heard) as client, replicas.http(other) as http:
        assert await names(client) == OWN
        await http.post(f"/v1/sessions/{session}/expand", json={"names": ["list_events"]})
        async with asyncio.timeout(20):
            await told.wait()
        assert await names(client) == [*OWN, "list_events"]


async def test_a_session_that_ends_on_one_replica_disconnects_its_clients_from_the_other(replicas: Replicas) -> None:
    session = await replicas.session()
    one, other = replicas.urls
    async with replicas.http(one) as http, replicas.http(other) as elsewhere:
        path = f"/v1/sessions/{session}/mcp"
        begun = await http.post(path, headers=RPC, json=INITIALIZE)
        connection = {"mcp-session-id": begun.headers["mcp-session-id"], **RPC}
        async with http.stream("GET", path, headers=connection) as stream:
            assert stream.status_code == 200
            assert (await elsewhere.delete(f"/v1/sessions/{session}")).status_code == 204
            async with asyncio.timeout(20):
                await stream.aread()
        assert (await http.post(path, headers=connection, json=LIST)).status_code == 404


async def test_a_connection_is_opened_again_for_its_own_client_alone_and_not_once_it_is_closed(
    replicas: Replicas,
) -> None:
    session, yours = await replicas.session(), await replicas.session()
    one, other = replicas.urls
    stranger = replicas.kits[0].key("default")
    async with replicas.http(one) as http, replicas.http(other) as elsewhere, replicas.http(other, stranger) as theirs:
        begun = await http.post(f"/v1/sessions/{session}/mcp", headers=RPC, json=INITIALIZE)
        connection = {"mcp-session-id": begun.headers["mcp-session-id"], **RPC}
        asked = [
            await theirs.post(f"/v1/sessions/{session}/mcp", headers=connection, json=LIST),
            await elsewhere.post(f"/v1/sessions/{yours}/mcp", headers=connection, json=LIST),
            await elsewhere.post(f"/v1/sessions/{session}/mcp", headers=connection, json=LIST),
            await http.delete(f"/v1/sessions/{session}/mcp", headers=connection),
            await http.post(f"/v1/sessions/{session}/mcp", headers=connection, json=LIST),
        ]

    assert [answer.status_code for answer in asked] == [404, 404, 200, 200, 404]


async def test_a_client_goes_on_after_its_service_was_started_again(tmp_path: Path) -> None:
    seal = Seal.until_restart()
    options: dict[str, Any] = {"pass_through": {"max_tools": 0}}
    statuses = list[int]()
    async with serving(tmp_path, seal=seal, **options) as kit:
        await kit.catalog(kit.operator, tools=TOOLS)
        async with kit.client(kit.operator) as client:
            session = (await client.post("/v1/sessions", json={})).json()["id"]
            begun = await client.post(f"/v1/sessions/{session}/mcp", headers=RPC, json=INITIALIZE)
            key, connection = kit.operator, {"mcp-session-id": begun.headers["mcp-session-id"], **RPC}
    for again in (seal, Seal.until_restart()):
        async with serving(tmp_path, seal=again, **options) as kit, kit.client(key) as client:
            answer = await client.post(f"/v1/sessions/{session}/mcp", headers=connection, json=LIST)
            statuses.append(answer.status_code)

    assert statuses == [200, 404]
