"""Skills, prompts and resources over HTTP: found beside tools, within what a key reaches, and of one tenant alone."""

from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.kit.service import ServiceKit, codes, serving
from tests.kit.skills import content, write_skill
from tests.service.corpora.test_toolset_corpora import Echo
from toolsearch.catalog.sources.skills import SkillsSource
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.tools.definition import EntryKind, Tool

SKILL = """---
name: refund
description: How a refund of a customer's order is checked and paid back.
license: Apache-2.0
---
Check the order first. Then pay back.
"""
PAY_BACK = {"name": "pay_back", "description": "Pay a customer the money of an order back."}
KINDS = ["tool", "skill", "prompt", "resource"]


def entry(name: str, description: str, kind: EntryKind = "skill") -> Tool:
    return content(name, description, kind=kind, server="team", callback=Echo(name))


REFUND = entry("team__refund", "How a refund of a customer's order is checked and paid back.")
ENTRIES = (
    REFUND,
    entry("team__thanks", "A letter of thanks to a customer who had a refund.", "prompt"),
    entry("team__policy", "The text of the refund policy.", "resource"),
)


def written(folder: Path) -> SkillsSource:
    """A folder with one skill of two files."""
    skill = folder / "refund"
    (skill / "scripts").mkdir(parents=True)
    (skill / "SKILL.md").write_text(SKILL)
    (skill / "scripts" / "check.py").write_text("print('checked')\n")
    return SkillsSource(folder, server="team")


async def lists(kit: ServiceKit, tenant: str, *entries: Tool, catalog: str = "default") -> None:
    """As a server of the catalog that lists *entries*. Everything is admitted."""
    async with kit.service.corpora.using(CorpusRef(tenant, "catalog", catalog)) as corpus:
        corpus.engine.catalog.sync("a server", entries)


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[ServiceKit]:
    """A tenant ``acme`` whose catalog has a tool, a skill, a prompt and a resource."""
    async with serving(tmp_path) as made:
        await made.catalog(made.key("acme"), tools=[PAY_BACK])
        await lists(made, "acme", *ENTRIES)
        yield made


async def found(client: httpx2.AsyncClient, query: str = "refund a customer", **more: Any) -> list[tuple[str, str]]:
    answer = await client.post("/v1/search", json={"queries": [query], "limit": 10, **more})
    assert answer.status_code == 200, answer.text
    return sorted((each["name"], each["kind"]) for each in answer.json()["answers"][0]["tools"])


async def test_a_search_finds_tools_and_skills_and_the_kinds_that_are_asked_for(kit: ServiceKit) -> None:
    client = kit.client(kit.key("acme"))
    assert await found(client) == [("pay_back", "tool"), ("team__refund", "skill")]
    assert await found(client, kinds=["skill"]) == [("team__refund", "skill")]
    assert await found(client, kinds=["tool"]) == [("pay_back", "tool")]
    assert await found(client, kinds=["prompt", "resource"]) == [
        ("team__policy", "resource"),
        ("team__thanks", "prompt"),
    ]
    assert len(await found(client, kinds=KINDS)) == 4
    assert await found(client, kinds=["skill"], server="team") == [("team__refund", "skill")]
    bad = [await client.post("/v1/search", json={"queries": ["x"], "kinds": kinds}) for kinds in (["what"], [])]
    assert codes(bad) == [(422, "bad_request")] * 2


async def test_names_are_looked_up_among_the_kinds_that_are_asked_for(kit: ServiceKit) -> None:
    client = kit.client(kit.key("acme"))
    names = ["pay_back", "team__refund", "team__policy"]
    answer = (await client.post("/v1/search", json={"names": names, "definitions": "mcp"})).json()
    assert [(each["name"], each["kind"]) for each in answer["named"]] == [
        ("pay_back", "tool"),
        ("team__refund", "skill"),
    ]
    assert answer["not_found"] == ["team__policy"]
    assert list(answer["definitions"]) == ["pay_back"]  # nobody calls a skill as a tool


async def test_the_place_of_a_skill_is_explained(kit: ServiceKit) -> None:
    client = kit.client(kit.key("acme"))
    body = {"queries": ["refund a customer"], "explain_tools": ["team__refund"]}
    (explained,) = (await client.post("/v1/search", json=body)).json()["answers"][0]["explanations"]
    assert (explained["tool"], explained["place"]) == ("team__refund", 1)


@pytest.mark.parametrize(
    ("allow", "deny", "names"),
    [
        (["kind:skill"], [], ["team__refund"]),
        (["*"], ["kind:skill"], ["pay_back"]),
        (["server:team"], [], ["team__refund"]),
        (["pay_*"], [], ["pay_back"]),
    ],
)
async def test_a_key_with_rules_finds_what_these_allow_of_all_kinds(
    kit: ServiceKit, allow: list[str], deny: list[str], names: list[str]
) -> None:
    client = kit.client(kit.key("acme", allow=allow, deny=deny))
    assert [name for name, _ in await found(client)] == names
    answer = (await client.post("/v1/search", json={"names": ["pay_back", "team__refund"]})).json()
    assert [each["name"] for each in answer["named"]] == names


async def test_a_catalog_lists_the_kinds_that_are_asked_for(kit: ServiceKit) -> None:
    client = kit.client(kit.key("acme"))

    async def listed(**asked: Any) -> list[tuple[str, str]]:
        items = (await client.get("/v1/catalogs/default/tools", params=asked)).json()["items"]
        return [(each["name"], each["kind"]) for each in items]

    assert await listed() == [("pay_back", "tool")]
    assert await listed(kind=["prompt", "skill"]) == [("team__refund", "skill"), ("team__thanks", "prompt")]
    both = {"kind": ["tool", "resource"]}
    first = (await client.get("/v1/catalogs/default/tools", params={**both, "limit": 1})).json()
    assert [each["name"] for each in first["items"]] == ["pay_back"]
    assert await listed(**both, after=first["next"]) == [("team__policy", "resource")]
    narrow = kit.client(kit.key("acme", allow=["*"], deny=["kind:skill"]))
    assert (await narrow.get("/v1/catalogs/default/tools?kind=skill")).json()["items"] == []
    assert codes([await narrow.get("/v1/catalogs/default/tools/team__refund")]) == [(404, "unknown_tool")]
    assert (await client.get("/v1/catalogs/default")).json()["tools"] == 1


async def test_a_skill_is_given_with_its_files_and_is_in_no_export(kit: ServiceKit, tmp_path: Path) -> None:
    await lists(kit, "acme", *written(tmp_path / "skills").load().tools)
    client = kit.client(kit.key("acme"))
    skill = (await client.get("/v1/catalogs/default/tools/team__refund")).json()
    assert [(each["path"], each["size"]) for each in skill["files"]] == [
        ("SKILL.md", len(SKILL)),
        ("scripts/check.py", 17),
    ]
    assert skill["files"][1]["digest"] == "sha256:" + sha256(b"print('checked')\n").hexdigest()
    assert "team__refund" not in (await client.get("/v1/catalogs/default/export")).text


async def test_a_toolset_shows_a_key_only_what_it_reaches(kit: ServiceKit) -> None:
    client, narrow = kit.client(kit.key("acme")), kit.client(kit.key("acme", allow=["pay_*"]))
    skills = kit.client(kit.key("acme", allow=["kind:skill"]))
    members = [{"tool": "team__refund", "name": "money-back"}, {"tool": "pay_back"}]
    (await client.post("/v1/toolsets", json={"name": "team", "tools": members})).raise_for_status()
    for one, names in ((client, ["money-back", "pay_back"]), (narrow, ["pay_back"]), (skills, ["money-back"])):
        shown = (await one.get("/v1/toolsets/team/tools")).json()["items"]
        kept = (await one.get("/v1/toolsets/team")).json()["tools"]
        assert [each["name"] for each in shown] == names
        assert sorted(each["name"] or each["tool"] for each in kept) == names
        assert [name for name, _ in await found(one, "pay a refund", toolset="team")] == names


async def test_no_skill_of_one_tenant_is_found_by_another(kit: ServiceKit) -> None:
    token = kit.key("umbrella")
    await kit.catalog(token, tools=[PAY_BACK])
    await lists(kit, "umbrella", entry("team__refund", "What nobody else may read: the refund of an umbrella."))
    for client, words in ((kit.client(token), "umbrella"), (kit.client(kit.key("acme")), "checked and paid back")):
        answer = await client.post("/v1/search", json={"queries": ["refund"], "kinds": ["skill"]})
        (skill,) = answer.json()["answers"][0]["tools"]
        assert words in skill["summary"]


async def test_feedback_about_a_skill_ranks_it_higher_and_only_within_reach(kit: ServiceKit) -> None:
    client, out_of_reach = kit.client(kit.key("acme")), kit.client(kit.key("acme", allow=["pay_*"]))
    body = {"query": "refund", "tool": "team__refund", "outcome": "right"}
    assert (await client.post("/v1/feedback", json=body)).status_code == 204
    refused = await out_of_reach.post("/v1/feedback", json=body)
    assert codes([refused]) == [(404, "unknown_tool")]
    assert "team__" not in refused.text.replace("'team__refund'", "")


# Sessions


async def test_a_session_finds_skills_and_its_model_is_given_the_tool_that_reads_them(kit: ServiceKit) -> None:
    client = kit.client(kit.key("acme"))
    session = (await client.post("/v1/sessions", json={})).json()["id"]
    answer = (await client.post(f"/v1/sessions/{session}/search", json={"queries": ["refund a customer"]})).json()
    hits = [(each["name"], each["kind"], each["is_loaded"]) for each in answer["answers"][0]["tools"]]
    assert sorted(hits) == [("pay_back", "tool", True), ("team__refund", "skill", False)]
    assert "readSkill" in answer["text"]
    only = {"queries": ["refund a customer"], "kinds": ["skill"]}
    answer = (await client.post(f"/v1/sessions/{session}/search", json=only)).json()
    assert [each["name"] for each in answer["answers"][0]["tools"]] == ["team__refund"]
    listed = (await client.get(f"/v1/sessions/{session}/tools?format=openai")).json()["tools"]
    assert [each["function"]["name"] for each in listed][:2] == ["toolSearchTool", "readSkill"]
    narrow = (await client.post("/v1/sessions", json={"deny": ["kind:skill"]})).json()["id"]
    listed = (await client.get(f"/v1/sessions/{narrow}/tools?format=openai")).json()["tools"]
    assert "readSkill" not in str(listed)


async def test_a_session_reads_a_skill_by_the_tool_for_that_and_by_its_name(kit: ServiceKit) -> None:
    client = kit.client(kit.key("acme"))
    session = (await client.post("/v1/sessions", json={})).json()["id"]
    for body in (
        {"name": "readSkill", "arguments": {"name": "team__refund", "file": "rules.md"}},
        {"name": "team__refund", "arguments": {"file": "rules.md"}},
    ):
        answer = (await client.post(f"/v1/sessions/{session}/calls", json=body)).json()
        assert (answer["status"], answer["name"]) == ("done", "team__refund")
        assert answer["content"][0]["text"] == "team__refund {'file': 'rules.md'}"
    call = {"id": "1", "type": "function", "function": {"name": "readSkill", "arguments": '{"name": "team__refund"}'}}
    reply = {"choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": [call]}}]}
    executed = (await client.post(f"/v1/sessions/{session}/execute", json={"reply": reply})).json()
    assert executed["messages"][0]["content"] == "team__refund {}"
    receipts = (await client.get("/v1/receipts")).json()["items"]
    assert {(each["tool"], each["kind"], each["session"]) for each in receipts} == {("team__refund", "skill", session)}
    assert len(receipts) == 3


async def test_a_session_reads_a_long_skill_in_pages_and_only_as_many_as_its_budget_allows(
    kit: ServiceKit, tmp_path: Path
) -> None:
    lines = "".join(
        f"Step {number}: look at order {number} and write down what you see there.\n" for number in range(2_000)
    )
    write_skill(tmp_path / "skills", "audit", files={"steps.md": lines})
    await lists(kit, "acme", *SkillsSource(tmp_path / "skills").load().tools)
    client = kit.client(kit.key("acme"))
    session = (await client.post("/v1/sessions", json={})).json()["id"]

    async def read(file: str) -> dict[str, Any]:
        body = {"name": "skills__audit", "arguments": {"file": file}}
        answer = await client.post(f"/v1/sessions/{session}/calls", json=body)
        given: dict[str, Any] = answer.json()
        return given

    _, page, more = (block["text"] for block in (await read("steps.md"))["content"])
    last = page.count("\n") + 1
    assert page == "".join(lines.splitlines(keepends=True)[:last]).removesuffix("\n")
    assert f'"steps.md:{last + 1}"' in more
    assert (await read(f"steps.md:{last + 1}"))["content"][1]["text"].startswith(f"Step {last}:")
    answers = [await read("steps.md") for _ in range(5)]
    assert [each["code"] for each in answers if each["is_error"]] == ["call_denied"] * 3
    (refused, *_) = (await client.get("/v1/receipts")).json()["items"]
    assert (refused["tool"], refused["kind"], refused["code"]) == ("skills__audit", "skill", "call_denied")
