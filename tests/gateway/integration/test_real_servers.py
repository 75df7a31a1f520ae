"""Five published MCP servers behind one gateway: a search finds a tool of each, and a call of it works."""

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.kit.gateway import ERAS, served, text
from tests.kit.published_servers import make_repository, needs_node, published_servers

pytestmark = needs_node


@pytest.fixture
def repository(tmp_path) -> Path:
    return make_repository(tmp_path / "repository")


@pytest.fixture
def config(repository, tmp_path) -> dict[str, Any]:
    servers = published_servers(str(repository), memory=str(tmp_path / "memory.jsonl"))
    return {"mcpServers": servers, "toolsearch": {"stateDir": str(tmp_path / "state")}}


async def found_and_called(client: Client, query: str, expected: str, arguments: dict[str, Any]) -> str:
    """Search, take the tool named *expected* out of what was found, and call it as the answer says."""
    found = (await client.call_tool("toolSearchTool", {"query": query})).structured_content
    (tool,) = (tool for tool in found["tools"] if tool["name"] == expected)
    result = await client.call_tool(tool["callWith"], {"name": expected, "arguments": arguments})
    assert not result.is_error, text(result)
    return text(result)


async def test_a_tool_of_each_server_is_found_and_answers_clients_of_both_eras(config, repository):
    async with served(config) as (gateway, url):
        for era in ERAS:
            async with Client(url, mode=era) as client:
                status = await found_and_called(
                    client, "show the working tree status", "git__git_status", {"repo_path": str(repository)}
                )
                assert "On branch trunk" in status
                arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
                converted = await found_and_called(client, "convert time zones", "time__convert_time", arguments)
                assert json.loads(converted)["time_difference"] == "+9.0h"
                echoed = await found_and_called(client, "echo a message", "everything__echo", {"message": "hello"})
                assert echoed == "Echo: hello"
                path = str(repository / "notes.txt")
                notes = await found_and_called(client, "read a text file", "filesystem__read_text_file", {"path": path})
                assert notes == "remember the milk"
                graph = await found_and_called(client, "read the knowledge graph", "memory__read_graph", {})
                assert json.loads(graph) == {"entities": [], "relations": []}

        assert {server: len(tools.refused) for server, tools in gateway.registry.servers.items()} == dict.fromkeys(
            config["mcpServers"], 0
        )
