"""The form for imports: files are taken, and secrets are sealed and never given back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.kit.pages import HOST, form_token, sign_in
from tests.kit.service import ServiceKit, serving

IMPORT = "/pages/catalogs/default/import"
SECRETS = ("s3cret-header", "s3cret-reading", "s3cret-token", "s3cret-password")
OPENAPI = {
    "openapi": "3.0.0",
    "info": {"title": "Sheep", "version": "1"},
    "servers": [{"url": "https://sheep.test"}],
    "paths": {"/sheep": {"get": {"operationId": "count_sheep", "summary": "Counts all sheep."}}},
    "components": {
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}, "basic": {"type": "http", "scheme": "basic"}}
    },
}
FIELDS = {
    "kind": "openapi",
    "name": "sheep",
    "headers": f"X-Flock: {SECRETS[0]}\r\n\r\nX-Plain: a: b",
    "document_headers": f"X-Read: {SECRETS[1]}",
    "scheme-0": "token",
    "secret-0": SECRETS[2],
    "scheme-2": "basic",
    "user-2": "ann",
    "secret-2": SECRETS[3],
}


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[ServiceKit]:
    async with serving(tmp_path) as running:
        await running.catalog(running.operator, tools=[])
        yield running


@pytest.fixture
async def browser(kit: ServiceKit) -> httpx.AsyncClient:
    client = kit.client(origin=HOST)
    await sign_in(client, kit.operator)
    return client


def _stored(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.glob("toolsearch.db*"))


async def _sent(browser: httpx.AsyncClient, file: tuple[str, bytes] = ("", b""), **fields: str) -> httpx.Response:
    token = form_token(await browser.get(IMPORT))
    return await browser.post(IMPORT, data={"form_token": token, **fields}, files={"file": file})


async def _names(kit: ServiceKit) -> list[str]:
    for job in await kit.service.imports.jobs.page("default", limit=10):
        await kit.service.imports.jobs.ended("default", job.id)
    return [each.name for each in kit.service.storage.contents.page("default", "default", limit=10)]


async def test_a_file_is_imported(kit: ServiceKit, browser: httpx.AsyncClient) -> None:
    """Larger than a field of a form is by default, and with the mark that some editors put first."""
    entries = [{"name": "good", "description": "x" * 2_000_000}]
    content = "\ufeff".encode() + json.dumps(entries).encode()
    answer = await _sent(browser, ("tools.json", content), kind="listing", name="mine", prefix="")

    assert answer.status_code == 303, answer.text
    assert answer.headers["location"].startswith("/pages/imports/")
    assert len(await _names(kit)) == 1


async def test_a_long_text_is_imported_as_before(kit: ServiceKit, browser: httpx.AsyncClient) -> None:
    text = json.dumps([{"name": "good", "description": "x" * 2_000_000}])
    answer = await _sent(browser, kind="listing", name="mine", document=text)

    assert answer.status_code == 303, answer.text
    assert len(await _names(kit)) == 1


async def test_headers_and_credentials_are_sealed_and_on_no_page(
    kit: ServiceKit, browser: httpx.AsyncClient, tmp_path: Path
) -> None:
    answer = await _sent(browser, ("api.json", json.dumps(OPENAPI).encode()), **FIELDS)
    assert answer.status_code == 303, answer.text
    await _names(kit)
    source = await kit.service.imports.sources.get("default", "default", "sheep")
    pages = [await browser.get(path) for path in (answer.headers["location"], "/pages/catalogs/default", IMPORT)]
    stored = _stored(tmp_path)

    kept = kit.service.imports.sources.secrets_of(source)
    assert kept.headers == {"X-Flock": SECRETS[0], "X-Plain": "a: b"}
    assert kept.document_headers == {"X-Read": SECRETS[1]}
    assert kept.credentials == {"token": SECRETS[2], "basic": ["ann", SECRETS[3]]}
    assert source.credential_names == ("X-Flock", "X-Plain", "X-Read", "basic", "token")
    assert b"count_sheep" in stored
    for secret in SECRETS:
        assert secret.encode() not in stored
        assert all(secret not in page.text for page in pages)


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"name": "No Name"}, "name:"),
        ({"headers": f"X-Good: a\r\nBearer {SECRETS[0]}"}, "Line 2 of the headers has no colon"),
        ({"headers": f"X y: {SECRETS[0]}"}, "headers.X y"),
        ({"headers": f"X-A: {SECRETS[0]}\r\nX-A: {SECRETS[0]}"}, "Line 2 of the headers names a header once more"),
        ({"scheme-1": "token", "secret-1": "other"}, "has two credentials"),
        ({"secret-1": "other"}, "A credential needs the name of its security scheme"),
        ({"kind": "listing"}, "headers"),
        ({"kind": "mcp", "url": "https://sheep.test"}, "credentials"),
        ({"document": "[]"}, "Give a file or a text, not both"),
        ({"url": "https://sheep.test"}, "give either the document or its url"),
    ],
)
async def test_a_form_that_is_refused_gives_no_secret_back(
    kit: ServiceKit, browser: httpx.AsyncClient, changes: dict[str, Any], wrong: str
) -> None:
    answer = await _sent(browser, ("api.json", json.dumps(OPENAPI).encode()), **{**FIELDS, **changes})

    assert answer.status_code == 422
    assert wrong in answer.text
    assert "put them in again" in answer.text
    assert all(secret not in answer.text for secret in SECRETS)
    assert await kit.service.imports.sources.of_catalog("default", "default") == []


async def test_a_file_that_is_no_text_is_told_as_such(kit: ServiceKit, browser: httpx.AsyncClient) -> None:
    answer = await _sent(browser, ("tools.xls", b"\xff\xfe\x00"), kind="listing", name="mine")

    assert answer.status_code == 422
    assert "is not UTF-8" in answer.text


async def test_a_document_without_a_file_or_a_text_is_awaited(kit: ServiceKit, browser: httpx.AsyncClient) -> None:
    """Browsers send a file without a name where none was chosen."""
    answer = await _sent(browser, kind="listing", name="mine")

    assert answer.headers["location"] == "/pages/catalogs/default"


async def test_nobody_sends_a_large_form_without_having_signed_in(kit: ServiceKit) -> None:
    stranger = kit.client(origin=HOST)
    for cookie in ("", "toolsearch_visit=made-up"):
        sent = {"form_token": "x", "document": "x" * 70_000}
        answer = await stranger.post(IMPORT, data=sent, headers={"cookie": cookie})

        assert answer.status_code == 413


async def test_a_server_is_added_at_which_each_user_logs_in(kit: ServiceKit, browser: httpx.AsyncClient) -> None:
    url = "https://x.invalid/mcp"
    assert (await _sent(browser, kind="mcp", name="tracker", url=url, per_user="yes")).status_code == 303
    assert (await _sent(browser, kind="mcp", name="other", url=url)).status_code == 303
    found = await kit.service.imports.sources.of_catalog("default", "default")
    assert {each.name: each.per_user for each in found} == {"other": False, "tracker": True}
