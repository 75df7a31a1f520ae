"""Two replicas of the service on one PostgreSQL, behind the balancer of examples/deployment."""

import base64
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from mcp import Client

from tests.kit.balancer import balancer
from tests.kit.postgres import PostgresServer
from tests.kit.service_process import QUIET, ServiceProcess, service_process
from toolsearch.environment import SECRET_KEY, STORE
from toolsearch.tools.naming import TOOL_NAME

TOOLS = [
    {"name": name, "description": description, "input_schema": {"type": "object"}}
    for name, description in (("send_mail", "Send a letter to somebody."), ("book_room", "Book a meeting room."))
]


@dataclass
class Balanced:
    url: str
    key: str
    replicas: list[ServiceProcess]

    def client(self) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, headers={"authorization": f"Bearer {self.key}"}, timeout=60)


@pytest.fixture
def balanced(postgres: PostgresServer, tmp_path: Path) -> Iterator[Balanced]:
    variables = {
        STORE: postgres.new_database(),
        SECRET_KEY: base64.b64encode(b"k" * 32).decode(),
        "TOOLSEARCH_SERVE__ALLOWED_HOSTS": '["127.0.0.1"]',
        "TOOLSEARCH_PASS_THROUGH__MAX_TOOLS": "0",  # so that tools are searched, however few they are
    }
    with ExitStack() as ending:
        first = ending.enter_context(service_process(tmp_path / "one", *QUIET, **variables))
        second = ending.enter_context(service_process(tmp_path / "two", *QUIET, key=first.key, **variables))
        replicas = [first, second]
        ports = [urlsplit(each.url).port or 0 for each in replicas]
        running = ending.enter_context(balancer(ports, tmp_path))
        yield Balanced(running.url, first.key, replicas)


async def test_a_session_goes_on_when_a_replica_is_killed(balanced: Balanced) -> None:
    """It is opened and searched over HTTP, used by MCP, and there again after one of two replicas was killed."""
    with balanced.client() as client:
        client.post("/v1/catalogs", json={"name": "office"}).raise_for_status()
        client.post("/v1/catalogs/office/tools", json=TOOLS).raise_for_status()
        session = client.post("/v1/sessions", json={"catalog": "office", "url_token": True}).raise_for_status().json()
        assert session["mcp_url"].startswith(balanced.url)

        async with Client(session["mcp_url"], mode="legacy") as agent:
            found = await agent.call_tool(TOOL_NAME, {"query": "write to somebody"})
        assert "send_mail" in str(found.content)

        balanced.replicas[0].process.kill()
        balanced.replicas[0].process.wait()
        shown = client.get(f"/v1/sessions/{session['id']}/tools?format=openai").raise_for_status().json()["tools"]
        async with Client(session["mcp_url"], mode="legacy") as agent:
            again = await agent.call_tool(TOOL_NAME, {"query": "a place to meet"})

    assert "send_mail" in [each["function"]["name"] for each in shown]
    assert "book_room" in str(again.content)
