"""Providers of model APIs: set, shown without their keys, and forgotten; each tenant has its own."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.kit.pages import HOST, sign_in
from tests.kit.service import ServiceKit, codes, serving
from toolsearch.errors import SealError, UnknownRecordError
from toolsearch.service.providers import PROVIDER, Provider
from toolsearch.service.sealing import reseal_all
from toolsearch.storage.seal import Seal, is_sealed

KEY = "sk-hunter2"
HERE = {"api": "anthropic", "base_url": "http://127.0.0.1:9999/", "key": KEY}
OLD, NEW = b"o" * 32, b"n" * 32


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[ServiceKit]:
    async with serving(tmp_path, seal=Seal([OLD]), outbound={"allowed_networks": ["127.0.0.0/8"]}) as running:
        yield running


async def test_a_provider_is_shown_without_its_key_and_stands_in_place_of_an_earlier_one(kit: ServiceKit) -> None:
    admin = kit.client(kit.key("acme", "admin"))
    first = await admin.post("/v1/providers", json={**HERE, "key": "sk-before"})
    kit.clock.now_s += 60
    second = await admin.post("/v1/providers", json=HERE)
    listed = await admin.get("/v1/providers")

    assert (first.status_code, second.status_code) == (200, 200)
    assert second.json()["api"] == "anthropic"
    assert second.json()["base_url"] == "http://127.0.0.1:9999"
    assert second.json()["changed_at"] > first.json()["changed_at"]
    assert listed.json() == {"items": [second.json()], "next": None}
    assert KEY not in first.text + second.text + listed.text
    assert await kit.service.providers.get("acme", "anthropic") == Provider("anthropic", "http://127.0.0.1:9999", KEY)


@pytest.mark.parametrize(
    "given", ["https://127.0.0.1/openai/v1", "https://127.0.0.1/openai/v1/", "https://127.0.0.1/openai"]
)
async def test_an_address_may_be_given_as_it_is_given_to_an_sdk(kit: ServiceKit, given: str) -> None:
    admin = kit.client(kit.key("acme", "admin"))
    answer = await admin.post("/v1/providers", json={"api": "openai", "base_url": given, "key": KEY})

    assert answer.json()["base_url"] == "https://127.0.0.1/openai"


async def test_a_provider_that_was_forgotten_is_gone(kit: ServiceKit) -> None:
    admin = kit.client(kit.key("acme", "admin"))
    await admin.post("/v1/providers", json=HERE)

    assert (await admin.delete("/v1/providers/anthropic")).status_code == 204
    assert (await admin.get("/v1/providers")).json()["items"] == []
    assert codes([await admin.delete("/v1/providers/anthropic")]) == [(404, "not_found")]
    with pytest.raises(UnknownRecordError):
        await kit.service.providers.get("acme", "anthropic")


async def test_the_page_of_keys_shows_providers_to_those_who_may_change_them(kit: ServiceKit) -> None:
    await kit.client(kit.key("acme", "admin")).post("/v1/providers", json=HERE)
    shown: list[bool] = []
    for key in (kit.key("acme", "admin"), kit.key("acme", "admin", allow=["git__*"]), kit.key("other", "admin")):
        browser = kit.client(origin=HOST)
        await sign_in(browser, key)
        page = (await browser.get("/pages/keys")).text
        assert KEY not in page
        shown.append("http://127.0.0.1:9999" in page)
    assert shown == [True, False, False]


async def test_no_tenant_has_the_provider_of_another_nor_of_an_earlier_tenant_of_its_name(kit: ServiceKit) -> None:
    operator = kit.client(kit.operator)
    await operator.post("/v1/tenants", json={"name": "acme"})
    await kit.client(kit.key("acme", "admin")).post("/v1/providers", json=HERE)
    others = kit.client(kit.key("other", "admin"))

    assert (await others.get("/v1/providers")).json()["items"] == []
    assert (await others.delete("/v1/providers/anthropic")).status_code == 404
    await operator.delete("/v1/tenants/acme")
    await operator.post("/v1/tenants", json={"name": "acme"})
    assert (await kit.client(kit.key("acme", "admin")).get("/v1/providers")).json()["items"] == []


async def test_only_a_key_that_may_do_everything_knows_and_changes_providers(kit: ServiceKit) -> None:
    agent = kit.client(kit.key("acme", "search", "call", "read-catalog", "write-catalog"))
    bounded = kit.client(kit.key("acme", "admin", allow=["git__*"]))
    for client, code in (
        (agent, "not_permitted"),
        (bounded, "whole_reach_needed"),
        (kit.client(), "not_authenticated"),
    ):
        answers = [
            await client.post("/v1/providers", json=HERE),
            await client.get("/v1/providers"),
            await client.delete("/v1/providers/anthropic"),
        ]
        assert {code for _, code in codes(answers)} == {code}


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"base_url": "http://10.0.0.5/v1"}, "unsafe_url"),
        ({"base_url": "http://169.254.169.254"}, "unsafe_url"),
        ({"base_url": "https://me:secret@127.0.0.1"}, "unsafe_url"),
        ({"base_url": "file:///etc/passwd"}, "bad_request"),
        ({"base_url": "https://127.0.0.1/?key=x"}, "bad_request"),
        ({"key": "sk\r\nx-admin: 1"}, "bad_request"),
        ({"key": ""}, "bad_request"),
        ({"api": "gemini"}, "bad_request"),
    ],
)
async def test_what_leads_within_or_breaks_a_header_is_refused_and_not_kept(
    kit: ServiceKit, wrong: dict[str, str], code: str
) -> None:
    admin = kit.client(kit.key("acme", "admin"))
    answer = await admin.post("/v1/providers", json={**HERE, **wrong})

    assert codes([answer]) == [(422, code)]
    assert (await admin.get("/v1/providers")).json()["items"] == []


async def test_the_key_of_a_provider_is_in_the_store_only_sealed_and_is_sealed_anew_with_the_rest(
    kit: ServiceKit, tmp_path: Path
) -> None:
    await kit.client(kit.key("acme", "admin")).post("/v1/providers", json=HERE)
    record = kit.service.storage.records.get("acme", PROVIDER, "anthropic", at_s=kit.clock.now_s)
    assert record is not None
    assert is_sealed(str(record.document["sealed"]))
    with closing(sqlite3.connect(tmp_path / "toolsearch.db")) as database:
        assert KEY not in "".join(database.iterdump())

    assert reseal_all(kit.service.storage, Seal([NEW, OLD])).unreadable == 0
    with pytest.raises(SealError):  # this service has the old key alone
        await kit.service.providers.get("acme", "anthropic")


async def test_the_audit_says_who_has_changed_a_provider_and_nothing_of_its_key(kit: ServiceKit) -> None:
    admin = kit.client(kit.key("acme", "admin"))
    await admin.post("/v1/providers", json=HERE)
    await admin.delete("/v1/providers/anthropic")
    audit = await admin.get("/v1/audit")

    actions = [(each["action"], each["subject"], each["outcome"]) for each in audit.json()["items"]]
    assert actions == [("DELETE /providers/{api}", "anthropic", "done"), ("POST /providers", "", "done")]
    assert KEY not in audit.text
