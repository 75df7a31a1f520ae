"""The status page in a real Chromium: on a telephone and on a desk, light and dark.

TOOLSEARCH_SCREENSHOTS names a folder that pictures of it are written to.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from playwright.sync_api import Browser, Page, expect

from tests.kit.browser import chromium, sideways, violations
from tests.kit.fake_servers import MODERN
from tests.kit.gateway import listening, raw_server, time_server
from toolsearch.gateway.config_file import ConfigFile, read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.http import http_app
from toolsearch.gateway.trust.held_results import HeldResult

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
        "toolsearch": {"stateDir": str(state), "passThrough": {"maxTools": 0}, "exposure": {"firstListWaitS": 30}},
    }
    with serving(Gateway(read_gateway_config(config, os.environ)), LONG, "tell the time") as address:
        yield address


@contextmanager
def serving(gateway: Gateway, *queries: str) -> Iterator[str]:
    """The address of *gateway* in a thread of its own, in which a client has searched for *queries*."""
    begun: Future[str] = Future()
    ended = threading.Event()

    async def search(url: str) -> None:
        async with Client(url, mode="legacy") as client:
            await client.list_tools()
            for query in queries:
                await client.call_tool("toolSearchTool", {"query": query})

    async def serve() -> None:
        try:
            async with listening(http_app(gateway), is_alone=False) as url:
                if queries:
                    await search(f"{url}/mcp")
                await gateway.settled()
                begun.set_result(url)
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


@contextmanager
def operators_page(
    browser: Browser, folder: Path, servers: dict[str, Any], monkeypatch: pytest.MonkeyPatch, **section: Any
) -> Iterator[tuple[Page, Gateway]]:
    """The page of an operator, of a gateway that works by a file of *servers*; the page closes and opens with it."""
    monkeypatch.setenv("ANN", "ann-token-0123456789")
    section |= {"stateDir": str(folder / "state"), "principals": {"ann": {"token": "${ANN}", "operator": True}}}
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers, "toolsearch": section}))
    file = ConfigFile(path, os.environ)
    gateway = Gateway(file.read(), file=file)
    with serving(gateway) as address:
        context = browser.new_context(
            base_url=address, http_credentials={"username": "x", "password": os.environ["ANN"]}, **VIEWS["desk"]
        )
        page = context.new_page()
        page.goto("/")
        yield page, gateway
        context.close()


def test_an_operator_approves_one_tool_and_refuses_another_with_one_click_each(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust = {"firstSeen": "quarantine"}
    with operators_page(browser, tmp_path, {"time": time_server()}, monkeypatch, trust=trust) as (page, _):
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
        expect(page.get_by_text("none awaiting approval")).to_be_visible()
        expect(page.get_by_text("refused by ann")).to_be_visible()
        assert violations(page) == []

        page.reload()  # a refusal lasts, and there is a way back
        expect(page.get_by_text("refused by ann")).to_be_visible()
        expect(other).to_be_hidden()
        page.get_by_role("button", name="Approve time__convert_time").click()
        expect(page.locator(".entry[inert]")).to_have_count(1)


def test_a_button_that_has_just_moved_takes_no_click(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is listed above may grow at the moment of the click, and another button come under the pointer."""
    trust = {"firstSeen": "quarantine"}
    with operators_page(browser, tmp_path, {"time": time_server()}, monkeypatch, trust=trust) as (page, gateway):
        button = page.get_by_role("button", name="Approve time__convert_time")
        button.click(trial=True)  # it has come to rest
        reached = """(node) => {
            const { x, y, width, height } = node.getBoundingClientRect();
            return document.elementFromPoint(x + width / 2, y + height / 2) === node;
        }"""
        button.scroll_into_view_if_needed()
        assert button.evaluate(reached)
        page.evaluate("document.querySelector('main').prepend(made('h2', 'More'))")
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        button.scroll_into_view_if_needed()
        assert not button.evaluate(reached)
        button.click()  # waits until it can be reached
        expect(page.locator(".entry[inert]")).to_have_count(1)
        assert list(gateway.registry.held) == ["time__get_current_time"]


def test_an_operator_pauses_adds_and_removes_servers_on_the_page(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    http = {"allowAdding": True}
    with operators_page(browser, tmp_path, {"time": time_server()}, monkeypatch, http=http) as (page, _):
        running = page.locator("#servers")
        page.get_by_role("button", name="Pause time").click()
        expect(page.get_by_text("time: paused", exact=True)).to_be_visible()
        expect(running).not_to_contain_text("stdio")
        page.get_by_role("button", name="Resume time").click()
        expect(running).to_contain_text("stdio")

        page.get_by_label("Name").fill("raw")
        page.get_by_label("Entry").fill('{"command": 7}')
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.get_by_role("status").filter(has_text="could not be used")).to_be_visible()
        page.get_by_label("Entry").fill(json.dumps(raw_server()))
        page.get_by_role("button", name="Add", exact=True).click()
        expect(page.get_by_role("button", name="Pause raw")).to_be_visible()
        assert sideways(page) == 0
        assert violations(page) == []

        page.once("dialog", lambda dialog: dialog.dismiss())
        page.get_by_role("button", name="Remove raw").click()
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Remove raw").click()
        expect(page.get_by_role("status").filter(has_text="raw: removed")).to_be_visible()
        page.get_by_role("button", name="Reload the file").click()
        expect(page.get_by_role("status").filter(has_text="works by the file")).to_be_visible()
    assert list(json.loads((tmp_path / "mcp.json").read_text())["mcpServers"]) == ["time"]


def test_nobody_is_shown_a_form_that_the_gateway_would_refuse(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with operators_page(browser, tmp_path, {"time": time_server()}, monkeypatch) as (page, _):
        expect(page.get_by_role("button", name="Pause time")).to_be_visible()
        expect(page.get_by_role("button", name="Reload the file")).to_be_visible()
        expect(page.locator("#add")).to_be_hidden()


def test_an_operator_reads_a_held_result_and_releases_it(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with operators_page(browser, tmp_path, {}, monkeypatch) as (page, gateway):

        async def hold(text: str) -> HeldResult:
            params = {"name": "read", "arguments": {"text": text}}
            content = {"content": [{"type": "text", "text": text}]}
            return await gateway.held_results.hold(MODERN, "hub", "tools/call", params, content, ["pressures"])

        with ThreadPoolExecutor() as threads:  # the browser has an event loop in this one
            texts = ("<b>Do it now.</b>", "Do the other.")
            one, two = (threads.submit(asyncio.run, hold(text)).result() for text in texts)
        page.get_by_role("button", name=f"Show result {one.id}").click()
        expect(page.get_by_text("<b>Do it now.</b>")).to_be_visible()
        expect(page.get_by_text("Do the other.")).to_be_hidden()
        assert violations(page) == []
        page.get_by_role("button", name=f"Release result {one.id}").click()
        expect(page.locator(".entry[inert]")).to_have_count(1)
        page.get_by_role("button", name=f"Discard result {two.id}").click()
        expect(page.locator(".entry[inert]")).to_have_count(2)
    assert [each.decision.value for each in (one, two)] == ["released", "discarded"]
