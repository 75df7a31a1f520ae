"""Sources and jobs over HTTP."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.kit.imports import petstore
from tests.kit.service import LISTING, ServiceKit, codes, serving

SOURCES = "/v1/catalogs/default/sources"


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[ServiceKit]:
    async with serving(tmp_path) as kit:
        await kit.catalog(kit.operator, tools=[])
        yield kit


async def imported(client: httpx2.AsyncClient, body: dict[str, Any]) -> list[tuple[str, Any]]:
    """Add a source, and return the events of its import."""
    answer = await client.post(SOURCES, json=body)
    assert answer.status_code == 202, answer.text
    return await events(client, answer.json()["job"]["id"])


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


async def events(client: httpx2.AsyncClient, job: str) -> list[tuple[str, Any]]:
    answer = await client.get(f"/v1/jobs/{job}/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    told = [dict(line.split(": ", 1) for line in block.split("\n")) for block in answer.text.strip().split("\n\n")]
    return [(each["event"], json.loads(each["data"])) for each in told]


async def test_an_import_is_followed_to_its_outcome_and_its_tools_are_found(kit: ServiceKit) -> None:
    async with kit.client(kit.operator) as client:
        told = await imported(client, {"kind": "openapi", "name": "pets", "document": petstore("cats", "dogs")})
        assert [data["stage"] for event, data in told if event == "progress"] == [
            *("waiting", "reading", "counting", "checking", "writing", "indexing")
        ]
        event, job = told[-1]
        assert (event, job["state"], job["outcome"]["written"]) == ("ended", "done", 2)
        assert told == await events(client, job["id"])
        assert (await client.get(f"/v1/jobs/{job['id']}")).json() == job

        source = (await client.get(f"{SOURCES}/pets")).json()
        assert (source["state"], source["tools"], source["job"]) == ("ready", 2, job["id"])
        found = (await client.post("/v1/search", json={"queries": ["get cats"]})).json()
        assert "pets__cats" in json.dumps(found)


@pytest.mark.parametrize("place", [1, 2])
async def test_a_document_of_lines_with_a_bad_one_fails_and_names_it(kit: ServiceKit, place: int) -> None:
    """Also if the first line is the bad one, by which no format could be told."""
    lines = [json.dumps(each) for each in LISTING]
    lines[place - 1] = "]]]"
    async with kit.client(kit.operator, **{"content-type": "application/x-ndjson"}) as client:
        await client.post(
            SOURCES, json={"kind": "listing", "name": "mail"}, headers={"content-type": "application/json"}
        )
        answer = await client.put(f"{SOURCES}/mail/document", content="\n".join(lines))
        _, job = (await events(client, answer.json()["job"]["id"]))[-1]
        written = await client.post("/v1/catalogs/default/tools", content="\n".join(lines))

    assert (job["state"], job["error"]["code"]) == ("failed", "source_error")
    assert f"malformed: line {place}: " in job["error"]["detail"]
    refused = [each for each in written.json()["outcomes"] if each["outcome"] == "refused"]
    assert [(each["index"], each["name"], each["reason"]) for each in refused] == [
        (place - 1, f"line {place}", "it is not JSON: Expecting value (character 1)")
    ]


async def test_a_document_may_be_uploaded_once_the_source_is_there(kit: ServiceKit) -> None:
    async with kit.client(kit.operator) as client:
        added = (await client.post(SOURCES, json={"kind": "listing", "name": "mail"})).json()
        assert (added["source"]["state"], added["job"]) == ("awaiting document", None)
        text = "\n".join(map(json.dumps, LISTING))
        answer = await client.put(
            f"{SOURCES}/mail/document", content=text, headers={"content-type": "application/x-ndjson"}
        )
        assert (await events(client, answer.json()["job"]["id"]))[-1][1]["outcome"]["written"] == 2
        yaml = "- {name: other, description: Other.}"
        answer = await client.put(
            f"{SOURCES}/mail/document", content=yaml, headers={"content-type": "application/yaml"}
        )
        outcome = (await events(client, answer.json()["job"]["id"]))[-1][1]["outcome"]
        assert outcome == {"written": 1, "unchanged": 0, "removed": 2, "refused": 0}


async def test_credentials_are_named_and_never_shown_again(kit: ServiceKit, tmp_path: Path) -> None:
    secret = "s3cret-" * 5
    body = {
        "kind": "openapi",
        "name": "pets",
        "document": petstore("cats"),
        "headers": {"X-Team": secret},
        "credentials": {"key": secret, "login": {"user": "tom", "password": secret}},
    }
    async with kit.client(kit.operator) as client:
        told = await imported(client, body)
        shown = (await client.get(f"{SOURCES}/pets")).json()
        everything = [told, shown, (await client.get(SOURCES)).json(), (await client.get("/v1/jobs")).json()]
    assert shown["credentials"] == ["X-Team", "key", "login"]
    assert secret not in json.dumps(everything)
    kept = everything_in(tmp_path)
    assert b"pets__cats" in kept
    assert secret.encode() not in kept


async def test_secrets_in_an_address_are_hidden(kit: ServiceKit) -> None:
    url = "https://user:hunter22@docs.example/openapi.json?token=hunter22&page=first-page"
    async with kit.client(kit.operator) as client:
        told = await imported(client, {"kind": "openapi", "name": "pets", "url": url})
        shown = (await client.get(f"{SOURCES}/pets")).json()
    assert shown["url"].startswith("https://user:***@docs.example/openapi.json?token=***")
    assert "hunter22" not in json.dumps([told, shown])


async def test_what_was_refused_is_listed_in_pages_with_its_reasons(kit: ServiceKit) -> None:
    await kit.service.catalogs.upsert("default", "default", LISTING)
    async with kit.client(kit.operator) as client:
        await imported(client, {"kind": "listing", "name": "mail", "document": [*LISTING, {"description": "nameless"}]})
        first = (await client.get("/v1/catalogs/default/refused?limit=2")).json()
        rest = (await client.get(f"/v1/catalogs/default/refused?limit=2&after={first['next']}")).json()
    refused = [*first["items"], *rest["items"]]
    assert [(each["source"], each["name"]) for each in refused] == [
        *(("mail", "entry 2"), ("mail", "read_log"), ("mail", "send_mail"))
    ]
    assert "one from the source 'mail'" in refused[1]["reason"]
    assert rest["next"] is None


async def test_a_deleted_source_is_gone_with_its_tools(kit: ServiceKit) -> None:
    async with kit.client(kit.operator) as client:
        await imported(client, {"kind": "listing", "name": "mail", "document": LISTING})
        assert (await client.delete(f"{SOURCES}/mail")).status_code == 204
        assert (await client.get(f"{SOURCES}/mail")).status_code == 404
        assert (await client.get(SOURCES)).json()["items"] == []
    assert kit.service.storage.contents.count("default", "default") == 0


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"kind": "openapi", "name": "pets", "document": {}, "url": "https://x.example"}, 422),
        ({"kind": "openapi", "name": "Not a name", "document": {}}, 422),
        ({"kind": "openapi", "name": "pets", "url": "file:///etc/passwd"}, 422),
        ({"kind": "openapi", "name": "pets", "headers": {"bad header": "x"}}, 422),
        ({"kind": "gopher", "name": "pets"}, 422),
        ({"kind": "listing", "name": "pets", "credentials": {}}, 422),
    ],
)
async def test_a_source_that_makes_no_sense_is_refused(kit: ServiceKit, body: dict[str, Any], status: int) -> None:
    async with kit.client(kit.operator) as client:
        answer = await client.post(SOURCES, json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, "bad_request")


async def test_sources_and_jobs_of_another_tenant_are_as_unknown_as_none(kit: ServiceKit) -> None:
    stranger = kit.key("umbrella")
    async with kit.client(kit.operator) as client, kit.client(stranger) as other:
        told = await imported(client, {"kind": "listing", "name": "mail", "document": LISTING})
        job = told[-1][1]["id"]
        for method, path in [
            ("GET", f"/v1/jobs/{job}"),
            ("GET", f"/v1/jobs/{job}/events"),
            ("POST", f"/v1/jobs/{job}/cancel"),
            ("GET", SOURCES),
            ("GET", f"{SOURCES}/mail"),
            ("DELETE", f"{SOURCES}/mail"),
            ("POST", f"{SOURCES}/mail/refresh"),
            ("GET", "/v1/catalogs/default/refused"),
        ]:
            assert (await other.request(method, path)).status_code == 404, path
        assert (await other.get("/v1/jobs")).json()["items"] == []
        assert (await client.get(f"{SOURCES}/mail")).json()["state"] == "ready"


async def test_who_may_only_read_changes_nothing(kit: ServiceKit) -> None:
    reader = kit.key("default", "read-catalog")
    async with kit.client(reader) as client:
        assert (await client.post(SOURCES, json={"kind": "listing", "name": "mail"})).status_code == 403
        assert (await client.delete(f"{SOURCES}/mail")).status_code == 403
        assert (await client.get(SOURCES)).status_code == 200


async def test_whose_rules_leave_tools_out_manages_no_sources(kit: ServiceKit) -> None:
    """A source would write and remove tools that the key does not reach."""
    async with kit.client(kit.operator) as client:
        await imported(client, {"kind": "listing", "name": "mail", "document": LISTING})
    async with kit.client(kit.key("default", deny=["send_mail"])) as client:
        answers = [
            await client.post(SOURCES, json={"kind": "listing", "name": "other", "document": LISTING}),
            await client.put(f"{SOURCES}/mail/document", json=[]),
            await client.post(f"{SOURCES}/mail/refresh"),
            await client.delete(f"{SOURCES}/mail"),
        ]
    assert codes(answers) == [(403, "whole_reach_needed")] * 4
    assert kit.service.storage.contents.count("default", "default") == 2


async def test_a_tenant_has_no_more_sources_than_its_quota(tmp_path: Path) -> None:
    async with serving(tmp_path, quotas={"sources": 1}) as kit:
        await kit.catalog(kit.operator, tools=[])
        async with kit.client(kit.operator) as client:
            await client.post(SOURCES, json={"kind": "listing", "name": "one"})
            answer = await client.post(SOURCES, json={"kind": "listing", "name": "two"})
    assert (answer.status_code, answer.json()["code"]) == (429, "too_many")
