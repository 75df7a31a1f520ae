"""An authorization server from npm, a server of FastMCP that demands its tokens, and people who log in there."""

import asyncio
import base64
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastmcp import FastMCP
from fastmcp.server.auth import AccessToken, RemoteAuthProvider
from fastmcp.server.auth.providers.jwt import JWTVerifier
from fastmcp.server.dependencies import get_access_token, get_http_headers
from fastmcp.server.middleware import Middleware
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyHttpUrl

from benchmarks.fault_kit import serving
from tests.kit.gateway import SERVERS, served
from tests.kit.upstream_actors import free_port
from toolsearch.gateway.gateway import Gateway

NODE = shutil.which("node")
OIDC = SERVERS / "node_modules" / "oidc-provider"
needs_authority = pytest.mark.skipif(
    NODE is None or not OIDC.is_dir(), reason="needs Node.js and oidc-provider; run: npm ci --prefix tests/mcp_servers"
)
TOKENS = {"alice": "a-token-for-alice-alone", "bob": "a-token-for-bob-and-nobody"}
LINK = re.compile(r"http://127\.0\.0\.1:\d+\S+")


@asynccontextmanager
async def authority(*, lifetime_s: int = 3600) -> AsyncIterator[str]:
    """The authorization server, and its address."""
    assert NODE is not None
    port = free_port()
    script = str(SERVERS / "authorization_server.mjs")
    process = await asyncio.create_subprocess_exec(
        NODE, script, str(port), str(lifetime_s), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    assert process.stdout is not None
    assert (await process.stdout.readline()).strip() == b"listening"
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        await process.wait()


@dataclass
class Guarded:
    """A server that knows its users by their tokens. *seen* are the tokens and headers of the calls, by user."""

    url: str = ""
    seen: dict[str, set[str]] = field(default_factory=dict)
    headers: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)


@asynccontextmanager
async def guarded_server(issuer: str, *, has_secrets: bool = False) -> AsyncIterator[Guarded]:
    """If it *has_secrets*, it lists each user a tool ``secret_of_USER`` that no other user is listed."""
    port = free_port()
    guarded = Guarded(f"http://127.0.0.1:{port}/mcp")
    verifier = JWTVerifier(jwks_uri=f"{issuer}jwks", issuer=issuer, audience=guarded.url, required_scopes=["mcp"])
    server = FastMCP(
        "guarded",
        auth=RemoteAuthProvider(
            token_verifier=verifier, authorization_servers=[AnyHttpUrl(issuer)], base_url=f"http://127.0.0.1:{port}"
        ),
    )

    def user() -> str:
        token = get_access_token()
        assert isinstance(token, AccessToken)
        name = str(token.claims["sub"])
        guarded.seen.setdefault(name, set()).add(token.token)
        guarded.headers.append((name, dict(get_http_headers())))
        return name

    @server.tool
    async def whoami(number: int) -> str:
        """Say who the user is, and the number of the call."""
        name = user()
        await asyncio.sleep(0)
        return f"{name} {number} {user()}"

    @server.resource("mine://notes")
    async def notes() -> str:
        """The notes of the user."""
        return f"notes of {user()}"

    if has_secrets:
        for name in TOKENS:
            server.tool(user, name=f"secret_of_{name}", description="Say who the user is, in secret.")
        server.add_middleware(_OwnTools())
    async with serving(server.http_app(), port):
        yield guarded


class _OwnTools(Middleware):
    async def on_list_tools(self, context: Any, call_next: Any) -> Any:
        token = get_access_token()
        assert isinstance(token, AccessToken)
        hidden = {f"secret_of_{name}" for name in TOKENS if name != token.claims["sub"]}
        return [tool for tool in await call_next(context) if tool.name not in hidden]


class Browser:
    """The browser of a person, who logs in as *user* wherever it is sent. Only gateways are told the *token*."""

    def __init__(self, user: str, token: str = "") -> None:
        self._client = httpx2.AsyncClient(headers={"x-user": user}, timeout=30)
        self._password = httpx2.BasicAuth("me", token)

    async def open(self, url: str, method: str = "GET", *, page: str = "") -> httpx2.Response:
        """Ask for a page, and go nowhere from there. A form is sent from *page*, by default one of the same site."""
        is_gateway = httpx2.URL(url).path.startswith("/login")
        headers = {"origin": page or str(httpx2.URL(url).copy_with(path="")).rstrip("/")} if method == "POST" else {}
        return await self._client.request(method, url, headers=headers, auth=self._password if is_gateway else None)

    async def visit(self, url: str, method: str = "GET") -> httpx2.Response:
        answer = await self.open(url, method)
        if answer.next_request is None:
            return answer
        return await self.visit(str(answer.next_request.url))

    async def aclose(self) -> None:
        await self._client.aclose()


@dataclass
class Team:
    """A gateway with people, of whom each has a client and a browser."""

    gateway: Gateway
    url: str
    stack: AsyncExitStack
    tokens: Mapping[str, str]

    async def client(self, user: str, era: str = "auto", **options: Any) -> Client:
        http = httpx2.AsyncClient(headers={"authorization": f"Bearer {self.tokens[user]}"}, timeout=30)
        await self.stack.enter_async_context(http)
        transport = streamable_http_client(self.url, http_client=http)
        return await self.stack.enter_async_context(Client(transport, mode=era, **options))

    async def browser(self, user: str, *, gateway_user: str | None = None) -> Browser:
        browser = Browser(user, self.tokens[gateway_user or user])
        self.stack.push_async_callback(browser.aclose)
        return browser

    async def log_in(self, user: str, client: Client) -> None:
        """Follow the link in the answer to a call, as the user would."""
        page = await (await self.browser(user)).visit(await link_for(client))
        assert "You are logged in" in page.text, page.text


async def link_for(client: Client) -> str:
    refused = await call(client, 0)
    found = LINK.search(refused)
    assert found is not None, refused
    return found[0]


async def call(client: Client, number: int, tool: str = "guarded__whoami") -> str:
    result = await client.call_tool(tool, {"number": number})
    return "".join(getattr(block, "text", "") for block in result.content)


async def token_of(user: str, issuer: str, resource: str) -> str:
    """An access token of *user* for *resource*, which an application has got at the authorization server."""
    verifier = secrets.token_urlsafe(48)
    digest = hashlib.sha256(verifier.encode()).digest()
    asked = {
        "client_id": "app",
        "response_type": "code",
        "redirect_uri": "http://127.0.0.1/callback",
        "scope": "mcp",
        "resource": resource,
        "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
        "code_challenge_method": "S256",
    }
    async with httpx2.AsyncClient(headers={"x-user": user}) as client:
        answer = await client.get(f"{issuer}auth", params=asked)
        while not str(answer.headers.get("location", "")).startswith("http://127.0.0.1/callback"):
            assert answer.next_request is not None, answer.text
            answer = await client.send(answer.next_request)
        code = httpx2.URL(answer.headers["location"]).params["code"]
        given = await client.post(
            f"{issuer}token",
            data={
                "grant_type": "authorization_code",
                "code": code,
                "client_id": "app",
                "redirect_uri": "http://127.0.0.1/callback",
                "code_verifier": verifier,
            },
        )
    return str(given.json()["access_token"])


@asynccontextmanager
async def team(
    url: str,
    folder: Path,
    *,
    entry: Mapping[str, Any] | None = None,
    section: Mapping[str, Any] | None = None,
    tokens: Mapping[str, str] = TOKENS,
    on_made: Callable[[Gateway], object] = lambda _: None,
    **server: Any,
) -> AsyncIterator[Team]:
    """A gateway in front of the server at *url*, which is *server*; its state is in *folder*. *tokens* are JWTs if
    *section* says how these are verified.
    """
    principals = {name: {"token": f"${{TOKEN_{name.upper()}}}"} for name in tokens}
    os.environ.update({f"TOKEN_{name.upper()}": token for name, token in tokens.items()})
    known: dict[str, Any] = {} if "jwt" in (section or {}) else {"principals": principals}
    config = {
        "mcpServers": {"guarded": {"url": url, **(entry or {})}},
        "toolsearch": {
            "stateDir": str(folder),
            "encoder": None,
            **known,
            "servers": {"guarded": {"credentials": "per-user", **server}},
            **(section or {}),
        },
    }
    async with served(config, is_alone=False) as (gateway, address), AsyncExitStack() as stack:
        on_made(gateway)
        yield Team(gateway, address, stack, tokens)
