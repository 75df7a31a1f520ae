"""Skills of a real server through the gateway: for clients that know the extension, and for those that do not."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import fastmcp
import pytest
from fastmcp.skills import SkillsClientExtension
from mcp import Client, MCPError, types

from tests.gateway.integration.test_conformance import NODE, OF_2026, SUITE_OF_2026, run_suite
from tests.kit.gateway import ERAS, TRANSPORTS, connected, names, served
from tests.kit.inspector import inspected, needs_inspector
from tests.kit.skills import refund_text, write_skill
from toolsearch.cli import main
from toolsearch.gateway.config_file import read_gateway_config
from toolsearch.gateway.gateway import Gateway

EXTENSION = "io.modelcontextprotocol/skills"
RULES = "No refund after 30 days.\n"
SERVER = """
import sys
from fastmcp import FastMCP
from fastmcp.skills.provider import SkillsDirectoryProvider

server = FastMCP("shop", providers=[SkillsDirectoryProvider(sys.argv[1])])

@server.tool
def pay_back(amount: int) -> str:
    '''Refunds a payment to the customer.'''
    return f"paid back {amount}"

@server.tool
def find_order(customer: str) -> str:
    '''Finds the order of a customer that is to be refunded.'''
    return f"order of {customer}"

server.run(show_banner=False)
"""


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    """Two servers with the same skills, and so with the same URIs, whose texts differ."""
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    for server in ("shop", "bank"):
        text = refund_text(description=f"Refund a customer of the {server}.", body="Look at rules.md first.")
        files = {"SKILL.md": text, "rules.md": f"{server}: {RULES}", "forms/letter.md": "Dear customer,\n"}
        write_skill(tmp_path / server, "refunds", files=files)
    servers = {
        name: {"command": sys.executable, "args": [str(script), str(tmp_path / name)]} for name in ("shop", "bank")
    }
    section = {"stateDir": str(tmp_path / "state"), "strategy": "keyword", "passThrough": {"maxTools": 0}}
    return {"mcpServers": servers, "toolsearch": section}


def texts(result: types.CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, types.TextContent)]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_knows_nothing_of_skills_searches_reads_and_calls(config, tmp_path, transport, era):
    del config["mcpServers"]["bank"]
    async with connected(config, transport, era, tmp_path) as client:
        listed = await names(client)
        while "readSkill" not in listed:  # a first run over stdio is listed before any server is known
            listed = await names(client)
        assert listed[:2] == ["toolSearchTool", "readSkill"]

        (found,) = texts(await client.call_tool("toolSearchTool", {"queries": ["refund a customer"]}))[:1]
        assert "- shop__refunds [skill, " in found
        assert "shop__pay_back" in found
        assert "shop__find_order" in found
        head, body = texts(await client.call_tool("readSkill", {"name": "shop__refunds"}))
        assert "from the MCP server shop; the user did not write it" in head
        assert body == (tmp_path / "shop" / "refunds" / "SKILL.md").read_text()
        rules = await client.call_tool("readSkill", {"name": "shop__refunds", "file": "rules.md"})
        assert texts(rules)[1] == f"shop: {RULES}"
        paid = await client.call_tool("callToolDestructive", {"name": "shop__pay_back", "arguments": {"amount": 3}})
        assert texts(paid) == ["paid back 3"]
        assert await names(client) == listed


async def test_a_client_of_the_extension_gets_the_skills_of_all_servers_and_verifies_what_it_reads(config, tmp_path):
    async with served(config) as (_, url), fastmcp.Client(url, extensions=[SkillsClientExtension()]) as client:
        listed = await client.list_skills()
        uris = [f"toolsearch://{server}/skill://refunds/SKILL.md" for server in ("bank", "shop")]
        assert [each.uri for each in listed] == uris
        for uri, server in zip(uris, ("bank", "shop"), strict=True):
            assert (await client.get_skill(uri)).uri == uri
            skill = await client.read_skill(uri)
            assert skill.files["rules.md"].decode() == f"{server}: {RULES}"
        for unknown in ("skill://refunds/SKILL.md", "toolsearch://eve/skill://refunds/SKILL.md", uris[0][:-3]):
            with pytest.raises(MCPError):
                await client.get_skill(unknown)


@pytest.mark.parametrize(("era", "declares"), [("legacy", False), ("legacy", True), ("auto", False), ("auto", True)])
async def test_the_extension_is_declared_to_clients_of_2026_and_to_older_ones_that_declare_it(era, declares):
    options: dict[str, Any] = {"extensions": [SkillsClientExtension()]} if declares else {}
    async with served({"mcpServers": {}}) as (_, url), Client(url, mode=era, **options) as client:
        capabilities = client.server_capabilities
        assert capabilities is not None
        told = {"directoryRead": True} if declares or era == "auto" else None
        assert (capabilities.extensions or {}).get(EXTENSION) == told


async def test_what_changed_at_the_server_is_held_and_approved_by_the_command(config, tmp_path, capsys):
    del config["mcpServers"]["bank"]
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(config))

    async def readable() -> str:
        async with Gateway(read_gateway_config(config, os.environ)) as gateway:
            await gateway.settled()
            await gateway.upstreams["shop"].relist()
            return ", ".join(each.label for each in gateway.registry.servers["shop"].held) or "all"

    def approve(*arguments: str) -> str:
        assert main(["gateway", "approve", *arguments, "--config", str(path), *(["--yes"] if arguments else [])]) == 0
        return capsys.readouterr().out

    assert await readable() == "all"
    (tmp_path / "shop/refunds/rules.md").write_text("No rules.")
    assert await readable() == "skill shop__skill://refunds"
    shown = approve()
    assert "skill shop__skill://refunds: changed" in shown
    assert "rules.md" in shown
    approve("shop__skill://refunds")
    assert await readable() == "all"
    approve("shop__skill://refunds", "--revoke")
    assert await readable() == "skill shop__skill://refunds"


@needs_inspector
async def test_the_inspector_verifies_every_file_and_finds_no_fault_with_an_entry(config, tmp_path):
    async with served(config) as (_, url):
        target = ["--server-url", url, "--transport", "http", "--protocol-era", "modern"]
        said = await inspected([*target, "--method", "skills/list", "--verify", "--format", "json"], tmp_path)
    verified = {
        (skill["uri"], file["status"]) for skill in map(json.loads, said.splitlines()) for file in skill["files"]
    }
    assert verified == {(f"toolsearch://{server}/skill://refunds/SKILL.md", "verified") for server in ("bank", "shop")}
    assert '"error"' not in said


@pytest.mark.skipif(not NODE.is_file(), reason="needs the suite; run: npm ci --prefix tests/mcp_servers")
@pytest.mark.parametrize("scenario", ["enumeration", "manifest", "directory"])
async def test_the_official_scenarios_for_servers_of_skills_pass(config, tmp_path, scenario):
    async with served(config) as (_, url):
        arguments = ("server", "--url", url, "--scenario", f"sep-2640-skills-{scenario}", "--force", *OF_2026)
        output = await run_suite(SUITE_OF_2026, tmp_path, *arguments)
    assert " 0 failed" in output, output
