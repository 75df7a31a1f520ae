"""The status page in a real Chromium: on a telephone and on a desk, light and dark.

TOOLSEARCH_SCREENSHOTS names a folder that pictures of it are written to.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from playwright.sync_api import Browser, Page, expect

from tests.kit.browser import chromium, sideways, violations
from tests.kit.gateway import raw_server, served, time_server

LONG = "find_the_tool_that_" * 12
VIEWS: dict[str, dict[str, Any]] = {
    "telephone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
    "narrow": {"viewport": {"width": 320, "height": 640}},
    "desk": {"viewport": {"width": 1280, "height": 860}},
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway with servers that work, fail and are refused, and with a search and calls of a client."""
    state = tmp_path_factory.mktemp("state")
    config = {
        "mcpServers": {
            "raw": raw_server(),
            "bad-tools": raw_server("bad-tools"),
            "time": time_server(),
            "gone": {"command": f"/no/such/folder/{LONG}"},
        },
        "toolsearch": {"stateDir": str(state), "passThrough": {"maxTools": 0}},
    }
    with serving(config, LONG, "tell the time") as address:
        yield address


@contextmanager
def serving(config: dict[str, Any], *queries: str) -> Iterator[str]:
    """A gateway in a thread of its own, in which a client has searched for *queries*."""
    begun: Future[str] = Future()
    ended = threading.Event()

    async def search(url: str) -> None:
        async with Client(url, mode="legacy") as client:
            await client.list_tools()
            for query in queries:
                await client.call_tool("toolSearchTool", {"query": query})

    async def serve() -> None:
        try:
            async with served(config, is_alone=False) as (gateway, url):
                if queries:
                    await search(url)
                await gateway.settled()
                begun.set_result(url.removesuffix("/mcp"))
                await asyncio.to_thread(ended.wait)
        except BaseException as error:
            if not begun.done():
                begun.set_exception(error)
            raise

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        yield begun.result(timeout=60)
    finally:
        ended.set()
        thread.join(timeout=30)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def page(browser: Browser, address: str, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The page as the view of this name shows it, once its first figures are there."""
    context = browser.new_context(base_url=address, **VIEWS[request.param])
    try:
        page = context.new_page()
        page.goto("/")
        expect(page.get_by_text("tell the time")).to_be_visible()
        yield page
    finally:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", VIEWS, indirect=True)
def test_the_page_is_whole_and_accessible_in_each_view(page: Page, scheme: Any, request: pytest.FixtureRequest) -> None:
    page.emulate_media(color_scheme=scheme)
    if folder := os.environ.get("TOOLSEARCH_SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder) / f"{request.node.callspec.id}.png", full_page=True)

    assert sideways(page) == 0
    assert violations(page) == []


@pytest.mark.parametrize("page", ["telephone"], indirect=True)
def test_rows_fold_on_a_telephone_and_each_cell_keeps_its_title_in_letters_large_enough(page: Page) -> None:
    row = page.locator("#servers tr", has_text="gone")
    cells = row.locator("td:visible")
    titles = cells.evaluate_all("all => all.map((cell) => getComputedStyle(cell, '::before').content)")
    left = cells.evaluate_all("all => all.map((cell) => Math.round(cell.getBoundingClientRect().left))")
    smallest = page.evaluate(
        "Math.min(...[...document.querySelectorAll('main *')].map((e) => parseFloat(getComputedStyle(e).fontSize)))"
    )

    assert titles[1:] == [
        f'"{title}"'
        for title in (
            "state",
            "transport",
            "tools",
            "tokens",
            "calls",
            "failed",
            "running",
            "connected in",
            "last error",
        )
    ]
    assert len(set(left)) < len(left)  # they stand below each other
    assert smallest >= 13
    expect(page.get_by_role("table").first.get_by_role("columnheader", name="tokens")).to_be_attached()


@pytest.mark.parametrize("page", ["desk"], indirect=True)
def test_on_a_desk_a_server_is_one_row_of_a_table(page: Page) -> None:
    tops = (
        page.locator("#servers tr", has_text="raw")
        .locator("td")
        .evaluate_all("all => all.map((cell) => cell.getBoundingClientRect().top)")
    )

    assert len(set(tops)) == 1


def test_an_operator_approves_one_tool_and_refuses_another_with_one_click_each(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANN", "ann-token-0123456789")
    section = {
        "stateDir": str(tmp_path),
        "trust": {"firstSeen": "quarantine"},
        "principals": {"ann": {"token": "${ANN}", "operator": True}},
    }
    with serving({"mcpServers": {"time": time_server()}, "toolsearch": section}) as address:
        context = browser.new_context(
            base_url=address, http_credentials={"username": "x", "password": os.environ["ANN"]}, **VIEWS["desk"]
        )
        page = context.new_page()
        page.goto("/")
        expect(page.get_by_text("Get current time in a specific timezone")).to_be_visible()
        assert violations(page) == []
        other = page.locator("button[aria-label='Refuse time__convert_time']")
        where = (
            "(node) => node.getBoundingClientRect().y - document.querySelector('#decisions').getBoundingClientRect().y"
        )
        place = other.evaluate(where)
        page.get_by_role("button", name="Approve time__get_current_time").click()
        expect(page.get_by_role("status").filter(has_text="approved")).to_be_visible()
        expect(page.get_by_text("1 awaiting approval")).to_be_visible()
        expect(page.locator(".entry[inert]")).to_have_count(1)
        assert other.evaluate(where) == place  # no button moves under the pointer
        page.get_by_role("button", name="Refuse time__convert_time").click()
        expect(page.get_by_role("status").filter(has_text="refused, and still held")).to_be_visible()
        expect(page.get_by_text("1 awaiting approval")).to_be_visible()
        context.close()
