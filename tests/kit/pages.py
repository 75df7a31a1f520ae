"""A browser without a window: forms of the pages, sent as a browser sends them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2 as httpx

from toolsearch.service.app import make_app
from toolsearch.service.service import Service

HOST = "http://service.test"


@asynccontextmanager
async def opened(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    """A client that keeps cookies and follows no redirect."""
    app = make_app(service, host="service.test")
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=HOST) as client,
    ):
        yield client


async def sign_in(browser: httpx.AsyncClient, key: str, *, next_path: str = "/pages") -> httpx.Response:
    token = form_token(await browser.get("/pages/sign-in"))
    sent = {"form_token": token, "key": key, "next": next_path}
    return await browser.post("/pages/sign-in", data=sent, headers={"origin": HOST})


def form_token(page: httpx.Response) -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]{64})"', page.text)
    assert found, page.text
    return found[1]
