"""The configuration file is edited while real clients call real servers."""

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcp import Client

from benchmarks.fault_kit import StdioFault
from benchmarks.fault_kit import until as until_async
from tests.kit.commands import start_python
from tests.kit.gateway import connected, listening, names, text
from toolsearch.cli import main
from toolsearch.gateway.config_file import ConfigFile
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.http import http_app
from toolsearch.gateway.reports.commands import running_gateways

CLIENTS = 50
EDITS = 20
HALF = '{"mcpServers": {"steady": {"comma'


async def caller(url: str, number: int, is_over: Callable[[], bool]) -> list[str]:
    """Call the untouched server, again and again; give what came back."""
    answers: list[str] = []
    async with Client(url, mode="auto" if number % 2 else "legacy") as client:
        while not is_over() or not answers:
            call_id = f"{number}-{len(answers)}"
            result = await client.call_tool("steady__work", {"id": call_id})
            answers.append("lost" if result.is_error else text(result))
    return answers


async def test_no_call_of_an_untouched_server_is_lost_while_the_file_is_edited_for_50_clients(tmp_path: Path) -> None:
    steady, other, more = (StdioFault(tmp_path / name) for name in ("steady", "other", "more"))
    path = tmp_path / "mcp.json"

    def write(**servers: Any) -> None:
        section = {"stateDir": str(tmp_path / "state"), "servers": {"*": {"callTimeoutS": 60, "maxRunning": 100}}}
        document = {"mcpServers": {"steady": steady.entry, **servers}, "toolsearch": section}
        path.write_text(json.dumps(document))

    write(other=other.entry)
    file = ConfigFile(path, os.environ)
    gateway = Gateway(file.read(), file=file, trust_poll_s=0.01)
    edits = 0
    async with listening(http_app(gateway)) as url:
        calling = [asyncio.create_task(caller(f"{url}/mcp", each, lambda: edits == EDITS)) for each in range(CLIENTS)]
        await until_async(lambda: len(steady.runs) >= CLIENTS)
        while edits < EDITS:
            good = path.read_bytes()
            path.write_text(HALF)
            await until_async(lambda: "malformed" in file.problem)
            path.write_bytes(good)
            servers = [{"other": {**other.entry, "env": {"EDIT": str(edits)}}}, {"more": more.entry}, {}]
            write(**servers[edits % 3])
            await until_async(lambda: file.applied == path.read_bytes() and not file.problem)
            assert list(gateway.upstreams) == ["steady", *servers[edits % 3]]
            edits += 1
        answers = [answer for each in await asyncio.gather(*calling) for answer in each]
    assert "lost" not in answers
    assert steady.runs == Counter({f"{call}": 1 for call in steady.runs})
    assert len(steady.runs) == len(answers) >= CLIENTS * 2
    assert len(steady.pids) == 1


def test_commands_at_the_same_moment_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    command = ("-m", "toolsearch", "gateway", "add", "--config", str(path))
    running = [start_python(*command, f"server{each}", "--", "x") for each in range(4)]
    assert [process.communicate() and process.returncode for process in running] == [0] * 4
    assert sorted(json.loads(path.read_text())["mcpServers"]) == [f"server{each}" for each in range(4)]


async def test_the_command_tells_its_client_what_its_file_changes_and_its_status_says_why_it_does_not(
    tmp_path: Path,
) -> None:
    one, two = (StdioFault(tmp_path / name) for name in ("one", "two"))
    path, state = tmp_path / "mcp.json", tmp_path / "state"
    config = {"mcpServers": {"one": one.entry, "two": two.entry}, "toolsearch": {"stateDir": str(state)}}
    told = asyncio.Queue[object]()
    async with connected(config, "stdio", "legacy", tmp_path, message_handler=told.put) as client:
        assert await names(client) == ["one__work", "two__work"]
        assert await asyncio.to_thread(main, ["gateway", "pause", "two", "--config", str(path)]) == 0
        while await names(client) != ["one__work"]:
            await told.get()
        assert await asyncio.to_thread(main, ["gateway", "resume", "two", "--config", str(path)]) == 0
        while await names(client) != ["one__work", "two__work"]:
            await told.get()

        path.write_text(HALF)
        await until_async(lambda: "malformed" in str(running_gateways(state)[0]["status"]["warnings"]))
        assert await names(client) == ["one__work", "two__work"]
    assert len(one.pids) == 1
