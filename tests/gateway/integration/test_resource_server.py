"""The gateway as the resource of an authorization server: a client that is given its address alone finds the rest."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from benchmarks.fault_kit import serving
from tests.kit.gateway import time_server
from tests.kit.upstream_actors import free_port
from tests.kit.user_logins import Browser, authority, needs_authority
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.http import http_app
from toolsearch.upstreams.logins import callback

pytestmark = needs_authority


class Kept:
    """What the official client keeps of a login."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@asynccontextmanager
async def protected(folder: Path) -> AsyncIterator[tuple[Gateway, str]]:
    """A gateway that lets in whom the authorization server vouches for, and its address."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    async with authority() as issuer:
        jwt = {"issuer": issuer, "audience": url, "jwksUrl": f"{issuer}jwks", "requiredScopes": ["mcp"]}
        section = {"jwt": jwt, "stateDir": str(folder), "encoder": None, "passThrough": {"maxTools": 100}}
        config = {"mcpServers": {"time": time_server()}, "toolsearch": section}
        gateway = Gateway(read_gateway_config(config, {}))
        async with serving(http_app(gateway, port=port), port):
            yield gateway, url


@asynccontextmanager
async def official_client(url: str, user: str) -> AsyncIterator[tuple[Client, Kept]]:
    """The SDK's client, which registers itself, and has *user* log in when it is refused."""
    kept, browser = Kept(), Browser(user)
    visits: list[asyncio.Task[httpx2.Response]] = []
    async with callback("http://127.0.0.1/callback") as (redirect_uri, answer):

        async def visit(page: str) -> None:
            visits.append(asyncio.create_task(browser.visit(page)))

        metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(redirect_uri)], token_endpoint_auth_method="none")
        login = OAuthClientProvider(
            url, metadata, kept, redirect_handler=visit, callback_handler=lambda: asyncio.wait_for(answer, 30)
        )
        async with (
            httpx2.AsyncClient(auth=login, timeout=30) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            yield client, kept
        await asyncio.gather(*visits)
    await browser.aclose()


async def test_the_official_client_logs_in_with_the_gateways_address_alone_and_is_its_user(tmp_path):
    async with protected(tmp_path) as (gateway, url):
        async with official_client(url, "alice") as (client, kept):
            result = await client.call_tool("time__get_current_time", {"timezone": "UTC"})
            assert not result.is_error
        assert kept.tokens is not None
        assert "mcp" in (kept.tokens.scope or "").split()
        assert {each.principal for each in gateway.status().sessions} == {"jwt:alice"}
