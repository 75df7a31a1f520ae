"""The page of tenants, for operators."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.kit.pages import HOST, form_token, sign_in
from tests.kit.service import ServiceKit, serving


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[ServiceKit]:
    async with serving(tmp_path) as running:
        yield running


@pytest.fixture
async def browser(kit: ServiceKit) -> httpx.AsyncClient:
    client = kit.client(origin=HOST)
    await sign_in(client, kit.operator)
    return client


async def _sent(browser: httpx.AsyncClient, path: str, **fields: str) -> httpx.Response:
    token = form_token(await browser.get("/pages/tenants"))
    return await browser.post(path, data={"form_token": token, **fields})


async def test_a_tenant_is_made_with_a_key_that_is_shown_once(kit: ServiceKit, browser: httpx.AsyncClient) -> None:
    made = await _sent(browser, "/pages/tenants", name="acme", description="Who pays.")
    [key] = re.findall(r'value="(ts_[^"]+)"', made.text)
    grant = await kit.service.of_token(key)
    later = (await browser.get("/pages/tenants")).text

    assert grant
    assert (grant.principal.id, grant.is_operator) == ("acme", False)
    assert "Who pays." in later
    assert key not in later


async def test_a_tenant_goes_only_if_its_name_is_typed_once_more(kit: ServiceKit, browser: httpx.AsyncClient) -> None:
    await _sent(browser, "/pages/tenants", name="acme")
    wrong = await _sent(browser, "/pages/tenants/acme/delete", name="acne")
    assert (wrong.status_code, await kit.service.tenants.exists("acme")) == (422, True)

    await _sent(browser, "/pages/tenants/acme/delete", name="acme")
    assert not await kit.service.tenants.exists("acme")


async def test_nobody_deletes_their_own_tenant(kit: ServiceKit, browser: httpx.AsyncClient) -> None:
    answer = await _sent(browser, "/pages/tenants/default/delete", name="default")

    assert answer.status_code == 422
    assert "belongs to that tenant" in answer.text
    assert await kit.service.tenants.exists("default")


@pytest.mark.parametrize(("name", "wrong"), [("default", "There is a tenant of this name already."), ("A b", "name:")])
async def test_a_name_that_cannot_be_used_is_told_beside_the_form(
    browser: httpx.AsyncClient, name: str, wrong: str
) -> None:
    answer = await _sent(browser, "/pages/tenants", name=name, description="Typed.")

    assert answer.status_code == 422
    assert wrong in answer.text
    assert 'value="Typed."' in answer.text


async def test_an_administrator_who_is_no_operator_finds_no_tenants(kit: ServiceKit) -> None:
    client = kit.client(origin=HOST)
    await sign_in(client, kit.key("default", "admin"))
    token = form_token(await client.get("/pages/keys"))
    answers = [
        await client.get("/pages/tenants"),
        await client.post("/pages/tenants", data={"form_token": token, "name": "acme"}),
        await client.post("/pages/tenants/default/delete", data={"form_token": token, "name": "default"}),
    ]

    assert [answer.status_code for answer in answers] == [404] * 3
    assert "/pages/tenants" not in (await client.get("/pages/keys")).text
    assert not await kit.service.tenants.exists("acme")
