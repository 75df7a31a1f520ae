"""Users of the service who log in at a server, each with a key and with a browser that keeps cookies."""

import asyncio
import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.kit.pages import HOST, form_token, sign_in
from tests.kit.service import ServiceKit, serving
from tests.kit.user_logins import Browser

OUTBOUND = {"allowed_networks": ["127.0.0.0/8"]}
_LEAVES = re.compile(r'href="(http[^"]+)" rel="noreferrer"')


@dataclass
class User:
    """Who has *key*, and the account *name* at the authorization server."""

    kit: ServiceKit
    key: str
    name: str

    def at(self, kit: ServiceKit) -> "User":
        """The same user at another replica."""
        return User(kit, self.key, self.name)

    async def asked(self, number: int, tool: str = "guarded__whoami", **body: Any) -> dict[str, Any]:
        body = {"name": tool, "arguments": {"number": number}, **body}
        async with self.kit.client(self.key) as client:
            answer = await client.post("/v1/calls", json=body)
        told: dict[str, Any] = answer.json()
        return told

    async def call(self, number: int, tool: str = "guarded__whoami", **body: Any) -> str:
        answer = await self.asked(number, tool, **body)
        return "".join(block.get("text", "") for block in answer.get("content", ())) or str(answer)

    async def found(self, query: str = "whoami", **body: Any) -> list[str]:
        """The names that a search finds."""
        async with self.kit.client(self.key) as client:
            answer = await client.post("/v1/search", json={"queries": [query], **body})
        return [each["name"] for each in answer.json()["answers"][0]["tools"]]

    async def browser(self) -> httpx2.AsyncClient:
        """One that has signed in."""
        browser = self.kit.client()
        assert (await sign_in(browser, self.key)).status_code == 303
        return browser

    async def log_in(self, *, end_at: "User | None" = None, server: str = "guarded") -> httpx2.Response:
        """Log in at the authorization server, and bring its answer to the replica of *end_at*."""
        return await (end_at or self).bring(await self.begin(server))

    async def begin(self, server: str = "guarded") -> str:
        """Log in at the authorization server, and return the address that it sends the browser to."""
        browser = await self.browser()
        page = await browser.get(f"/pages/logins?server={server}")
        sent = {"form_token": form_token(page)}
        page = await browser.post(f"/pages/logins/default/{server}/begin", data=sent, headers={"origin": HOST})
        assert page.status_code == 200, page.text
        return await self.let_in(html.unescape(_LEAVES.findall(page.text)[0]))

    async def let_in(self, url: str) -> str:
        away = Browser(self.name)
        try:
            answer = await away.open(url)
            while not str(answer.headers["location"]).startswith(HOST):
                assert answer.next_request is not None
                answer = await away.open(str(answer.next_request.url))
        finally:
            await away.aclose()
        return str(answer.headers["location"])

    async def bring(self, address: str) -> httpx2.Response:
        return await (await self.browser()).get(address.removeprefix(HOST))

    async def log_out(self, server: str = "guarded") -> httpx2.Response:
        browser = await self.browser()
        sent = {"form_token": form_token(await browser.get("/pages/logins"))}
        return await browser.post(f"/pages/logins/default/{server}/end", data=sent, headers={"origin": HOST})


async def add_guarded(kit: ServiceKit, key: str, url: str) -> None:
    """Make the catalog ``default`` of the key's tenant, with the server at *url* at which each user logs in."""
    await kit.catalog(key, tools=[])
    async with kit.client(key) as client:
        body = {"kind": "mcp", "name": "guarded", "url": url, "credentials": "per-user"}
        (await client.post("/v1/catalogs/default/sources", json=body)).raise_for_status()


def users_of(kit: ServiceKit, tenant: str = "acme") -> dict[str, User]:
    scopes: Any = ("search", "call", "read-catalog")
    return {name: User(kit, kit.key(tenant, *scopes), name) for name in ("alice", "bob")}


@asynccontextmanager
async def people(folder: Path, url: str, **options: Any) -> AsyncIterator[dict[str, User]]:
    """Two users of one tenant, in front of the server at *url*."""
    async with serving(folder, outbound=OUTBOUND, **options) as kit:
        await add_guarded(kit, kit.key("acme"), url)
        yield users_of(kit)


async def said(users: dict[str, User], numbers: range) -> list[tuple[str, str]]:
    """What interleaved calls of all users are answered, and what each has to be."""
    asked = [(user, number) for number in numbers for user in users]
    answers = await asyncio.gather(*(users[user].call(number) for user, number in asked))
    return list(zip(answers, (f"{user} {number} {user}" for user, number in asked), strict=True))
