"""Catalogs over HTTP: made, filled, read, changed, exported and deleted."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.kit.service import ServiceKit, codes, serving
from toolsearch.service.catalogs.imports.sources import CatalogSource
from toolsearch.service.corpora.stored_tools import to_row
from toolsearch.tools.definition import Tool, ToolDefinition

MAIL: dict[str, Any] = {"name": "send_mail", "description": "Send a letter to somebody."}
LOG: dict[str, Any] = {"name": "read_log", "description": "Read the commits.", "server": "git"}
BAD = {"name": "", "description": "Nobody."}
LINES = {"content-type": "application/x-ndjson"}


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[ServiceKit]:
    async with serving(tmp_path) as made:
        yield made


@pytest.fixture
async def client(kit: ServiceKit) -> httpx2.AsyncClient:
    """Of a tenant with a catalog of its own."""
    made = kit.client(kit.key("acme"))
    await made.post("/v1/catalogs", json={"name": "tools", "description": "Ours."})
    return made


async def write(client: httpx2.AsyncClient, *entries: Any) -> list[tuple[str, str]]:
    answer = (await client.post("/v1/catalogs/tools/tools", json=entries)).json()
    return [(each["name"], each["outcome"]) for each in answer["outcomes"]]


async def names(client: httpx2.AsyncClient, path: str = "/v1/catalogs/tools/tools") -> list[str]:
    return [each["name"] for each in (await client.get(path)).json()["items"]]


async def test_a_catalog_is_made_described_listed_and_deleted(client: httpx2.AsyncClient) -> None:
    await client.post("/v1/catalogs", json={"name": "other"})
    assert await names(client, "/v1/catalogs") == ["other", "tools"]
    assert codes([await client.post("/v1/catalogs", json={"name": "tools"})]) == [(409, "changed_meanwhile")]

    first = await client.get("/v1/catalogs/tools")
    assert (first.json()["description"], first.json()["tools"], first.json()["revision"]) == ("Ours.", 0, 0)
    seen = {"if-match": first.headers["etag"]}
    changed = await client.patch("/v1/catalogs/tools", json={"description": "Theirs."}, headers=seen)
    assert changed.json()["description"] == "Theirs."
    late = [
        await client.patch("/v1/catalogs/tools", json={"description": "Mine."}, headers=seen),
        await client.delete("/v1/catalogs/tools", headers=seen),
    ]
    assert codes(late) == [(412, "precondition_failed")] * 2

    assert (await client.delete("/v1/catalogs/tools")).status_code == 204
    assert codes([await client.get("/v1/catalogs/tools")]) == [(404, "not_found")]


async def test_each_entry_has_an_outcome_and_a_bad_one_hurts_no_other(client: httpx2.AsyncClient) -> None:
    assert await write(client, MAIL, BAD, LOG, 7) == [
        ("send_mail", "created"),
        ("entry 1", "refused"),
        ("git__read_log", "created"),
        ("entry 3", "refused"),
    ]
    assert await write(client, MAIL, {**LOG, "description": "Read the history."}) == [
        ("send_mail", "unchanged"),
        ("git__read_log", "replaced"),
    ]
    found = (await client.post("/v1/search", json={"catalog": "tools", "queries": ["history"]})).json()
    assert [tool["name"] for tool in found["answers"][0]["tools"]] == ["git__read_log"]


async def test_a_bad_line_is_an_outcome_and_not_the_end(client: httpx2.AsyncClient) -> None:
    lines = b"\n".join([json.dumps(MAIL).encode(), b"{nonsense", b"", b"[1]", json.dumps(LOG).encode(), b""])
    answer = (await client.post("/v1/catalogs/tools/tools", content=lines, headers=LINES)).json()
    assert [(each["index"], each["name"], each["outcome"]) for each in answer["outcomes"]] == [
        (0, "send_mail", "created"),
        (1, "line 2", "refused"),
        (3, "entry 3", "refused"),
        (4, "git__read_log", "created"),
    ]
    assert (answer["created"], answer["refused"], answer["revision"]) == (2, 2, 1)


async def test_lines_are_written_a_thousand_in_one_transaction(client: httpx2.AsyncClient) -> None:
    lines = b"\n".join(json.dumps({"name": f"tool_{n}", "description": "Do it."}).encode() for n in range(2_001))
    answer = (await client.post("/v1/catalogs/tools/tools", content=lines, headers=LINES)).json()
    assert (answer["created"], answer["revision"]) == (2_001, 3)


async def test_what_was_refused_is_listed_until_it_is_written(client: httpx2.AsyncClient) -> None:
    await write(client, {"name": "a", "tags": "one"}, {"name": "b", "tags": "two"})
    told = (await client.get("/v1/catalogs/tools/refused?limit=1")).json()
    assert [(each["name"], each["source"], each["reason"]) for each in told["items"]] == [
        ("a", "", "its tags must be a list of texts, not one text")
    ]
    rest = (await client.get("/v1/catalogs/tools/refused", params={"after": told["next"]})).json()
    assert [each["name"] for each in rest["items"]] == ["b"]

    await write(client, {"name": "a"})
    assert await names(client, "/v1/catalogs/tools/refused") == ["b"]


async def test_a_tool_is_read_by_its_etag_and_not_written_over_unseen(client: httpx2.AsyncClient) -> None:
    await write(client, MAIL)
    path = "/v1/catalogs/tools/tools/send_mail"
    first = await client.get(path)
    etag = first.headers["etag"]
    assert etag == f'"{first.json()["fingerprint"]}"'
    assert (await client.get(path, headers={"if-none-match": etag})).status_code == 304

    change = {"description": "Post a parcel.", "tags": ["mail"], "annotations": {"readOnlyHint": True}}
    changed = await client.patch(path, json=change, headers={"if-match": etag})
    assert {key: changed.json()[key] for key in change} == change
    assert changed.json()["input_schema"] == first.json()["input_schema"]
    assert codes([await client.patch(path, json={"title": "Late"}, headers={"if-match": etag})]) == [
        (412, "precondition_failed")
    ]
    assert (await client.get(path)).json()["title"] == ""


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"input_schema": {"type": "array"}}, "bad_tool"),
        ({"tags": None}, "bad_request"),
        ({"name": "x"}, "bad_request"),
    ],
)
async def test_a_change_that_would_leave_no_tool_is_refused(
    client: httpx2.AsyncClient, change: dict[str, Any], code: str
) -> None:
    await write(client, MAIL)
    answer = await client.patch("/v1/catalogs/tools/tools/send_mail", json=change)
    assert (answer.status_code // 100, answer.json()["code"]) == (4, code)


async def test_tools_are_deleted_one_by_one_and_many_at_once(client: httpx2.AsyncClient) -> None:
    await write(client, MAIL, LOG, {"name": "a"}, {"name": "b"})
    one = (await client.delete("/v1/catalogs/tools/tools/a")).json()
    assert (one["deleted"], one["missing"]) == (1, 0)
    many = (await client.post("/v1/catalogs/tools/tools/delete", json={"names": ["b", "a", "send_mail"]})).json()
    assert [each["outcome"] for each in many["outcomes"]] == ["deleted", "missing", "deleted"]
    assert await names(client) == ["git__read_log"]


async def test_what_a_source_owns_is_changed_at_the_source(kit: ServiceKit, client: httpx2.AsyncClient) -> None:
    owned = to_row(Tool(ToolDefinition("imported", "By an import.")), source="crm")
    kit.service.storage.contents.change("acme", "tools", put=[owned])
    answer = (await client.post("/v1/catalogs/tools/tools", json=[{"name": "imported"}])).json()
    assert answer["refused"] == 1
    assert "belongs to the source 'crm'" in answer["outcomes"][0]["reason"]
    assert (await client.delete("/v1/catalogs/tools/tools/imported")).json()["refused"] == 1
    assert codes([await client.patch("/v1/catalogs/tools/tools/imported", json={"title": "t"})]) == [
        (409, "tool_of_source")
    ]
    assert await names(client, "/v1/catalogs/tools/tools?source=crm") == ["imported"]
    assert await names(client, "/v1/catalogs/tools/tools?source=") == []


async def test_pages_of_tools_follow_each_other_without_gap_or_repetition(client: httpx2.AsyncClient) -> None:
    expected = [f"tool_{n}" for n in range(5)]
    await write(client, *({"name": name} for name in reversed(expected)))
    seen: list[str] = []
    after = ""
    while after is not None:
        page = (await client.get("/v1/catalogs/tools/tools", params={"limit": 2, "after": after})).json()
        seen += [each["name"] for each in page["items"]]
        after = page["next"]
    assert seen == expected


EVERYTHING: list[dict[str, Any]] = [
    MAIL,
    LOG,
    {"name": "x" * 60, "server": "a-long-server-name", "description": "Its whole name is cut."},
    {"name": "git__odd", "server": "git", "description": "Its own name has the name of its server."},
    {
        "name": "full",
        "title": "Full ☕",
        "description": "All fields: \u00fc \U0001f600",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        "outputSchema": {"type": "object", "properties": {"b": {"type": "string"}}},
        "annotations": {"readOnlyHint": True, "title": "T"},
        "tags": ["x", "y"],
        "requests": ["when is it due"],
    },
]


async def test_an_export_is_written_to_another_catalog_as_the_same_definitions(
    kit: ServiceKit, client: httpx2.AsyncClient
) -> None:
    await write(client, *EVERYTHING)
    exported = await client.get("/v1/catalogs/tools/export")
    assert exported.headers["content-type"].startswith("application/x-ndjson")
    await client.post("/v1/catalogs", json={"name": "copy"})
    answer = (await client.post("/v1/catalogs/copy/tools", content=exported.content, headers=LINES)).json()

    assert answer["created"] == len(EVERYTHING)
    contents = kit.service.storage.contents
    assert contents.fingerprints("acme", "copy") == contents.fingerprints("acme", "tools")
    again = (await client.post("/v1/catalogs/tools/tools", content=exported.content, headers=LINES)).json()
    assert again["unchanged"] == len(EVERYTHING)


async def test_a_key_neither_sees_nor_writes_what_is_out_of_its_reach(
    kit: ServiceKit, client: httpx2.AsyncClient
) -> None:
    await write(client, MAIL, LOG)
    narrow = kit.client(kit.key("acme", allow=["server:git"]))
    assert await names(narrow) == ["git__read_log"]
    hidden = [
        await narrow.get("/v1/catalogs/tools/tools/send_mail"),
        await narrow.patch("/v1/catalogs/tools/tools/send_mail", json={"title": "Mine"}),
    ]
    assert codes(hidden) == [(404, "unknown_tool")] * 2
    assert await write(narrow, {"name": "send_mail"}, {**LOG, "title": "Log"}) == [
        ("send_mail", "refused"),
        ("git__read_log", "replaced"),
    ]
    assert (await narrow.delete("/v1/catalogs/tools/tools/send_mail")).json()["missing"] == 1
    assert b"send_mail" not in (await narrow.get("/v1/catalogs/tools/export")).content
    assert await names(client) == ["git__read_log", "send_mail"]


async def test_a_quota_refuses_a_whole_array_and_of_lines_those_that_are_new(tmp_path: Path) -> None:
    async with serving(tmp_path, quotas={"tools": 2, "catalogs": 1}) as kit:
        client = kit.client(kit.key("acme"))
        await client.post("/v1/catalogs", json={"name": "tools"})
        await write(client, {"name": "a"})
        three = [{"name": name, "title": "T"} for name in "abc"]
        assert codes([await client.post("/v1/catalogs/tools/tools", json=three)]) == [(429, "too_many")]
        assert await names(client) == ["a"]
        lines = "\n".join(map(json.dumps, three))
        answer = (await client.post("/v1/catalogs/tools/tools", content=lines, headers=LINES)).json()
        assert [each["outcome"] for each in answer["outcomes"]] == ["replaced", "refused", "refused"]
        assert codes([await client.post("/v1/catalogs", json={"name": "more"})]) == [(429, "too_many")]


async def test_two_who_write_at_once_both_succeed(client: httpx2.AsyncClient) -> None:
    await asyncio.gather(*(write(client, {"name": f"tool_{n}"}) for n in range(10)))
    assert await names(client) == [f"tool_{n}" for n in range(10)]


async def test_a_catalog_that_is_made_again_is_empty(client: httpx2.AsyncClient) -> None:
    await write(client, MAIL, BAD)
    await client.delete("/v1/catalogs/tools")
    await client.post("/v1/catalogs", json={"name": "tools"})
    assert await names(client) == []
    assert await names(client, "/v1/catalogs/tools/refused") == []


async def test_a_write_that_meets_the_deletion_of_its_catalog_leaves_nothing_behind(kit: ServiceKit) -> None:
    client = kit.client(kit.key("acme"))
    await client.post("/v1/catalogs", json={"name": "tools"})
    await asyncio.gather(write(client, MAIL), client.delete("/v1/catalogs/tools"), return_exceptions=True)
    assert kit.service.storage.contents.fingerprints("acme", "tools") == {}


async def test_a_name_of_another_tenant_answers_as_one_that_is_unknown(
    kit: ServiceKit, client: httpx2.AsyncClient
) -> None:
    await write(client, MAIL)
    foreign = kit.client(kit.key("globex"))
    for path in ("", "/tools", "/export", "/refused", "/tools/send_mail"):
        of_acme = await foreign.get(f"/v1/catalogs/tools{path}")
        of_nobody = await foreign.get(f"/v1/catalogs/nools{path}")
        assert of_acme.status_code == 404
        assert of_acme.content.replace(b"tools", b"nools") == of_nobody.content


async def test_no_tool_can_be_written_in_the_place_of_an_mcp_servers(
    kit: ServiceKit, client: httpx2.AsyncClient
) -> None:
    """Whether the server lists it or not."""
    await kit.service.imports.sources.save(CatalogSource("acme", "tools", "git", "mcp", created_s=kit.clock.now_s))

    assert await write(client, LOG, {"name": "git_log"}) == [("git__read_log", "refused"), ("git_log", "created")]
    assert await names(client) == ["git_log"]
