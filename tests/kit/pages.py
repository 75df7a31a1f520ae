"""A browser without a window: forms of the pages, sent as a browser sends them."""

from __future__ import annotations

import re

import httpx2 as httpx

from tests.kit import service

HOST = f"http://{service.HOST}:{service.PORT}"


async def sign_in(browser: httpx.AsyncClient, key: str, *, next_path: str = "/pages") -> httpx.Response:
    token = form_token(await browser.get("/pages/sign-in"))
    sent = {"form_token": token, "key": key, "next": next_path}
    return await browser.post("/pages/sign-in", data=sent, headers={"origin": HOST})


def form_token(page: httpx.Response) -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]{64})"', page.text)
    assert found, page.text
    return found[1]
