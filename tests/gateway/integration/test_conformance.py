"""The official conformance suite, with the gateway as the server and as the client: what fails is known to, and why."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.kit import gateway as gateway_kit
from tests.kit.conformance_user import users
from tests.kit.gateway import SERVERS, served

SUITE = SERVERS / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
SUITE_OF_2026 = SERVERS / "node_modules" / "conformance-of-2026" / "dist" / "index.js"
NODE = SERVERS / "node_modules" / ".bin" / "node"  # of npm: the suite of 2026 needs a newer one than many have
OF_2026 = ("--spec-version", "2026-07-28")
EXTENSION = ("--force", *OF_2026)  # scenarios of extensions are of no revision
OF_TASKS = (
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-mrtr-composition",
)
TASK_TOOLS = {"greet", "slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input"}
PATIENCE_MS = "300000"  # all scenarios start at once, and most of that time each waits for the others
CLIENT = SERVERS / "conformance_client.py"

pytestmark = pytest.mark.skipif(
    not NODE.is_file() or not SUITE.is_file(), reason="needs the suite; run: npm ci --prefix tests/mcp_servers"
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


def _is_of_suite(name: str) -> bool:
    return name.startswith("test_") or name in TASK_TOOLS


def _prefixed(name: bytes) -> bytes:
    return b"suite__" + name if _is_of_suite(name.decode()) else name


def _renamed(body: bytes) -> bytes:
    request = json.loads(body)
    params = request.get("params", {})
    for named in (params, params.get("ref", {})):
        if _is_of_suite(str(named.get("name", ""))):
            named["name"] = f"suite__{named['name']}"
    return json.dumps(request).encode()


def config(folder: Path, server: str, **more: str) -> dict[str, Any]:
    entry = {"command": sys.executable, "args": [str(SERVERS / server)], **more}
    shown = {"maxTools": 100, "maxTokens": 100_000}
    return {"mcpServers": {"suite": entry}, "toolsearch": {"passThrough": shown, "stateDir": str(folder / "state")}}


@pytest.fixture
def by_suite_names(monkeypatch) -> None:
    make_app = gateway_kit.http_app
    monkeypatch.setattr(gateway_kit, "http_app", lambda gateway: SuiteNames(make_app(gateway)))


async def run_suite(suite: Path, folder: Path, *arguments: str) -> str:
    """What the suite says, which found nothing that it should not have."""
    process = await asyncio.create_subprocess_exec(
        *[str(NODE), str(suite), *arguments],
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()[-4_000:]
    return output.decode()


async def run(suite: Path, config: dict[str, Any], folder: Path, baseline: str, *options: str) -> None:
    """Fails where anything but what *baseline* lists fails, or anything of that passes."""
    known = ["--expected-failures", str(SERVERS / baseline)]
    async with served(config) as (_, url):
        assert "Total:" in await run_suite(suite, folder, "server", "--url", url, *known, *options)


async def test_what_fails_against_the_gateway_as_it_is_are_calls_by_a_servers_own_names(tmp_path):
    older = config(tmp_path, "conformance_server.py", mode="legacy")
    await run(SUITE, older, tmp_path, "conformance-by-gateway-names.yml")


@pytest.mark.usefixtures("by_suite_names")
async def test_nothing_of_2025_fails_once_the_suite_calls_by_the_gateways_names(tmp_path):
    older = config(tmp_path, "conformance_server.py", mode="legacy")
    await run(SUITE, older, tmp_path, "conformance-by-suite-names.yml")


@pytest.mark.usefixtures("by_suite_names")
async def test_nothing_that_2026_requires_fails_once_the_suite_calls_by_the_gateways_names(tmp_path):
    newer = config(tmp_path, "conformance_2026_server.py")
    await run(SUITE_OF_2026, newer, tmp_path, "conformance-of-2026.yml", "--requirements", "2026-07-28")


@pytest.mark.usefixtures("by_suite_names")
@pytest.mark.parametrize("scenario", ["http-header-validation", "http-custom-header-server-validation"])
async def test_headers_that_do_not_fit_a_call_are_refused_as_2026_wants_it(tmp_path, scenario):
    """Checks that the suite runs and does not count; the second is of a tool that wants an argument in a header."""
    newer = config(tmp_path, "conformance_2026_server.py")
    async with served(newer) as (_, url):
        output = await run_suite(SUITE_OF_2026, tmp_path, "server", "--url", url, "--scenario", scenario, *OF_2026)
    assert "0 failed, 0 warnings" in output


@pytest.mark.usefixtures("by_suite_names")
async def test_tasks_are_as_their_extension_wants_them(tmp_path):
    async with served(config(tmp_path, "tasks_server.py")) as (_, url):
        for scenario in OF_TASKS:
            asked = ("server", "--url", url, "--scenario", scenario, *EXTENSION)
            assert "0 failed, 0 warnings" in await run_suite(SUITE_OF_2026, tmp_path, *asked)


@pytest.mark.usefixtures("by_suite_names")
async def test_a_tool_that_only_runs_as_a_task_is_run_for_a_client_without_tasks_though_the_suite_wants_an_error(
    tmp_path,
):
    """A server must refuse such a call where it cannot answer it otherwise; the gateway can, since it waits itself."""
    known = tmp_path / "known.yml"
    known.write_text("server: [tasks-required-task-error]")
    async with served(config(tmp_path, "tasks_server.py")) as (_, url):
        asked = ("server", "--url", url, "--scenario", "tasks-required-task-error", *EXTENSION)
        output = await run_suite(SUITE_OF_2026, tmp_path, *asked, "--expected-failures", str(known))
    assert "failing_job returned a successful response" in output


@pytest.mark.timeout(400)  # dozens of logins, each at a gateway of its own
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_as_a_client_the_gateway_does_what_each_revision_requires(tmp_path, revision):
    async with users(tmp_path) as port:
        command = f"{sys.executable} -I -S {CLIENT} {port}"
        options = ["--command", command, "--timeout", PATIENCE_MS, "--requirements", revision]
        assert "Total:" in await run_suite(SUITE_OF_2026, tmp_path, "client", *options)
