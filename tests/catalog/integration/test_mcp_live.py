"""A catalog of live servers follows what they list, and never loses a tool to a listing that breaks off."""

import asyncio
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.gateway import SERVERS
from tests.kit.poisoned_tools import tool
from tests.kit.upstream_actors import free_port
from toolsearch.catalog.catalog import Catalog
from toolsearch.catalog.changes import CatalogChange
from toolsearch.catalog.sources.mcp import McpSource

UPDATE = tool("Reads its file anew.", name="update")
ADD = tool("Adds two numbers.")
SECOND = tool("Subtracts.", name="second")
PATIENCE_S = 30


class Changing:
    """A server that is what its file says; see `changing_server.py`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self.lists(UPDATE, ADD)

    def lists(self, *tools: dict[str, Any], **more: Any) -> None:
        new = self._folder / "lists.new"
        new.write_text(json.dumps({"tools": tools, **more}))
        new.replace(self._folder / "lists.json")

    def command(self, *more: str) -> list[str]:
        return [sys.executable, str(SERVERS / "changing_server.py"), str(self._folder), *more]

    def entry(self, mode: str) -> dict[str, Any]:
        command, *args = self.command()
        return {"command": command, "args": args, "mode": mode}

    @property
    def pids(self) -> list[int]:
        return [int(pid) for pid in (self._folder / "pids").read_text().split()]


class Following:
    """A catalog of one server, and the changes that it has seen."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self._news = threading.Condition()
        self.source = McpSource({"mcpServers": {"s": entry}})
        self.catalog = Catalog()
        self.catalog.load(self.source)
        self.catalog.subscribe(self._changed)

    def _changed(self, _: CatalogChange) -> None:
        with self._news:
            self._news.notify_all()

    def until(self, condition: Callable[[], bool]) -> None:
        with self._news:
            assert self._news.wait_for(condition, PATIENCE_S)

    def call(self, name: str) -> None:
        callback = self.catalog.get(name).callback
        assert callback is not None
        asyncio.run(callback.call({}, {}))  # type: ignore[arg-type]

    @property
    def described(self) -> dict[str, str]:
        return {each.name: each.definition.description for each in self.catalog}


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def server(tmp_path: Path) -> Changing:
    return Changing(tmp_path / "server")


@pytest.fixture(params=["stdio-legacy", "stdio-auto", "http-legacy", "http-auto"])
def entry(request: pytest.FixtureRequest, server: Changing) -> Iterator[dict[str, Any]]:
    transport, mode = request.param.split("-")
    if transport == "stdio":
        yield server.entry(mode)
        return
    port = free_port()
    process = subprocess.Popen(server.command("http", str(port)))
    try:
        while not answers(port):
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.02)
        yield {"url": f"http://127.0.0.1:{port}/mcp", "mode": mode}
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def followed(entry: dict[str, Any]) -> Iterator[Following]:
    followed = Following(entry)
    yield followed
    followed.catalog.close()


def test_a_catalog_follows_a_server_that_says_that_its_list_has_changed(server, followed):
    assert followed.described == {"s__update": "Reads its file anew.", "s__add": "Adds two numbers."}

    server.lists(UPDATE, SECOND)
    followed.call("s__update")
    followed.until(lambda: "s__second" in followed.catalog)

    assert followed.described == {"s__update": "Reads its file anew.", "s__second": "Subtracts."}
    followed.call("s__second")


@pytest.mark.parametrize("entry", ["stdio-legacy", "stdio-auto"], indirect=True)
def test_a_server_that_was_connected_anew_is_followed_with_what_it_lists_now(server, followed):
    server.lists(UPDATE, SECOND)
    os.kill(server.pids[-1], signal.SIGKILL)
    followed.until(lambda: "s__second" in followed.catalog)

    assert list(followed.described) == ["s__update", "s__second"]
    assert [status.tools for status in followed.source.servers] == [2]


@pytest.mark.parametrize("entry", ["stdio-legacy", "stdio-auto"], indirect=True)
def test_a_listing_that_fails_removes_no_tool_and_the_status_says_so(server, followed):
    server.lists(UPDATE, SECOND, cut="error")
    with pytest.raises(Exception, match="could not be listed"):  # noqa: PT012  a call after the notice waits for the list
        while True:
            followed.call("s__update")

    assert list(followed.described) == ["s__update", "s__add"]
    (status,) = followed.source.servers
    assert (status.state, status.tools) == ("ready", 2)
    assert status.error == "MCP server 's': its tools could not be listed: the disk is gone"


def test_a_forgotten_catalog_that_is_followed_ends_its_processes(server):
    catalog = Catalog.from_mcp({"mcpServers": {"s": server.entry("auto")}})
    assert "s__add" in catalog

    del catalog
    gc.collect()

    with pytest.raises(ProcessLookupError):
        os.kill(server.pids[-1], 0)


@pytest.mark.parametrize("entry", ["stdio-legacy", "stdio-auto"], indirect=True)
def test_a_closed_source_tells_of_nothing_any_more(server, followed):
    followed.catalog.close()
    told: list[object] = []
    followed.source.follow(told.append)

    assert told == []
    assert list(followed.described) == ["s__update", "s__add"]
