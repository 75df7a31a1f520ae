"""Toolsets over HTTP: named subsets of catalogs with names of their own, in versions."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.kit.service import ServiceKit, codes, serving

READ = {"readOnlyHint": True}
DESTROY = {"readOnlyHint": False, "destructiveHint": True}
GIT = [
    {"name": "log", "server": "git", "description": "Read the commits of a repository.", "annotations": READ},
    {"name": "wipe", "server": "git", "description": "Delete a repository.", "annotations": DESTROY, "tags": ["risky"]},
]
SEARCH = {"name": "search", "description": "Search the files."}


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[ServiceKit]:
    async with serving(tmp_path) as made:
        yield made


@pytest.fixture
async def client(kit: ServiceKit) -> httpx2.AsyncClient:
    """Of a tenant with the catalogs ``code`` and ``docs``."""
    token = kit.key("acme")
    await kit.catalog(token, "code", [*GIT, SEARCH])
    await kit.catalog(token, "docs", [])
    return kit.client(token)


def of(catalog: str, tool: str, name: str | None = None, **own: Any) -> dict[str, Any]:
    return {"catalog": catalog, "tool": tool, "name": name, **own}


async def make(client: httpx2.AsyncClient, name: str = "team", **parts: Any) -> httpx2.Response:
    answer = await client.post("/v1/toolsets", json={"name": name, **parts})
    assert answer.status_code == 201, answer.text
    return answer


async def write(client: httpx2.AsyncClient, catalog: str, *entries: Any) -> None:
    (await client.post(f"/v1/catalogs/{catalog}/tools", json=entries)).raise_for_status()


async def shown(client: httpx2.AsyncClient, toolset: str = "team") -> list[tuple[str, str, str]]:
    items = (await client.get(f"/v1/toolsets/{toolset}/tools")).json()["items"]
    return [(each["name"], each["catalog"], each["state"]) for each in items]


async def found(client: httpx2.AsyncClient, query: str, **more: Any) -> list[str]:
    answer = await client.post("/v1/search", json={"toolset": "team", "queries": [query], **more})
    return [tool["name"] for tool in answer.json()["answers"][0]["tools"]]


async def test_a_toolset_shows_its_tools_by_its_own_names_and_is_searched_by_its_own_words(
    client: httpx2.AsyncClient,
) -> None:
    await make(client, tools=[of("code", "git__log", "history", description="Say who has changed what.")])
    assert await found(client, "who has changed what") == ["history"]
    assert await found(client, "select:history") == ["history"]
    assert await found(client, "select:git__log") == []
    assert await shown(client) == [("history", "code", "shown")]


async def test_every_change_is_a_new_version_and_the_old_ones_can_be_read(client: httpx2.AsyncClient) -> None:
    first = await make(client, description="Ours.", tools=[of("code", "search")])
    assert (first.json()["number"], first.json()["description"]) == (1, "Ours.")
    changed = await client.patch("/v1/toolsets/team", json={"tools": [of("code", "git__log", "history")]})
    again = await client.patch("/v1/toolsets/team", json={"description": "Ours."})
    assert (changed.json()["number"], again.json()["number"]) == (2, 2)
    assert await shown(client) == [("history", "code", "shown")]

    listed = (await client.get("/v1/toolsets/team/versions?limit=1")).json()
    rest = (await client.get("/v1/toolsets/team/versions", params={"after": listed["next"]})).json()
    assert [each["number"] for each in (*listed["items"], *rest["items"])] == [2, 1]
    assert (await client.get("/v1/toolsets/team/versions/1")).json() == first.json()
    assert codes([await client.get("/v1/toolsets/team/versions/3")]) == [(404, "not_found")]


async def test_a_toolset_is_not_written_over_unseen(client: httpx2.AsyncClient) -> None:
    seen = {"if-match": (await make(client)).headers["etag"]}
    assert (await client.get("/v1/toolsets/team", headers={"if-none-match": seen["if-match"]})).status_code == 304
    assert (await client.patch("/v1/toolsets/team", json={"description": "a"}, headers=seen)).status_code == 200
    late = [
        await client.patch("/v1/toolsets/team", json={"description": "b"}, headers=seen),
        await client.delete("/v1/toolsets/team", headers=seen),
    ]
    assert codes(late) == [(412, "precondition_failed")] * 2
    assert (await client.delete("/v1/toolsets/team")).status_code == 204
    assert codes([await client.get("/v1/toolsets/team")]) == [(404, "not_found")]
    assert (await make(client)).json()["number"] == 1


@pytest.mark.parametrize(
    "parts",
    [
        {"tools": [of("code", "search"), of("docs", "search")]},
        {"tools": [of("code", "search", "no space")]},
        {"tools": [of("code", "search", "toolSearchTool")]},
        {"tools": [of("code", "search", "readSkill")]},
        {"rules": [{"catalog": "code", "allow": ["what:ever"]}]},
    ],
)
async def test_names_and_rules_that_cannot_be_used_are_refused(
    client: httpx2.AsyncClient, parts: dict[str, Any]
) -> None:
    answers = [await client.post("/v1/toolsets", json={"name": "team", **parts})]
    assert codes(answers) == [(400, "bad_setting")]


# What changes in its catalogs


async def test_a_tool_that_leaves_its_catalog_is_shown_as_missing_until_it_is_back(client: httpx2.AsyncClient) -> None:
    await make(client, tools=[of("code", "search", "find"), of("nowhere", "x")])
    await client.delete("/v1/catalogs/code/tools/search")
    assert await shown(client) == [("find", "code", "missing"), ("x", "nowhere", "missing")]
    assert await found(client, "select:find") == []

    await write(client, "code", {"name": "search", "description": "Look into everything."})
    await client.post("/v1/catalogs", json={"name": "nowhere"})
    await write(client, "nowhere", {"name": "x"})
    assert await shown(client) == [("find", "code", "shown"), ("x", "nowhere", "shown")]
    assert (await found(client, "look into everything"))[0] == "find"

    await client.delete("/v1/catalogs/nowhere")
    assert await shown(client) == [("find", "code", "shown"), ("x", "nowhere", "missing")]


async def test_rules_take_in_what_comes_later(client: httpx2.AsyncClient) -> None:
    await make(client, rules=[{"catalog": "code", "allow": ["class:read"]}, {"catalog": "docs"}])
    assert await shown(client) == [("git__log", "code", "shown")]
    await write(client, "docs", {"name": "paint_wall", "description": "Paint a wall."})
    assert await found(client, "paint a wall") == ["paint_wall"]
    await write(client, "code", {**SEARCH, "annotations": READ})
    assert await shown(client) == [
        ("git__log", "code", "shown"), ("paint_wall", "docs", "shown"), ("search", "code", "shown")
    ]  # fmt: skip
    await write(client, "code", {**SEARCH, "annotations": DESTROY})
    assert await found(client, "select:search") == []


async def test_a_newcomer_whose_name_is_taken_is_refused_and_the_others_keep_theirs(
    tmp_path: Path, client: httpx2.AsyncClient
) -> None:
    """Though its catalog comes first by the rules."""
    await make(client, rules=[{"catalog": "docs"}, {"catalog": "code", "allow": ["search"]}])
    await write(client, "docs", {"name": "search", "description": "Search the handbook."})
    assert await shown(client) == [("search", "code", "shown"), ("search", "docs", "refused")]
    items = (await client.get("/v1/toolsets/team/tools")).json()["items"]
    assert "'search' of the catalog 'code'" in items[1]["reason"]

    await client.delete("/v1/catalogs/code/tools/search")
    assert await shown(client) == [("search", "docs", "refused")], "a name never comes to mean another tool by itself"
    await client.patch("/v1/toolsets/team", json={"rules": [{"catalog": "docs"}]})
    assert await shown(client) == [("search", "docs", "shown")]


async def test_a_name_is_kept_over_restarts(tmp_path: Path) -> None:
    async with serving(tmp_path) as kit:
        token = kit.key("acme")
        await kit.catalog(token, "code", [SEARCH])
        await kit.catalog(token, "docs", [])
        client = kit.client(token)
        await make(client, rules=[{"catalog": "docs"}, {"catalog": "code"}])
        assert await found(client, "select:search") == ["search"]
    async with serving(tmp_path) as kit:
        client = kit.client(token)
        await write(client, "docs", SEARCH)
        assert await shown(client) == [("search", "code", "shown"), ("search", "docs", "refused")]


# Nobody reaches more through a toolset


@pytest.mark.parametrize(
    "reach",
    [
        {"deny": ["git__wipe"]},
        {"deny": ["cleanup"]},
        {"deny": ["class:destructive"]},
        {"deny": ["tag:risky"]},
        {"deny": ["server:git"]},
        {"allow": ["cleanup"]},
        {"allow": ["search"]},
        {"allow": ["class:read"]},
    ],
)
async def test_a_key_that_may_not_use_a_tool_may_not_by_another_name_either(
    kit: ServiceKit, client: httpx2.AsyncClient, reach: dict[str, Any]
) -> None:
    await make(client, tools=[of("code", "git__wipe", "cleanup"), of("code", "git__log", "git__wipe2")])
    narrow = kit.client(kit.key("acme", **reach))
    assert "cleanup" not in await found(narrow, "delete a repository")
    assert await found(narrow, "select:cleanup") == []
    assert "cleanup" not in [name for name, *_ in await shown(narrow)]

    opened = await narrow.post("/v1/sessions", json={"toolset": "team", "pins": ["cleanup"]})
    assert codes([opened]) == [(404, "unknown_tool")]


async def test_a_key_that_may_use_a_tool_may_by_another_name(kit: ServiceKit, client: httpx2.AsyncClient) -> None:
    await make(client, tools=[of("code", "git__log", "history")])
    narrow = kit.client(kit.key("acme", allow=["git__*"]))
    assert await found(narrow, "select:history") == ["history"]


async def test_what_a_request_and_a_session_allow_are_the_names_that_the_toolset_shows(
    client: httpx2.AsyncClient,
) -> None:
    await make(client, tools=[of("code", "git__log", "history"), of("code", "search")])
    assert await found(client, "select:history,search", allow=["history"]) == ["history"]
    session = (await client.post("/v1/sessions", json={"toolset": "team", "allow": ["hist*"]})).json()
    answer = await client.post(f"/v1/sessions/{session['id']}/search", json={"queries": ["select:history,search"]})
    assert [tool["name"] for tool in answer.json()["answers"][0]["tools"]] == ["history"]


async def test_no_key_allows_a_tool_by_the_name_that_somebody_gives_it(kit: ServiceKit) -> None:
    with pytest.raises(ValueError, match="cannot allow shown names"):
        kit.key("acme", allow=["as:history"])


async def test_a_toolset_does_not_reach_into_catalogs_of_other_tenants(
    kit: ServiceKit, client: httpx2.AsyncClient
) -> None:
    foreign = kit.client(kit.key("globex"))
    await make(foreign, tools=[of("code", "search")], rules=[{"catalog": "code"}])
    assert await shown(foreign) == [("search", "code", "missing")]
    assert codes([await kit.client(kit.key("initech")).get("/v1/toolsets/team")]) == [(404, "not_found")]


async def test_a_quota_bounds_the_toolsets_of_a_tenant(tmp_path: Path) -> None:
    async with serving(tmp_path, quotas={"toolsets": 1}) as kit:
        client = kit.client(kit.key("acme"))
        await make(client)
        assert codes([await client.post("/v1/toolsets", json={"name": "more"})]) == [(429, "too_many")]
