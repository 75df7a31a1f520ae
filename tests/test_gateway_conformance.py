"""The official conformance suite, with the gateway as the server: what fails of it is what is known to, and why."""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests import gateway_harness
from tests.gateway_harness import SERVERS, served

SUITE = SERVERS / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
SUITE_OF_2026 = SERVERS / "node_modules" / "conformance-of-2026" / "dist" / "index.js"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(
    NODE is None or not SUITE.is_file(), reason="needs Node.js and the suite; run: npm ci --prefix tests/mcp_servers"
)


class SuiteNames:
    """Lets the suite call tools and prompts by the names it knows: they are those of a server, and not of a gateway."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def renamed() -> Message:
            message = await receive()
            if message["type"] == "http.request" and message.get("body"):
                message["body"] = _renamed(message["body"])
            return message

        if scope["type"] == "http":
            kept = [(name, value) for name, value in scope["headers"] if name != b"content-length"]  # the body grows
            scope["headers"] = [(name, _prefixed(value) if name == b"mcp-name" else value) for name, value in kept]
        await self._app(scope, renamed, send)


def _prefixed(name: bytes) -> bytes:
    return b"suite__" + name if name.startswith(b"test_") else name


def _renamed(body: bytes) -> bytes:
    request = json.loads(body)
    params = request.get("params", {})
    for named in (params, params.get("ref", {})):
        if str(named.get("name", "")).startswith("test_"):
            named["name"] = f"suite__{named['name']}"
    return json.dumps(request).encode()


def config(folder: Path, server: str, **more: str) -> dict[str, Any]:
    entry = {"command": sys.executable, "args": [str(SERVERS / server)], **more}
    exposure = {"passThroughTools": 100, "passThroughTokens": 100_000}
    return {"mcpServers": {"suite": entry}, "toolsearch": {"exposure": exposure, "stateDir": str(folder / "state")}}


@pytest.fixture
def by_suite_names(monkeypatch) -> None:
    make_app = gateway_harness.http_app
    monkeypatch.setattr(gateway_harness, "http_app", lambda gateway: SuiteNames(make_app(gateway)))


@pytest.fixture
def node_22() -> None:
    version = subprocess.run([str(NODE), "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.removeprefix("v").split(".")[0]) < 22:
        pytest.skip(f"the suite of 2026 needs Node.js 22, and this is {version.strip()}")


async def run(suite: Path, config: dict[str, Any], folder: Path, baseline: str, *options: str) -> None:
    """Fails where anything but what *baseline* lists fails, or anything of that passes."""
    async with served(config) as (_, url):
        arguments = ["server", "--url", url, "--expected-failures", str(SERVERS / baseline), *options]
        process = await asyncio.create_subprocess_exec(
            *[str(NODE), str(suite), *arguments],
            cwd=folder,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()[-4_000:]
    assert b"Total:" in output


async def test_what_fails_against_the_gateway_as_it_is_are_calls_by_a_servers_own_names(tmp_path):
    older = config(tmp_path, "conformance_server.py", mode="legacy")
    await run(SUITE, older, tmp_path, "conformance-by-gateway-names.yml")


@pytest.mark.usefixtures("by_suite_names")
async def test_nothing_of_2025_fails_once_the_suite_calls_by_the_gateways_names(tmp_path):
    older = config(tmp_path, "conformance_server.py", mode="legacy")
    await run(SUITE, older, tmp_path, "conformance-by-suite-names.yml")


@pytest.mark.usefixtures("by_suite_names", "node_22")
async def test_nothing_that_2026_requires_fails_once_the_suite_calls_by_the_gateways_names(tmp_path):
    newer = config(tmp_path, "conformance_2026_server.py")
    await run(SUITE_OF_2026, newer, tmp_path, "conformance-of-2026.yml", "--requirements", "2026-07-28")
