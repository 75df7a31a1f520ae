"""A client that nobody here wrote: the MCP Inspector, from its command line, lists, searches and calls through us."""

import json
import os
import sys
from collections.abc import AsyncIterator

import pytest

from tests.kit.gateway import served, time_server
from tests.kit.inspector import Inspect, calling, inspecting, needs_inspector

pytestmark = needs_inspector


@pytest.fixture(
    params=["legacy-http", "modern-http", "modern-stdio"]
)  # over stdio it starts a gateway for each question
async def inspect(request, tmp_path) -> AsyncIterator[Inspect]:
    """Runs the Inspector once with some options and returns the result that it prints."""
    era, transport = request.param.split("-")
    config = {
        "mcpServers": {"time": time_server()},
        "toolsearch": {"passThrough": {"maxTools": 0}, "stateDir": str(tmp_path / "state")},
    }
    if transport == "http":
        async with served(config) as (_, url):
            yield inspecting(["--server-url", url, "--transport", "http", "--protocol-era", era], tmp_path)
        return
    (tmp_path / "mcp.json").write_text(json.dumps(config))
    gateway = {
        "command": sys.executable,
        "args": ["-m", "toolsearch", "gateway", "--config", str(tmp_path / "mcp.json")],
        "env": {"PYTHONPATH": os.pathsep.join(sys.path)},
    }
    (tmp_path / "inspector.json").write_text(json.dumps({"mcpServers": {"gateway": gateway}}))
    target = ["--config", str(tmp_path / "inspector.json"), "--server", "gateway"]
    yield inspecting([*target, "--protocol-era", era], tmp_path)


async def test_the_inspector_lists_searches_and_calls(inspect):
    listed = await inspect("--method", "tools/list", "--strict")
    search = {"query": "convert a time between timezones", "limit": 1}
    found = await inspect(*calling("toolSearchTool", search))
    (tool,) = found["structuredContent"]["tools"]
    arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Kathmandu"}
    called = await inspect(*calling(tool["callWith"], {"name": tool["name"], "arguments": arguments}))

    assert [entry["name"] for entry in listed["tools"]] == [
        "toolSearchTool",
        "callToolRead",
        "callToolWrite",
        "callToolDestructive",
    ]
    assert tool["name"] == "time__convert_time"
    assert json.loads(called["content"][0]["text"])["time_difference"] == "+5.75h"
