"""The page of receipts."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

from tests.kit.pages import sign_in
from tests.kit.service import NOW_S, serving
from toolsearch.access.scopes import Scope
from toolsearch.service.keys.page import key_names
from toolsearch.service.web.callers import Visit
from toolsearch.storage.activity import CallNote, Receipt


async def test_a_receipt_shows_the_name_of_its_key_and_the_second_of_the_call(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        key, stored = kit.service.keys.make("acme", "the night shift", ("call",))
        kit.service.storage.receipts.append("acme", [_receipt(stored.id)])
        browser = kit.client()
        await sign_in(browser, key)
        page = (await browser.get("/pages/receipts")).text

    assert ">the night shift</a>" in page
    assert ">2027-01-15 08:00:07 UTC</time>" in page


async def test_a_key_that_is_gone_is_shown_by_its_whole_id(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        kit.service.storage.receipts.append("acme", [_receipt("key_of_long_ago_0123456789")])
        browser = kit.client()
        await sign_in(browser, kit.key("acme", "admin"))
        page = (await browser.get("/pages/receipts")).text

    assert ">key_of_long_ago_0123456789</a>" in page


def _receipt(key: str) -> Receipt:
    note = CallNote("send_mail", "tool", "ab", "allowed", "ok", "", 5.0)
    return Receipt(*astuple(note), "rec_1", key, "", "catalog/default", "", NOW_S + 7)


@pytest.mark.parametrize(
    ("scope", "rules", "known"),
    [("call", {}, ["own"]), ("admin", {"allow": ["a"]}, ["own"]), ("admin", {}, ["own", "other"])],
)
async def test_who_does_not_see_all_keys_is_told_no_names_of_others(
    tmp_path: Path, scope: Scope, rules: dict[str, Any], known: list[str]
) -> None:
    async with serving(tmp_path) as kit:
        token, own = kit.service.keys.make("acme", "own", (scope,), **rules)
        _, other = kit.service.keys.make("acme", "other", ("call",))
        grant = await kit.service.of_token(token)
        assert grant
        names = await key_names(kit.service, Visit("visit", grant, "token"), [own.id, other.id])

    assert list(names.values()) == known
