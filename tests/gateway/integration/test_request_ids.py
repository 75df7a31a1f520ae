"""The id of an HTTP request to the gateway: given by the client or made, in the answer and in errors."""

from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.kit.fake_servers import FakeServer
from tests.kit.gateway import served
from toolsearch.gateway.trust.verdicts import OpenGate

FAKE = {"mcpServers": {"git": {"command": "none"}}}


async def test_the_gateway_over_http_takes_a_plain_id_or_makes_one_and_answers_with_it() -> None:
    async with served(FAKE, upstreams=FakeServer) as (_, url), httpx2.AsyncClient() as client:
        given, made, long = [
            (await client.get(url.replace("/mcp", "/healthz"), headers={"x-request-id": given})).headers["x-request-id"]
            for given in ("mine-1", "not plain", "a" * 65)
        ]

    assert given == "mine-1"
    assert made.startswith("req_")
    assert long.startswith("req_")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_error_over_http_names_the_id_that_the_client_gave(mode: str) -> None:
    async with served(FAKE, upstreams=FakeServer, gate=OpenGate()) as (gateway, url):
        server: Any = gateway.upstreams["git"]
        await server.lists("log")
        async with (
            httpx2.AsyncClient(headers={"x-request-id": "mine-1"}) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            failed = await client.call_tool("callToolRead", {"name": "git__none"})
            sound = await client.call_tool("callToolDestructive", {"name": "git__log", "arguments": {}})

    assert failed.meta is not None
    assert (failed.meta["toolsearch/error"], failed.meta["toolsearch/requestId"]) == ("unknown_tool", "mine-1")
    assert "toolsearch/requestId" not in (sound.meta or {})
