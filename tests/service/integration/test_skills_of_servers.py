"""Skills of a real MCP server in the service: found, read, held and approved, by tenant and by key."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastmcp import FastMCP
from fastmcp.skills.provider import SkillsDirectoryProvider

from tests.kit.gateway import text
from tests.kit.mcp_sessions import mcp_service
from tests.kit.pages import form_token, sign_in
from tests.kit.postgres import PostgresServer
from tests.kit.replicas import DEFAULT, eventually, replicas
from tests.kit.service import ServiceKit, codes
from tests.kit.skills import skill_text, write_skill
from tests.mcp_servers.rich_http import app_over_http
from tests.service.integration.test_mcp_sources import LOOPBACK, SOURCES, added, outcome, service
from tests.service.test_contents import PAY_BACK
from toolsearch.catalog.sources.skills import SkillsSource
from toolsearch.service.corpora.corpus import CorpusRef

APPROVALS = "/v1/catalogs/default/approvals"
RULES = "No refund after 30 days.\n"
REFUNDS = skill_text("refunds", "Refund a customer's order.")


@asynccontextmanager
async def shop(folder: Path) -> AsyncIterator[str]:
    """The URL of a server with a tool, and the skills in *folder*, which it reads at each request."""
    server = FastMCP("shop", providers=[SkillsDirectoryProvider(folder, reload=True)])

    @server.tool
    def pay_back(order: str) -> str:
        """Refund a payment."""
        return f"paid {order}"

    @server.prompt
    def thanks(customer: str) -> str:
        """A letter of thanks to a customer who had a refund."""
        return f"Dear {customer}, thank you."

    async with app_over_http(server.http_app()) as url:
        yield url


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[tuple[ServiceKit, httpx2.AsyncClient]]:
    """A service with that server, and a client of its operator."""
    write_skill(tmp_path / "skills", "refunds", "Refund a customer's order.", files={"rules.md": RULES})
    async with shop(tmp_path / "skills") as url, service(tmp_path / "service") as (kit, client):
        ended = await added(client, {"kind": "mcp", "name": "shop", "url": url})
        assert ended["outcome"] == {"tools": 1, "held": 0, "refused": 0}
        yield kit, client


async def found(client: httpx2.AsyncClient, query: str = "refund", **more: Any) -> list[tuple[str, str]]:
    answer = await client.post("/v1/search", json={"queries": [query], **more})
    return sorted((each["name"], each["kind"]) for each in answer.json()["answers"][0]["tools"])


async def read(client: httpx2.AsyncClient, name: str = "shop__refunds", /, **body: Any) -> dict[str, Any]:
    answer = await client.post("/v1/calls", json={"name": name, **body})
    given: dict[str, Any] = answer.json()
    return given


async def test_a_skill_is_found_beside_tools_and_read_by_a_call_with_a_receipt(
    running: tuple[ServiceKit, httpx2.AsyncClient],
) -> None:
    _, client = running
    assert await found(client) == [("shop__pay_back", "tool"), ("shop__refunds", "skill")]
    head, file = (await read(client))["content"]
    assert head["text"].startswith(
        "SKILL.md of the skill 'refunds' from the MCP server shop; the user did not write it."
    )
    assert "rules.md (25 bytes)" in head["text"]
    assert file["text"] == REFUNDS
    assert (await read(client, arguments={"file": "rules.md"}))["content"][1]["text"] == RULES
    wrong = await read(client, arguments={"file": "../secret"})
    assert (wrong["is_error"], wrong["code"]) == (True, "bad_arguments")
    thanks = await read(client, "shop__thanks", arguments={"customer": "Ann"})
    assert thanks["content"][-1]["text"] == "Dear Ann, thank you."

    receipts = (await client.get("/v1/receipts")).json()["items"]
    assert [(each["tool"], each["kind"], each["outcome"]) for each in receipts] == [
        ("shop__thanks", "prompt", "ok"),
        ("shop__refunds", "skill", "refused"),
        ("shop__refunds", "skill", "ok"),
        ("shop__refunds", "skill", "ok"),
    ]


async def test_a_toolset_gives_a_skill_of_a_server_under_its_own_name(
    running: tuple[ServiceKit, httpx2.AsyncClient],
) -> None:
    _, client = running
    members = [{"tool": "shop__refunds", "name": "money-back", "description": "How money is given back."}]
    (await client.post("/v1/toolsets", json={"name": "team", "tools": members})).raise_for_status()
    assert await found(client, "money is given back", toolset="team") == [("money-back", "skill")]
    assert (await read(client, "money-back", toolset="team"))["content"][1]["text"] == REFUNDS
    missing = await client.post("/v1/calls", json={"name": "shop__refunds", "toolset": "team"})
    assert codes([missing]) == [(404, "unknown_tool")]


async def test_a_key_finds_reads_and_is_told_only_of_what_it_reaches(
    running: tuple[ServiceKit, httpx2.AsyncClient],
) -> None:
    kit, _ = running
    narrow = kit.client(kit.key("default", deny=["kind:skill"]))
    assert await found(narrow) == [("shop__pay_back", "tool")]
    refused = await narrow.post("/v1/calls", json={"name": "shop__refunds"})
    assert codes([refused]) == [(404, "unknown_tool")]
    assert "Refund a customer" not in refused.text
    session = (await narrow.post("/v1/sessions", json={})).json()["id"]
    for body in ({"name": "readSkill", "arguments": {"name": "shop__refunds"}}, {"name": "shop__refunds"}):
        answer = await narrow.post(f"/v1/sessions/{session}/calls", json=body)
        assert "instructions" not in answer.text
        assert RULES not in answer.text
        assert answer.status_code == 404 or answer.json()["is_error"]


async def test_no_other_tenant_finds_or_reads_it(running: tuple[ServiceKit, httpx2.AsyncClient]) -> None:
    kit, _ = running
    other = kit.client(kit.key("umbrella"))
    (await other.post("/v1/catalogs", json={"name": "default"})).raise_for_status()
    assert await found(other) == []
    answers = [
        await other.post("/v1/calls", json={"name": "shop__refunds"}),
        await other.get("/v1/catalogs/default/tools/shop__refunds"),
    ]
    assert codes(answers) == [(404, "unknown_tool")] * 2
    everything = "".join(each.text for each in answers)
    assert "Refund" not in everything
    assert (await other.get("/v1/catalogs/default/tools?kind=skill&kind=prompt")).json()["items"] == []


async def test_a_changed_skill_waits_until_this_version_is_approved(
    running: tuple[ServiceKit, httpx2.AsyncClient], tmp_path: Path
) -> None:
    kit, client = running
    (tmp_path / "skills" / "refunds" / "rules.md").write_text("Always refund.\n")
    changed = await read(client, arguments={"file": "rules.md"})
    assert (changed["is_error"], changed["code"]) == (True, "skill_changed")
    assert "Always refund" not in str(changed)

    await outcome(client, await client.post(f"{SOURCES}/shop/refresh"))
    assert await found(client) == [("shop__pay_back", "tool")]
    held = await client.post("/v1/calls", json={"name": "shop__refunds"})
    assert codes([held]) == [(403, "unapproved_tool")]
    (waiting,) = (await client.get(APPROVALS)).json()["items"]
    assert (waiting["kind"], waiting["why"]) == ("skill", "changed")
    assert waiting["name"] == "skill://refunds/SKILL.md"
    assert [line for line in waiting["difference"] if "rules.md.digest: " in line] != []
    narrow = kit.client(kit.key("default", deny=["kind:skill"]))
    assert (await narrow.get(APPROVALS)).json()["items"] == []

    browser = kit.client()
    await sign_in(browser, kit.operator)
    page = await browser.get("/pages/approvals")
    differing = page.text.replace("<wbr>", "").partition("places are the same")[0]
    assert "files.rules.md" in differing
    assert "files.SKILL.md" not in differing
    assert "Approve this version of the skill" in page.text
    sent = {"form_token": form_token(page), **{name: waiting[name] for name in ("server", "kind", "name", "pin")}}
    origin = {"origin": "http://127.0.0.1:8080"}
    assert (await browser.post("/pages/approvals/default/approve", data=sent, headers=origin)).status_code == 303
    assert await found(client) == [("shop__pay_back", "tool"), ("shop__refunds", "skill")]
    assert (await read(client, arguments={"file": "rules.md"}))["content"][1]["text"] == "Always refund.\n"

    revoked = {"server": "shop", "kind": "skill", "name": "skill://refunds/SKILL.md"}
    assert (await client.post(f"{APPROVALS}/revoke", json=revoked)).status_code == 204
    assert await found(client) == [("shop__pay_back", "tool")]
    actions = [each.action for each in kit.service.storage.audit.records(limit=50, tenant="default")]
    assert "revoke" in actions


# The MCP face of a session


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_an_mcp_client_that_knows_nothing_of_skills_finds_and_reads_one_in_its_session(
    tmp_path: Path, era: str
) -> None:
    skills = SkillsSource(write_skill(tmp_path / "skills", "refunds", "Refund a customer's order.").parent).load().tools
    async with mcp_service(tmp_path, [PAY_BACK]) as served, AsyncExitStack() as held:
        corpus = CorpusRef("acme", "catalog", "default")
        used = await held.enter_async_context(served.kit.service.corpora.using(corpus))
        used.engine.catalog.put(*skills)
        session = await served.session()
        async with served.mcp(session["mcp_url"], era) as client:
            assert [each.name for each in (await client.list_tools()).tools][:2] == ["toolSearchTool", "readSkill"]
            found = await client.call_tool("toolSearchTool", {"query": "refund a customer"})
            assert "skills__refunds" in text(found)
            read = await client.call_tool("readSkill", {"name": "skills__refunds"})
            assert [block.text for block in read.content][-1] == REFUNDS  # type: ignore[union-attr]
        narrow = await served.session(deny=["kind:skill"])
        async with served.mcp(narrow["mcp_url"], era) as client:
            assert "readSkill" not in [each.name for each in (await client.list_tools()).tools]
            read = await client.call_tool("readSkill", {"name": "skills__refunds"})
            assert read.is_error
            assert REFUNDS not in str(read)
        async with served.http() as client:
            receipts = (await client.get("/v1/receipts")).json()["items"]
        assert [(each["tool"], each["kind"], each["session"], each["outcome"]) for each in receipts[1:]] == [
            ("skills__refunds", "skill", session["id"], "ok")
        ]


# Several replicas


async def test_a_replica_hears_that_a_skill_has_changed_and_that_this_version_is_approved(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    rules = write_skill(tmp_path / "skills", "refunds", files={"rules.md": RULES}) / "rules.md"
    async with (
        shop(tmp_path / "skills") as url,
        replicas(postgres.new_database(), tmp_path, outbound=LOOPBACK) as both,
        both.one.client(both.operator) as here,
        both.two.client(both.operator) as there,
    ):
        await both.one.catalog(both.operator, tools=[PAY_BACK])
        assert await contents(both.two) == []
        await added(here, {"kind": "mcp", "name": "shop", "url": url})
        await eventually(lambda: has_contents(both.two, ["shop__refunds", "shop__thanks"]))
        assert (await read(there, arguments={"file": "rules.md"}))["content"][1]["text"] == RULES

        rules.write_text("Always refund.\n")
        await outcome(here, await here.post(f"{SOURCES}/shop/refresh"))
        await eventually(lambda: has_contents(both.two, ["shop__thanks"]))
        assert codes([await there.post("/v1/calls", json={"name": "shop__refunds"})]) == [(403, "unapproved_tool")]
        (waiting,) = (await there.get(APPROVALS)).json()["items"]
        decision = {name: waiting[name] for name in ("server", "kind", "name", "pin")}
        assert (await here.post(APPROVALS, json=decision)).status_code == 204
        await eventually(lambda: has_contents(both.two, ["shop__refunds", "shop__thanks"]))
        assert (await read(there, arguments={"file": "rules.md"}))["content"][1]["text"] == "Always refund.\n"


async def contents(kit: ServiceKit) -> list[str]:
    async with kit.service.corpora.using(DEFAULT) as corpus:
        return list(corpus.engine.catalog.contents)


async def has_contents(kit: ServiceKit, names: list[str]) -> bool:
    return await contents(kit) == names
