"""Skills, prompts and resources on the pages: listed with their kinds and files, found, and read by hand."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from tests.kit.pages import sign_in
from tests.kit.service import ServiceKit, serving
from tests.service.test_contents import PAY_BACK, entry, lists, written


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[ServiceKit]:
    async with serving(tmp_path / "service") as made:
        await made.catalog(made.key("acme"), tools=[PAY_BACK])
        skills = written(tmp_path / "skills").load().tools
        await lists(made, "acme", *skills, entry("team__thanks", "A letter of thanks for a refund.", "prompt"))
        yield made


async def browser_of(kit: ServiceKit, **rules: list[str]) -> httpx2.AsyncClient:
    browser = kit.client()
    await sign_in(browser, kit.key("acme", **rules))
    return browser


async def text(browser: httpx2.AsyncClient, path: str) -> str:
    page = await browser.get(f"/pages{path}")
    assert page.status_code == 200, page.text
    return re.sub(r"<wbr>", "", page.text)


async def test_a_catalog_lists_them_beside_its_tools_with_kinds_and_files(kit: ServiceKit) -> None:
    browser = await browser_of(kit)
    page = await text(browser, "/catalogs/default")
    contents = page.partition('id="contents"')[2]
    assert "pay_back" not in contents
    assert re.search(
        r"team__refund.*skill.*2 files.*SKILL\.md.*scripts/check\.py.*team__thanks.*prompt", contents, re.DOTALL
    )
    filtered = (await text(browser, "/catalogs/default?q=thanks")).partition('id="contents"')[2]
    assert "1 of 2 fit" in filtered
    assert "team__refund" not in filtered


async def test_a_page_shows_only_what_the_key_reaches(kit: ServiceKit) -> None:
    browser = await browser_of(kit, allow=["*"], deny=["kind:skill"])
    assert "refund</" not in (await text(browser, "/catalogs/default")).replace("thanks", "")
    assert (await browser.get("/pages/tools/catalog/default/team__refund")).status_code == 404
    assert "team__refund" not in await text(browser, "/playground?q=refund&corpus=catalog/default&kind=skill")


async def test_the_page_of_a_skill_has_its_files_and_frontmatter(kit: ServiceKit) -> None:
    page = await text(await browser_of(kit), "/tools/catalog/default/team__refund")
    assert "Apache-2.0" in page
    assert re.search(r'id="files".*SKILL\.md.*scripts/check\.py.*17', page, re.DOTALL)
    assert "Read it by hand" in page
    assert "tokens</span>" not in page


async def test_the_playground_finds_what_is_of_the_chosen_kind(kit: ServiceKit) -> None:
    browser = await browser_of(kit)
    asked = "/playground?q=refund+a+customer&corpus=catalog/default"
    assert 'tools/catalog/default/team__refund">' in await text(browser, asked)
    assert "team__thanks" not in await text(browser, asked)
    assert "team__refund" not in await text(browser, f"{asked}&kind=prompt")
    assert 'tools/catalog/default/team__thanks">' in await text(browser, f"{asked}&kind=prompt")
    assert (await browser.get("/pages/playground?kind=what")).status_code == 422
    why = await text(browser, "/playground/why?q=refund+a+customer&corpus=catalog/default&tool=team__refund")
    assert "Place 1" in why


async def test_a_toolset_and_its_form_name_skills_with_their_kind(kit: ServiceKit) -> None:
    browser = await browser_of(kit)
    token = re.search(r'name="form_token" value="([0-9a-f]{64})"', await text(browser, "/new-toolset"))
    assert token is not None
    sent = {"form_token": token[1], "name": "team", "do": "find", "find-catalog": "default", "find": "refund"}
    origin = {"origin": "http://127.0.0.1:8080"}
    assert 'value="default/team__refund"' in (await browser.post("/pages/new-toolset", data=sent, headers=origin)).text
    client = kit.client(kit.key("acme"))
    rules = [{"catalog": "default", "allow": ["kind:skill"]}]
    (await client.post("/v1/toolsets", json={"name": "team", "rules": rules})).raise_for_status()
    assert re.search(r"team__refund.*skill</span>", await text(browser, "/toolsets/team"), re.DOTALL)
    assert "Apache-2.0" in await text(browser, "/tools/toolset/team/team__refund")
    (shown,) = (await client.get("/v1/toolsets/team/tools")).json()["items"]
    assert (shown["name"], shown["kind"], shown["is_callable"]) == ("team__refund", "skill", True)
