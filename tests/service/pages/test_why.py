"""The page that says why a tool is found, or is not."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.kit.pages import sign_in
from tests.kit.service import serving


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(tmp_path) as kit:
        key = kit.key("acme")
        await kit.catalog(key)
        client = kit.client()
        await sign_in(client, key)
        yield client


async def _texts(browser: httpx.AsyncClient, query: str, tool: str) -> str:
    page = await browser.get("/pages/playground/why", params={"q": query, "tool": tool, "corpus": "catalog/default"})
    return " ".join(re.sub(r"<[^>]*>", " ", page.text).split())


async def test_strategies_that_do_not_find_a_tool_for_one_reason_say_it_once(browser: httpx.AsyncClient) -> None:
    text = await _texts(browser, "send a letter", "read_logs")

    assert text.count("no tool of this name") == 1
    assert "Not found by hybrid, keyword, semantic, regex" in text


async def test_words_are_told_once_although_two_strategies_go_by_them(browser: httpx.AsyncClient) -> None:
    text = await _texts(browser, "send letters", "send_mail")

    assert text.count("letters as letter") == 1
    assert text.count("cosine") == 1
    assert text.count("By its score.") == 1
