"""Five published MCP servers behind one configuration, and one of them killed while it works."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.published_servers import make_repository, needs_node, published_servers
from tests.kit.tools import call, text_of
from toolsearch import McpSource
from toolsearch.errors import ServerUnavailableError

pytestmark = needs_node


@pytest.fixture
def repository(tmp_path) -> Path:
    return make_repository(tmp_path)


@pytest.fixture
def source(repository) -> Iterator[McpSource]:
    config = published_servers("${REPOSITORY}", memory="${REPOSITORY}/memory.jsonl")
    path = repository / "mcp.json"
    path.write_text(json.dumps({"mcpServers": config}))
    source = McpSource(path, environment={"REPOSITORY": str(repository)})
    yield source
    source.close()


def child_running(script: str) -> int:
    """The process id of our own child that runs *script*."""
    listing = subprocess.run(
        ["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(maxsplit=2) for line in listing.splitlines()]
    (pid,) = (int(row[0]) for row in rows if int(row[1]) == os.getpid() and script in row[2])
    return pid


async def test_five_servers_are_listed_together_and_one_tool_of_each_answers(source, repository):
    report = source.load()

    assert report.refused == ()
    assert [(server.name, server.state) for server in source.servers] == [
        ("git", "ready"),
        ("time", "ready"),
        ("everything", "ready"),
        ("filesystem", "ready"),
        ("memory", "ready"),
    ]
    assert "On branch trunk" in await text_of(report, "git__git_status", repo_path=str(repository))
    tokyo = await text_of(
        report, "time__convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"
    )
    assert json.loads(tokyo)["time_difference"] == "+9.0h"
    assert await text_of(report, "everything__echo", message="hello") == "Echo: hello"
    notes = str(repository / "notes.txt")
    assert await text_of(report, "filesystem__read_text_file", path=notes) == "remember the milk"
    assert (await call(report, "memory__read_graph")).structured == {"entities": [], "relations": []}


async def test_results_that_are_no_text_come_back_as_they_are(source):
    report = source.load()

    image = await call(report, "everything__get-tiny-image")
    links = await call(report, "everything__get-resource-links", count=1)

    assert [block["type"] for block in image.content] == ["text", "image", "text"]
    assert image.content[1]["mimeType"] == "image/png"
    assert [block["type"] for block in links.content] == ["text", "resource_link"]


async def test_one_server_killed_during_a_call_leaves_the_others_at_work_and_comes_back(source, repository):
    report = source.load()

    doomed = asyncio.create_task(call(report, "everything__trigger-long-running-operation", duration=60, steps=5))
    assert await text_of(report, "everything__echo", message="busy, but here") == "Echo: busy, but here"
    others = [
        asyncio.create_task(text_of(report, "time__get_current_time", timezone="UTC")),
        asyncio.create_task(text_of(report, "filesystem__list_directory", path=str(repository))),
        asyncio.create_task(text_of(report, "memory__search_nodes", query="milk")),
        asyncio.create_task(text_of(report, "git__git_status", repo_path=str(repository))),
    ]
    await asyncio.sleep(0)  # lets them be sent
    os.kill(child_running("server-everything"), signal.SIGKILL)

    with pytest.raises(ServerUnavailableError, match="MCP server 'everything': the connection was lost"):
        await doomed
    assert all(await asyncio.gather(*others))
    assert [server.state for server in source.servers if server.name != "everything"] == ["ready"] * 4
    assert await text_of(report, "everything__get-sum", a=2, b=3) == "The sum of 2 and 3 is 5."
    assert [server.state for server in source.servers] == ["ready"] * 5
