"""A real Chromium, which npm carries, without a window; and a service in a thread for it to look at."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.kit.gateway import SERVERS
from tests.kit.published_servers import NODE
from toolsearch.service.app import make_app
from toolsearch.service.service import Service
from toolsearch.service.settings import ServiceSettings
from toolsearch.storage.sqlite.place import SqliteStorage

# Left out: what would switch off what the tests look for, and a single process does not survive its first context.
_UNWANTED = ("--disable-web-security", "--allow-running-insecure-content", "--single-process")
_SETTINGS = ServiceSettings.model_validate({"outbound": {"allowed_networks": ["127.0.0.0/8"]}})
_AXE = SERVERS / "node_modules" / "axe-core" / "axe.min.js"
_ENVIRONMENT = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}


@contextmanager
def chromium() -> Iterator[Browser]:
    """Skips the test if it is not installed."""
    if NODE is None or not (SERVERS / "node_modules" / "@sparticuz" / "chromium").is_dir():
        pytest.skip("Chromium is not installed: npm ci --prefix tests/mcp_servers")
    told = subprocess.run(
        [NODE, SERVERS / "chromium.mjs"], capture_output=True, text=True, check=True, timeout=60, env=_ENVIRONMENT
    )
    known = json.loads(told.stdout)
    arguments = [each for each in known["args"] if each not in _UNWANTED]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=known["path"], args=arguments, headless=True, env=_ENVIRONMENT
        )
        yield browser
        browser.close()


def sideways(page: Page) -> int:
    """By how many pixels one could scroll sideways."""
    found: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return found


def violations(page: Page) -> list[str]:
    """What axe-core finds: contrast, names, labels, landmarks, order of headings and the like."""
    page.evaluate(_AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [f"{v['id']}: {n['html'][:160]}" for v in found["violations"] for n in v["nodes"]]


@dataclass(frozen=True)
class Site:
    """A service that is served at *url*. *key* is that of its first administrator."""

    service: Service
    url: str
    key: str


@contextmanager
def served(
    folder: Path, clock: Callable[[], float], filled: Callable[[Service, str], AbstractAsyncContextManager[None]]
) -> Iterator[Site]:
    """Serve a service over a socket, from a thread with an event loop of its own.

    filled  given the service and the key of its first administrator; entered before it is served, left after it
    """
    begun: Future[tuple[Site, uvicorn.Server]] = Future()

    async def serve() -> None:
        storage = SqliteStorage(folder / "toolsearch.db")
        try:
            service = Service(_SETTINGS, storage, clock=clock, indexes=folder / "indexes")
            key = service.tenants.first_key() or ""
            with socket.socket() as listening:
                listening.bind(("127.0.0.1", 0))
                url = f"http://127.0.0.1:{listening.getsockname()[1]}"
                server = uvicorn.Server(uvicorn.Config(make_app(service), log_config=None, ws="none"))
                async with filled(service, key):
                    listening.listen()  # from now on connections are accepted, though answered a little later
                    begun.set_result((Site(service, url, key), server))
                    await server.serve([listening])
        except BaseException as error:
            if not begun.done():
                begun.set_exception(error)
            raise
        finally:
            storage.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        site, server = begun.result(timeout=60)
        yield site
        server.should_exit = True
    finally:
        thread.join(timeout=30)


@dataclass
class Looked:
    """A page of one browser, and what went wrong in it."""

    page: Page
    wrong: list[str] = field(default_factory=list)

    def require_nothing_wrong(self) -> None:
        assert not self.wrong
        assert self.page.title() != "owned"


@contextmanager
def looking(browser: Browser, site: Site, *, key: str | None = None, **options: Any) -> Iterator[Looked]:
    """A browser of its own at *site*, signed in with *key* if that is given."""
    context = browser.new_context(base_url=site.url, **options)
    context.set_default_timeout(15_000)
    try:
        looked = Looked(context.new_page())
        _watch(context, looked, site)
        if key is not None:
            looked.page.goto("/pages/sign-in")
            looked.page.get_by_label("API key").fill(key)
            looked.page.keyboard.press("Enter")
            looked.page.wait_for_url(lambda url: "sign-in" not in url)
        yield looked
    finally:
        context.close()


def _watch(context: BrowserContext, looked: Looked, site: Site) -> None:
    own = urlsplit(site.url).netloc
    context.on("request", lambda r: urlsplit(r.url).netloc == own or looked.wrong.append(f"asked {r.url}"))
    context.on("requestfailed", lambda r: "ERR_ABORTED" in (r.failure or "") or looked.wrong.append(f"failed {r.url}"))
    looked.page.on("pageerror", lambda error: looked.wrong.append(f"error {error}"))
    looked.page.on("dialog", lambda dialog: looked.wrong.append(f"dialog {dialog.message}"))
    # An answer that is an error is told of in the console; so is what the policy for contents refuses.
    looked.page.on(
        "console",
        lambda m: (
            m.type in ("error", "warning")
            and "responded with a status of 4" not in m.text
            and looked.wrong.append(m.text)
        ),
    )
