"""Signing in to the pages: what the browser is given, what ends it, and that no other site can send forms."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote

import httpx2 as httpx
import pytest

from tests.kit.pages import HOST, form_token, sign_in
from tests.kit.service import ServiceKit, serving
from toolsearch.service.service import Service
from toolsearch.storage.records import THE_SERVICE


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[ServiceKit]:
    async with serving(tmp_path) as running:
        yield running


@pytest.fixture
def service(kit: ServiceKit) -> Service:
    return kit.service


@pytest.fixture
def browser(kit: ServiceKit) -> httpx.AsyncClient:
    """It keeps cookies, and follows no redirect."""
    return kit.client()


def _key(service: Service, *scopes: str) -> str:
    return service.keys.make("acme", "a person's", scopes)[0]


async def test_whoever_has_not_signed_in_is_sent_there_and_then_back(
    service: Service, browser: httpx.AsyncClient
) -> None:
    asked = await browser.get("/pages/playground?q=a+b")

    assert (asked.status_code, unquote(asked.headers["location"])) == (
        303,
        "/pages/sign-in?next=/pages/playground?q=a+b",
    )

    signed_in = await sign_in(browser, _key(service, "search"), next_path="/pages/playground?q=a+b")

    assert (signed_in.status_code, signed_in.headers["location"]) == (303, "/pages/playground?q=a+b")
    assert (await browser.get("/pages/playground")).status_code == 200


async def test_the_browser_is_given_neither_the_key_nor_its_hash(service: Service, browser: httpx.AsyncClient) -> None:
    key = _key(service, "search")
    stored = service.storage.keys.page("acme", limit=1)[0]

    answer = await sign_in(browser, key)
    cookie = next(each for each in answer.headers.get_list("set-cookie") if each.startswith("toolsearch_visit="))

    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert key not in cookie
    assert stored.sha256 not in cookie


async def test_the_store_holds_no_token_that_a_browser_could_use(service: Service, browser: httpx.AsyncClient) -> None:
    await sign_in(browser, _key(service, "search"))

    [record] = service.storage.records.page(THE_SERVICE, "visit", limit=9, at_s=service.clock())

    assert browser.cookies["toolsearch_visit"] not in str(record)


@pytest.mark.parametrize("key", ["", "ts_wrong", "ключ"])
async def test_a_wrong_key_is_told_as_such_and_signs_nobody_in(browser: httpx.AsyncClient, key: str) -> None:
    answer = await sign_in(browser, key)

    assert answer.status_code == 401
    assert "This key is not accepted" in answer.text
    assert "toolsearch_visit" not in browser.cookies


async def test_a_key_that_is_revoked_ends_what_was_signed_in_with_it(
    service: Service, browser: httpx.AsyncClient
) -> None:
    await sign_in(browser, _key(service, "search"))
    service.storage.keys.revoke("acme", service.storage.keys.page("acme", limit=1)[0].id, at_s=service.clock())

    assert (await browser.get("/pages/playground")).headers["location"].startswith("/pages/sign-in")


async def test_a_visit_ends_after_its_time(service: Service, browser: httpx.AsyncClient, kit: ServiceKit) -> None:
    await sign_in(browser, _key(service, "search"))
    kit.clock.now_s += service.settings.serve.visit_s

    assert (await browser.get("/pages/playground")).headers["location"].startswith("/pages/sign-in")


async def test_signing_out_ends_the_visit_for_a_copy_of_its_cookie_too(
    service: Service, browser: httpx.AsyncClient
) -> None:
    await sign_in(browser, _key(service, "search"))
    copied = browser.cookies["toolsearch_visit"]
    token = form_token(await browser.get("/pages/playground"))

    await browser.post("/pages/sign-out", data={"form_token": token}, headers={"origin": HOST})
    browser.cookies.set("toolsearch_visit", copied, domain="127.0.0.1")

    assert (await browser.get("/pages/playground")).headers["location"].startswith("/pages/sign-in")


@pytest.mark.parametrize("origin", ["https://evil.test", "null", None])
async def test_a_form_from_elsewhere_is_refused(
    service: Service, browser: httpx.AsyncClient, origin: str | None
) -> None:
    await sign_in(browser, _key(service, "search"))
    token = form_token(await browser.get("/pages/playground"))

    sent = await browser.post(
        "/pages/sign-out", data={"form_token": token}, headers={"origin": origin} if origin else {}
    )

    assert sent.status_code == 403
    assert (await browser.get("/pages/playground")).status_code == 200


async def test_a_form_without_its_token_is_refused(service: Service, browser: httpx.AsyncClient) -> None:
    await sign_in(browser, _key(service, "search"))

    for token in ("", "0" * 64):
        sent = await browser.post("/pages/sign-out", data={"form_token": token}, headers={"origin": HOST})
        assert sent.status_code == 403


@pytest.mark.parametrize("elsewhere", ["//evil.test", "https://evil.test/", "/\\evil.test", "evil", "/a\r\nb: c"])
async def test_nobody_is_sent_to_another_site_after_signing_in(
    service: Service, browser: httpx.AsyncClient, elsewhere: str
) -> None:
    answer = await sign_in(browser, _key(service, "search"), next_path=elsewhere)

    assert answer.headers["location"] == "/pages"


async def test_a_page_that_the_key_may_not_see_looks_as_one_that_does_not_exist(
    service: Service, browser: httpx.AsyncClient
) -> None:
    await sign_in(browser, _key(service, "feedback"))
    forbidden = await browser.get("/pages/playground?corpus=catalog/default")
    await sign_in(browser, _key(service, "search"))
    unknown = await browser.get("/pages/playground?q=a&corpus=catalog/nowhere")

    def shown(answer: httpx.Response) -> str:
        return answer.text[answer.text.index("<main") :]

    assert (forbidden.status_code, unknown.status_code) == (404, 404)
    assert shown(forbidden) == shown(unknown)


async def test_the_cookie_of_the_pages_opens_no_door_of_the_api(service: Service, browser: httpx.AsyncClient) -> None:
    await sign_in(browser, _key(service, "admin"))

    assert (await browser.post("/v1/search", json={"queries": ["a"]})).status_code == 401


async def test_pages_allow_nothing_from_elsewhere_and_are_not_kept(browser: httpx.AsyncClient) -> None:
    headers = (await browser.get("/pages/sign-in")).headers

    assert "default-src 'self'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(("chosen", "shown"), [("dark", ' data-theme="dark"'), ("light", ' data-theme="light"')])
async def test_the_scheme_that_one_chooses_stays(browser: httpx.AsyncClient, chosen: str, shown: str) -> None:
    assert "data-theme" not in (await browser.get("/pages/sign-in")).text

    await browser.post("/pages/theme", data={"theme": chosen, "next": "/pages/sign-in"})

    assert shown in (await browser.get("/pages/sign-in")).text
