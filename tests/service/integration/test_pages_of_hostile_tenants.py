"""The pages in a real Chromium, with texts that are as long and as hidden as the service takes."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page

from tests.kit import hostile_data
from tests.kit.browser import Looked, Site, chromium, looking, served, sideways
from tests.kit.hostile_data import CATALOG, LONG, NAME, TOOLSET
from tests.kit.page_data import NOW_S
from toolsearch.service.service import Service

PICTURES = os.environ.get("TOOLSEARCH_SCREENSHOTS", "")
WIDTHS = (360, 768, 1_440)
LIVE = re.compile("[\u202a-\u202e\u2066-\u2069\u200b-\u200f\u00ad\ufeff\x00-\x08]")
PAGES = {
    "playground": f"/pages/playground?q={quote(LONG)}+count+sheep&corpus=catalog/{CATALOG}",
    "why": f"/pages/playground/why?q={quote(LONG)}+sheep&corpus=catalog/{CATALOG}&tool={NAME}",
    "why-unknown": f"/pages/playground/why?q=count+sheep&corpus=catalog/{CATALOG}&tool={quote(LONG)}",
    "tool": f"/pages/tools/catalog/{CATALOG}/{NAME}",
    "catalogs": "/pages/catalogs",
    "catalog": f"/pages/catalogs/{CATALOG}",
    "catalog-filtered": f"/pages/catalogs/{CATALOG}?q={'w' * 200}",
    "toolsets": "/pages/toolsets",
    "toolset": f"/pages/toolsets/{TOOLSET}",
    "toolset-edit": f"/pages/toolsets/{TOOLSET}/edit",
    "toolset-undo": f"/pages/toolsets/{TOOLSET}/versions/1",
    "toolset-new": "/pages/new-toolset",
    "import": f"/pages/catalogs/{CATALOG}/import",
    "imports": "/pages/imports",
    "job": "/pages/imports {first}",
    "approvals": "/pages/approvals",
    "sessions": "/pages/sessions",
    "session": "/pages/sessions {first}",
    "usage": "/pages/usage",
    "misses": f"/pages/misses?corpus=catalog/{CATALOG}",
    "receipts": "/pages/receipts",
    "audit": "/pages/audit",
    "audit-filtered": f"/pages/audit?holding={quote(LONG[:290])}",
    "keys": "/pages/keys",
    "tenants": "/pages/tenants",
    "nothing": f"/pages/{quote(LONG)}",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    keys: list[str] = []

    @asynccontextmanager
    async def filled(service: Service, _key: str) -> AsyncIterator[None]:
        async with hostile_data.filled(service) as key:
            keys.append(key)
            yield

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with served(tmp_path_factory.mktemp("service"), lambda: NOW_S, filled) as running:
            yield Site(running.service, running.url, keys[0])


@pytest.fixture(scope="module")
def looked(site: Site) -> Iterator[Looked]:
    with chromium() as browser, looking(browser, site, key=site.key) as signed_in:
        yield signed_in


@pytest.mark.parametrize("name", PAGES)
def test_no_page_scrolls_sideways_or_shows_what_hides(looked: Looked, name: str) -> None:
    page = looked.page
    page.set_viewport_size({"width": WIDTHS[0], "height": 844})
    _open(page, name)
    page.evaluate("document.querySelectorAll('details').forEach((each) => each.open = true)")
    page.wait_for_load_state("networkidle")

    assert LIVE.search(page.title() + page.locator("body").inner_text()) is None
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 844})
        _picture(page, name, width)
        assert (width, sideways(page), _cut_off(page)) == (width, 0, [])
    looked.require_nothing_wrong()


def _open(page: Page, name: str) -> None:
    path = PAGES[name]
    if path.endswith(" {first}"):  # what the first row of that page leads to
        page.goto(path.removesuffix(" {first}"))
        path = page.locator("main tbody a").first.get_attribute("href") or ""
    page.goto(path)


def _cut_off(page: Page) -> list[str]:
    """What stands out of the card that it is in, where one cannot scroll to it."""
    found: list[str] = page.evaluate(_CUT_OFF)
    return found


def _picture(page: Page, name: str, width: int) -> None:
    if PICTURES:
        folder = Path(PICTURES)
        folder.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=folder / f"hostile-{name}-{width}.png", animations="disabled", full_page=True)


_CUT_OFF = """
() => [...document.querySelectorAll("main .card *")].filter((element) => {
  if (!element.checkVisibility({visibilityProperty: true})) return false;
  if (element.closest(".hidden, thead, option, svg, .scroll")) return false;
  const box = element.getBoundingClientRect();
  return box.width > 1 && box.right > element.closest(".card").getBoundingClientRect().right + 1;
}).map((element) => element.outerHTML.slice(0, 120))
"""
