"""The official conformance suite, with the gateway as the server: what fails of it is what is known to, and why."""

import asyncio
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests import gateway_harness
from tests.gateway_harness import SERVERS, served

SUITE = SERVERS / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
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


def config(folder: Path) -> dict[str, Any]:
    server = {"command": sys.executable, "args": [str(SERVERS / "conformance_server.py")], "mode": "legacy"}
    exposure = {"passThroughTools": 100, "passThroughTokens": 100_000}
    return {"mcpServers": {"suite": server}, "toolsearch": {"exposure": exposure, "stateDir": str(folder / "state")}}


@pytest.mark.parametrize("names", ["gateway", "suite"])
async def test_what_fails_of_the_conformance_suite_is_what_is_known_to(tmp_path, monkeypatch, names):
    if names == "suite":
        make_app = gateway_harness.http_app
        monkeypatch.setattr(gateway_harness, "http_app", lambda gateway: SuiteNames(make_app(gateway)))

    async with served(config(tmp_path)) as (_, url):
        baseline = SERVERS / f"conformance-by-{names}-names.yml"
        command = [str(SUITE), "server", "--url", url, "--expected-failures", str(baseline)]
        process = await asyncio.create_subprocess_exec(
            str(NODE), *command, cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        output, _ = await process.communicate()

    assert process.returncode == 0, output.decode()[-4_000:]
    assert b"Total:" in output
