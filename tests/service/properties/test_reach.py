"""Whatever a key with rules asks for, it is shown and changes nothing of the tools that its rules leave out."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.kit.pages import HOST, form_token, sign_in
from tests.kit.service import ServiceKit, codes, serving
from tests.kit.service_routes import Operation, operations, page_operations
from toolsearch.access.scopes import Scope

MARK = "zebra"  # is in the name of each tool that the keys below do not reach, and in nothing else that they may see
HIDDEN = "zebra_wipe"
TOOLS: list[dict[str, Any]] = [
    {"name": "horse_count", "description": "Count them all."},
    {
        "name": HIDDEN,
        "description": "Count the zebras, and wipe them out.",
        "tags": ["risky"],
        "annotations": {"destructiveHint": True},
    },
]
OWN_RULE = "zebra_w*"  # a key is shown its own rules, and those of the keys that it makes
OTHERS = ("audit", "figures")  # what else may change
RULES: list[dict[str, Any]] = [
    {"allow": ["horse_*"]},
    {"deny": [OWN_RULE]},
    {"deny": ["tag:risky"]},
    {"deny": ["class:destructive"]},
]
ABOUT_ALL = {  # what no key with rules may use: it is about all tools, also those that come later
    "get /v1/audit",
    "get /v1/audit/chain",
    "get /v1/catalogs/{catalog}/approvals/approved",
    "post /v1/catalogs/{catalog}/approvals",
    "post /v1/catalogs/{catalog}/approvals/refuse",
    "post /v1/catalogs/{catalog}/approvals/revoke",
    "get /v1/catalogs/{catalog}/refused",
    "get /v1/catalogs/{catalog}/servers",
    "get /v1/catalogs/{catalog}/sources",
    "post /v1/catalogs/{catalog}/sources",
    "get /v1/catalogs/{catalog}/sources/{source}",
    "delete /v1/catalogs/{catalog}/sources/{source}",
    "put /v1/catalogs/{catalog}/sources/{source}/document",
    "post /v1/catalogs/{catalog}/sources/{source}/refresh",
    "patch /v1/catalogs/{catalog}",
    "delete /v1/catalogs/{catalog}",
    "get /v1/jobs",
    "get /v1/jobs/{job}",
    "get /v1/jobs/{job}/events",
    "post /v1/jobs/{job}/cancel",
    "get /v1/misses",
    "delete /v1/misses",
    "get /v1/providers",
    "post /v1/providers",
    "delete /v1/providers/{api}",
    "get /v1/tenants",
    "post /v1/tenants",
    "delete /v1/tenants/{tenant}",
    "get /v1/tenants/{tenant}/keys",
    "post /v1/tenants/{tenant}/keys",
    "delete /v1/tenants/{tenant}/keys/{key_id}",
    "post /v1/toolsets",
    "patch /v1/toolsets/{toolset}",
    "delete /v1/toolsets/{toolset}",
}

PAGES_ABOUT_ALL = {  # the same for pages
    "GET /pages/audit",
    "GET /pages/catalogs/{name}/import",
    "GET /pages/imports",
    "GET /pages/imports/{job_id}",
    "GET /pages/imports/{job_id}/events",
    "GET /pages/misses",
    "GET /pages/new-toolset",
    "GET /pages/tenants",
    "GET /pages/toolsets/{name}/edit",
    "GET /pages/toolsets/{name}/versions/{number}",
    "POST /pages/approvals/{catalog}/approve",
    "POST /pages/approvals/{catalog}/refuse",
    "POST /pages/approvals/{catalog}/revoke",
    "POST /pages/catalogs/{name}/delete",
    "POST /pages/catalogs/{name}/import",
    "POST /pages/catalogs/{name}/sources/{source}/delete",
    "POST /pages/catalogs/{name}/sources/{source}/refresh",
    "POST /pages/imports/{job_id}/cancel",
    "POST /pages/new-toolset",
    "POST /pages/tenants",
    "POST /pages/tenants/{tenant}/delete",
    "POST /pages/toolsets/{name}/delete",
    "POST /pages/toolsets/{name}/edit",
    "POST /pages/toolsets/{name}/versions/{number}",
}


@dataclass
class World:
    """A tenant where a key without rules has left a trace of a hidden tool wherever one can be left."""

    kit: ServiceKit
    folder: Path
    ids: dict[str, str]
    whole: httpx2.AsyncClient

    async def ask(self, client: httpx2.AsyncClient, operation: Operation) -> httpx2.Response:
        body = operation.body_with(self.ids)
        asked = {} if body is None else {"json": body}
        return await client.request(operation.method, operation.url(self.ids), **asked)

    def shown(self, operation: Operation, answer: httpx2.Response) -> str:
        """What the answer tells besides what it was asked."""
        names = [name for name in self.ids if name in operation.parameters or name in (operation.body or ())]
        text = answer.text.replace(OWN_RULE, "RULE")
        for name in names:
            text = text.replace(self.ids[name], "ID")
        return text

    def rows(self) -> list[str]:
        """All that the store has of hidden tools, and the description of the catalog."""
        with closing(sqlite3.connect(self.folder / "toolsearch.db")) as database:
            lines = [line for line in database.iterdump() if MARK in line or "A stable" in line]
        return [line for line in lines if not line.startswith(tuple(f'INSERT INTO "{each}"' for each in OTHERS))]


@asynccontextmanager
async def world(folder: Path) -> AsyncGenerator[World]:
    async with serving(folder, rates={"requests": 1_000_000}) as kit:
        whole = kit.client(kit.operator)
        refused: dict[str, Any] = {"name": "zebra count", "description": "No tool has such a name.", "inputSchema": 1}
        members: list[dict[str, Any]] = [
            {"catalog": "default", "tool": "horse_count"},
            {"catalog": "default", "tool": HIDDEN, "name": "zebra_shown"},
            {"catalog": "default", "tool": "zebra_gone"},
        ]
        rules: list[dict[str, Any]] = [{"catalog": "default", "allow": ["zebra_*"]}]
        call: dict[str, Any] = {"catalog": "default", "name": HIDDEN, "arguments": {}}
        answers = [
            await whole.post("/v1/catalogs", json={"name": "default", "description": "A stable."}),
            await whole.post("/v1/catalogs/default/tools", json=TOOLS),
            job := await whole.post(
                "/v1/catalogs/default/sources", json={"kind": "listing", "name": "other", "document": [refused]}
            ),
            key := await whole.post("/v1/keys", json={"name": "theirs", "allow": ["zebra_*"]}),
            session := await whole.post(
                "/v1/sessions", json={"catalog": "default", "pins": [HIDDEN], "deny": ["zebra_x"]}
            ),
            await whole.post("/v1/toolsets", json={"name": "team", "tools": members, "rules": rules}),
            handed := await whole.post("/v1/calls", json=call),
            await whole.patch(f"/v1/catalogs/default/tools/{HIDDEN}", json={"title": "Wipe"}),
            await whole.post(
                "/v1/feedback",
                json={"catalog": "default", "query": "count zebras", "outcome": "wrong", "tool": HIDDEN},
            ),
        ]
        for answer in answers:
            answer.raise_for_status()
        job_id = job.json()["job"]["id"]
        await whole.get(f"/v1/jobs/{job_id}/events")
        await kit.service.activity.settled()
        ids = {
            "catalog": "default",
            "tool": HIDDEN,
            "source": "other",
            "job": job_id,
            "toolset": "team",
            "number": "1",
            "call": handed.json()["id"],
            "key_id": key.json()["id"],
            "session": session.json()["id"],
            "tenant": "default",
            "api": "openai",
        }
        yield World(kit, folder, ids, whole)


@pytest.mark.parametrize("rules", RULES, ids=str)
async def test_no_operation_shows_or_changes_what_is_out_of_reach(tmp_path: Path, rules: dict[str, Any]) -> None:
    async with world(tmp_path) as here:
        limited = here.kit.client(here.kit.key("default", **rules, is_operator=True))
        await limited.get("/v1/me")
        await here.kit.service.keys.aclose()  # so that its last use is written down
        before = here.rows()
        refused, shown, changed = set[str](), list[object](), list[object]()
        for operation in operations(here.kit.app):
            answer = await here.ask(limited, operation)
            if answer.status_code == 403 and answer.json()["code"] == "whole_reach_needed":
                refused.add(str(operation))
            if MARK in here.shown(operation, answer):
                shown.append((str(operation), answer.status_code, answer.text))
            if lost := set(before) - set(here.rows()):
                changed.append((str(operation), answer.status_code, lost))
                before = here.rows()
    assert shown == []
    assert changed == []
    assert refused == ABOUT_ALL


async def test_the_same_operations_do_show_it_to_a_key_without_rules(tmp_path: Path) -> None:
    """Else the test above could not fail."""
    async with world(tmp_path) as here:
        asked = [each for each in operations(here.kit.app) if each.method == "get"]
        showing = {str(each) for each in asked if MARK in here.shown(each, await here.ask(here.whole, each))}
    assert showing >= {
        "get /v1/audit",
        "get /v1/catalogs/{catalog}/export",
        "get /v1/catalogs/{catalog}/refused",
        "get /v1/catalogs/{catalog}/tools",
        "get /v1/keys",
        "get /v1/keys/{key_id}",
        "get /v1/misses",
        "get /v1/receipts",
        "get /v1/sessions/{session}/active",
        "get /v1/sessions/{session}/tools",
        "get /v1/toolsets",
        "get /v1/toolsets/{toolset}",
        "get /v1/toolsets/{toolset}/tools",
        "get /v1/toolsets/{toolset}/versions",
        "get /v1/toolsets/{toolset}/versions/{number}",
    }


async def test_every_operation_is_crossed(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        found = operations(here.kit.app)
        assert len(found) > 40
        for operation in found:
            assert set(operation.parameters) <= set(here.ids), operation


async def test_a_key_with_rules_redirects_no_name_that_others_call(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        await kit.catalog(kit.operator, tools=[{"name": "send_mail"}, {"name": "wipe_disk"}])
        whole = kit.client(kit.operator)
        guest = {"catalog": "default", "tool": "send_mail", "name": "write_guest"}
        (await whole.post("/v1/toolsets", json={"name": "desk", "tools": [guest]})).raise_for_status()
        limited = kit.client(kit.key("default", "write-catalog", allow=["send_*"]))
        answer = await limited.patch("/v1/toolsets/desk", json={"tools": [{**guest, "tool": "wipe_disk"}]})
        now = (await whole.get("/v1/toolsets/desk")).json()["tools"]

    assert codes([answer]) == [(403, "whole_reach_needed")]
    assert [each["tool"] for each in now] == ["send_mail"]


@pytest.mark.parametrize(("rules", "count"), [({}, 6), ({"allow": ["send_*"]}, 3), ({"allow": ["none"]}, 0)])
async def test_a_catalog_counts_the_tools_in_reach(tmp_path: Path, rules: dict[str, Any], count: int) -> None:
    async with serving(tmp_path) as kit:
        await kit.catalog(kit.operator, tools=[{"name": f"{verb}_{n}"} for verb in ("send", "wipe") for n in range(3)])
        client = kit.client(kit.key("default", "read-catalog", **rules))
        listed = (await client.get("/v1/catalogs")).json()["items"]
        one = (await client.get("/v1/catalogs/default")).json()

    assert [each["tools"] for each in (*listed, one)] == [count, count]


async def test_an_administrator_with_rules_sees_its_own_activity_alone(tmp_path: Path) -> None:
    async with world(tmp_path) as here:
        limited = here.kit.client(here.kit.key("default", "admin", allow=["horse_*"]))
        theirs = (await here.whole.get("/v1/me")).json()["key_id"]
        usage = (await limited.get("/v1/usage", params={"by": "key"})).json()["items"]
        answers = [await limited.get(path, params={"key": theirs}) for path in ("/v1/receipts", "/v1/usage")]

    assert usage == []
    assert codes(answers) == [(403, "whole_reach_needed")] * 2


@pytest.mark.parametrize("rules", RULES, ids=str)
async def test_no_page_shows_or_changes_what_is_out_of_reach(tmp_path: Path, rules: dict[str, Any]) -> None:
    async with world(tmp_path) as here:
        browser = here.kit.client(origin=HOST)
        await sign_in(browser, here.kit.key("default", **rules, is_operator=True))
        token = form_token(await browser.get("/pages/playground"))
        await here.kit.service.keys.aclose()
        before = here.rows()
        refused, shown, changed = set[str](), list[object](), list[object]()
        for each in page_operations():
            for answer in await each.asked(browser, token, here.ids):
                if answer.status_code == 403 and "use a key whose rules allow all of them" in answer.text:
                    refused.add(str(each))
                text = answer.text.replace(OWN_RULE, "RULE")
                if MARK in (text.replace(HIDDEN, "ID") if "{tool}" in each.path else text):
                    shown.append((str(each), answer.status_code, answer.text))
                if lost := set(before) - set(here.rows()):
                    changed.append((str(each), answer.status_code, lost))
                    before = here.rows()
    assert shown == []
    assert changed == []
    assert refused == PAGES_ABOUT_ALL


async def test_the_same_pages_do_show_it_to_a_key_without_rules(tmp_path: Path) -> None:
    """Else the test above could not fail."""
    async with world(tmp_path) as here:
        browser = here.kit.client(origin=HOST)
        await sign_in(browser, here.kit.key("default", is_operator=True))
        asked = [each for each in page_operations() if each.method == "GET" and "{tool}" not in each.path]
        answers = {str(each): (await each.asked(browser, "", here.ids))[0] for each in asked}

    assert {name for name, answer in answers.items() if MARK in answer.text} >= {
        "GET /pages/audit",
        "GET /pages/catalogs/{name}",
        "GET /pages/keys",
        "GET /pages/misses",
        "GET /pages/receipts",
        "GET /pages/toolsets/{name}",
        "GET /pages/toolsets/{name}/edit",
    }
    assert {name for name, answer in answers.items() if answer.status_code >= 400} == {
        "GET /pages/calls/{recorded_id}",
        "GET /pages/login/callback",  # nobody has begun a login
    }


@pytest.mark.parametrize("scope", ["search", "call", "feedback", "read-catalog", "write-catalog", "admin"])
async def test_pages_for_operators_are_unknown_to_other_keys(tmp_path: Path, scope: Scope) -> None:
    async with world(tmp_path) as here:
        browser = here.kit.client(origin=HOST)
        await sign_in(browser, here.kit.key("default", scope))
        token = form_token(await browser.get("/pages/nothing"))
        asked = [each for each in page_operations() if each.path.startswith("/pages/tenants")]
        answers = [answer for each in asked for answer in await each.asked(browser, token, here.ids)]
        is_there = await here.kit.service.tenants.exists("default")

    assert [answer.status_code for answer in answers] == [404] * len(answers)
    assert len(asked) == 3
    assert is_there
