"""Decisions on the status page: only of operators, only from our own page, and only about what was shown."""

import base64
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.kit.fake_servers import FakeServer, entry
from toolsearch.api.imports import WaitingBody
from toolsearch.gateway.approvals.waiting import Waiting, refused_last
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.http import http_app
from toolsearch.gateway.status import status_json
from toolsearch.gateway.trust.verdicts import Kind, ReviewItem, ReviewReason, content_entry

ENVIRONMENT = {"ANN": "ann-token-0123456789", "BOB": "bob-token-abcdefghij", "EVE": "eve-token-abcdefghij"}
PRINCIPALS = {
    "ann": {"token": "${ANN}", "operator": True},
    "eve": {"token": "${EVE}", "operator": True},
    "bob": {"token": "${BOB}"},
}
HOST = "127.0.0.1:8080"
OWN = {"origin": f"http://{HOST}", "sec-fetch-site": "same-origin"}


def as_(name: str, **more: str) -> dict[str, str]:
    password = base64.b64encode(f"x:{ENVIRONMENT[name]}".encode()).decode()
    return {"authorization": f"Basic {password}", **more}


@asynccontextmanager
async def page(
    folder: Path, principals: Any = PRINCIPALS, more: Any = None, before: str = "Reads a file.", **http: Any
) -> AsyncIterator[tuple[Gateway, httpx2.AsyncClient]]:
    """A gateway that holds ``it__work``, and a client at its pages."""
    section = {
        "stateDir": str(folder),
        **({"principals": principals} if principals else {}),
        "http": http,
        **(more or {}),
    }
    document = {"mcpServers": {"it": {"command": "none"}}, "toolsearch": section}
    gateway = Gateway(read_gateway_config(document, ENVIRONMENT), upstreams=FakeServer, trust_poll_s=60)
    app = http_app(gateway, host="127.0.0.1", port=8080)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=f"http://{HOST}") as client,
    ):
        await gateway.upstreams["it"].lists(entry("work", description=before))  # type: ignore[attr-defined]
        await gateway.upstreams["it"].lists(entry("work", description="Reads a secret."))  # type: ignore[attr-defined]
        yield gateway, client


async def shown(client: httpx2.AsyncClient, name: str = "ANN") -> tuple[dict[str, str], dict[str, Any]]:
    """The headers of our own page, and the one thing that it shows."""
    answer = (await client.get("/approvals.json", headers=as_(name))).json()
    (waiting,) = answer["waiting"]
    return as_(name, **OWN, **{"x-toolsearch-token": answer["token"]}), waiting


def decision(waiting: dict[str, Any], *, approve: bool = True, **more: Any) -> dict[str, Any]:
    return {**{key: waiting[key] for key in ("server", "kind", "name", "pin")}, "approve": approve, **more}


def recorded(folder: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(folder / "trust.db")) as database:
        return database.execute("SELECT who, action FROM audit ORDER BY position").fetchall()


async def test_an_operator_sees_the_change_word_by_word_and_approves_it_with_one_request(tmp_path):
    async with page(tmp_path) as (gateway, client):
        headers, waiting = await shown(client)
        assert waiting["places"] == [
            {
                "name": "description",
                "before": [["Reads a ", False], ["file", True], [".", False]],
                "now": [["Reads a ", False], ["secret", True], [".", False]],
            }
        ]
        answer = await client.post("/approvals.json", headers=headers, json=decision(waiting))
        assert answer.status_code == 204
        assert gateway.registry.held == {}  # at once
    assert recorded(tmp_path) == [("ann", "approve")]


async def test_what_waits_has_one_form_on_the_page_in_the_status_and_in_the_service(tmp_path):
    async with page(tmp_path) as (gateway, client):
        _, waiting = await shown(client)
        (in_status,) = json.loads(status_json(gateway.status()))["servers"][0]["held"]
    assert in_status == {name: waiting[name] for name in in_status}
    assert (waiting["label"], waiting["name"], waiting["changes"]) == ("it__work", "work", ["~ description"])
    assert waiting.keys() == {*WaitingBody.model_fields, "places"}


def test_what_was_refused_is_shown_behind_what_nobody_has_decided_about():
    entries = [content_entry("it", Kind.PROMPT, {"name": name}) for name in "abc"]
    reasons = (ReviewReason.REFUSED, ReviewReason.NEW, ReviewReason.CHANGED)
    waiting = [Waiting(ReviewItem.of(each, why), None, each.raw) for each, why in zip(entries, reasons, strict=True)]
    assert [each.name for each in refused_last(waiting)] == ["b", "c", "a"]


async def refuse(client: httpx2.AsyncClient) -> dict[str, Any]:
    """Refuse what is shown, and give what is shown then."""
    headers, waiting = await shown(client)
    answer = await client.post("/approvals.json", headers=headers, json=decision(waiting, approve=False))
    assert answer.status_code == 204
    return (await shown(client))[1]


async def test_a_refusal_is_recorded_and_lasts_over_a_restart(tmp_path):
    async with page(tmp_path) as (gateway, client):
        refused = await refuse(client)
        assert (refused["why"], refused["refused_by"]) == ("refused", "ann")
        assert "it__work" in gateway.registry.held
        assert json.loads(status_json(gateway.status()))["servers"][0]["held"][0]["refused_by"] == "ann"
    assert recorded(tmp_path) == [("ann", "refuse")]
    async with page(tmp_path, before="Reads a secret.") as (gateway, client):
        _, again = await shown(client)
        assert (again["why"], again["pin"]) == ("refused", refused["pin"])
        assert "it__work" in gateway.registry.held


async def test_what_was_refused_waits_anew_once_it_changes(tmp_path):
    async with page(tmp_path) as (gateway, client):
        await refuse(client)
        await gateway.upstreams["it"].lists(entry("work", description="Reads a secret, and more."))  # type: ignore[attr-defined]
        _, again = await shown(client)
        assert (again["why"], again["refused_by"]) == ("changed", "")


async def test_what_was_refused_can_be_approved_after_all(tmp_path):
    async with page(tmp_path) as (gateway, client):
        refused = await refuse(client)
        headers, _ = await shown(client)
        assert (await client.post("/approvals.json", headers=headers, json=decision(refused))).status_code == 204
        assert gateway.registry.held == {}


async def test_what_was_refused_stays_held_whatever_the_settings_allow(tmp_path):
    async with page(tmp_path) as (_, client):
        await refuse(client)
    allowing = {"trust": {"changed": "warn", "suspicious": "allow", "firstSeen": "allow"}}
    async with page(tmp_path, more=allowing, before="Reads a secret.") as (gateway, _):
        assert "it__work" in gateway.registry.held


async def test_a_program_decides_with_a_bearer_token_and_without_a_page(tmp_path):
    """A page that may use MCP may have an operator's token, too; it may not decide."""
    async with page(tmp_path, allowedOrigins=["https://app.example"]) as (gateway, client):
        _, waiting = await shown(client)
        bob, ann = ({"authorization": f"Bearer {ENVIRONMENT[name]}"} for name in ("BOB", "ANN"))
        foreign = {**ann, "origin": "https://app.example"}
        for headers in (bob, foreign):
            assert (await client.post("/approvals.json", headers=headers, json=decision(waiting))).status_code == 403
        assert "it__work" in gateway.registry.held
        assert (await client.post("/approvals.json", headers=ann, json=decision(waiting))).status_code == 204
    assert recorded(tmp_path) == [("ann", "approve")]


async def test_nobody_but_an_operator_sees_or_decides(tmp_path):
    async with page(tmp_path) as (gateway, client):
        headers, waiting = await shown(client)
        for refused, status in ((as_("BOB"), 403), ({}, 401)):
            assert (await client.get("/approvals.json", headers=refused)).status_code == status
            sent = {**headers, **refused} if refused else {key: headers[key] for key in OWN}
            assert (await client.post("/approvals.json", headers=sent, json=decision(waiting))).status_code == status
        assert "it__work" in gateway.registry.held


@pytest.mark.parametrize(
    "changed",
    [
        {"origin": "https://app.example"},  # which may use MCP, and nothing else
        {"origin": f"http://{HOST}", "sec-fetch-site": "cross-site"},
        {"origin": f"http://{HOST}", "sec-fetch-site": "same-site"},
        {"origin": None},
        {"x-toolsearch-token": ""},
        {"x-toolsearch-token": "0" * 64},
        {"x-toolsearch-token": None},
    ],
)
async def test_a_decision_that_another_page_sends_with_the_operators_password_is_refused(changed, tmp_path):
    async with page(tmp_path, allowedOrigins=["https://app.example"]) as (gateway, client):
        headers, waiting = await shown(client)
        sent = {key: value for key, value in {**headers, **changed}.items() if value is not None}
        assert (await client.post("/approvals.json", headers=sent, json=decision(waiting))).status_code == 403
        assert "it__work" in gateway.registry.held


async def test_the_token_of_one_operator_is_of_no_use_to_another(tmp_path):
    async with page(tmp_path) as (gateway, client):
        (_, waiting), (eve, _) = await shown(client), await shown(client, "EVE")
        ann = as_("ANN", **{key: value for key, value in eve.items() if key != "authorization"})
        assert (await client.post("/approvals.json", headers=ann, json=decision(waiting))).status_code == 403
        assert "it__work" in gateway.registry.held


async def test_what_has_changed_since_it_was_shown_is_not_approved(tmp_path):
    async with page(tmp_path) as (gateway, client):
        headers, waiting = await shown(client)
        await gateway.upstreams["it"].lists(entry("work", description="Worse."))  # type: ignore[attr-defined]
        answer = await client.post("/approvals.json", headers=headers, json=decision(waiting))
        assert answer.status_code == 409
        assert "it__work" in gateway.registry.held


@pytest.mark.parametrize("more", [{"approve": "yes"}, {"pin": 1}, {"extra": 1}, {"server": None}])
async def test_what_is_no_decision_decides_nothing(more, tmp_path):
    async with page(tmp_path) as (gateway, client):
        headers, waiting = await shown(client)
        answer = await client.post("/approvals.json", headers=headers, json=decision(waiting, **more))
        assert answer.status_code == 400
        assert "it__work" in gateway.registry.held


async def test_where_nobody_says_who_they_are_nobody_can_approve_over_http(tmp_path):
    """Anybody on the machine reaches the page there, a model with a shell as well."""
    async with page(tmp_path, principals=None) as (_, client):
        for answer in (await client.get("/approvals.json"), await client.post("/approvals.json", headers=OWN, json={})):
            assert answer.status_code == 404
