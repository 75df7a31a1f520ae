"""The page of the audit."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.kit.pages import sign_in
from tests.kit.service import NOW_S, ServiceKit, serving
from toolsearch.storage.audit import AuditRecord


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[ServiceKit]:
    async with serving(tmp_path) as running:
        key, stored = running.service.keys.make("acme", "the night shift", ("admin",))
        running.operator = key
        for number in range(120):
            outcome = "refused: 403" if number == 7 else "done"
            record = AuditRecord(NOW_S, stored.id, "POST /keys", f"subject-{number:03}", outcome, "acme")
            running.service.storage.audit.append(record)
        other = AuditRecord(NOW_S, "key_gone", "DELETE /catalogs", "theirs", "done", "acme")
        running.service.storage.audit.append(other)
        running.service.storage.audit.append(AuditRecord(NOW_S, "key_x", "POST /keys", "elsewhere", "done", "others"))
        yield running


@pytest.fixture
async def browser(kit: ServiceKit) -> httpx.AsyncClient:
    client = kit.client()
    await sign_in(client, kit.operator)
    return client


def _subjects(page: httpx.Response) -> list[str]:
    return re.findall(r'<td data-label="Subject">([^<]*)<', page.text.replace("<wbr>", ""))


async def test_all_entries_of_the_tenant_are_reached_page_by_page_the_latest_first(browser: httpx.AsyncClient) -> None:
    seen, path = list[str](), "/pages/audit"
    while path:
        page = await browser.get(path)
        seen += _subjects(page)
        found = re.search(r'href="(\?[^"]*before=\d+)">More', page.text)
        path = f"/pages/audit{found[1].replace('&amp;', '&')}" if found else ""

    assert seen == ["theirs", *(f"subject-{number:03}" for number in reversed(range(120)))]


async def test_entries_are_filtered_by_what_they_hold_and_by_key(browser: httpx.AsyncClient) -> None:
    assert _subjects(await browser.get("/pages/audit?holding=REFUSED")) == ["subject-007"]
    assert _subjects(await browser.get("/pages/audit?key=key_gone")) == ["theirs"]
    assert "No entries" in (await browser.get("/pages/audit?key=key_x")).text


async def test_an_entry_shows_the_name_of_its_key(browser: httpx.AsyncClient) -> None:
    page = (await browser.get("/pages/audit?holding=subject-007")).text

    assert ">the night shift</a>" in page
    assert 'chip text bad">refused: 403</span>' in page


@pytest.mark.parametrize("scopes", [("search", "call", "feedback"), ("read-catalog", "write-catalog")])
async def test_the_audit_is_for_administrators(kit: ServiceKit, scopes: tuple[str, ...]) -> None:
    client = kit.client()
    await sign_in(client, kit.service.keys.make("acme", "no administrator", scopes)[0])

    assert (await client.get("/pages/audit")).status_code == 404
