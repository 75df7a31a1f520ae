"""What a client over stdio is told before anything heavy is loaded, and that the gateway then goes on from there."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from tests.kit.fake_servers import OWN
from tests.kit.gateway import raw_server, served, time_server
from tests.kit.stdio_client import Client
from toolsearch.gateway.exposure.own_tools import OwnTools
from toolsearch.wire.mcp import opening

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "whoever", "version": "1"},
}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "whoever", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
LISTEN = {"_meta": META, "notifications": {"toolsListChanged": True, "promptsListChanged": True}}
PID = {"name": "callToolRead", "arguments": {"name": "raw__pid"}}
LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
# A module that is imported at the start of Python: what is heavy, the SDK and the command line, takes 15 s to import.
SLOW = """
import sys, time
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name in ("typer", "mcp", "pydantic", "numpy"):
            sys.meta_path.remove(self)
            time.sleep({delay_s})
sys.meta_path.insert(0, Slow())
"""


class Starting:
    """Starts gateways over one configuration, which keep what they know in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config: dict[str, Any] = {"mcpServers": {"raw": raw_server(), "time": time_server()}}
        self.section: dict[str, Any] = {"passThrough": {"maxTools": 0}}
        self._running: list[subprocess.Popen[str]] = []

    @property
    def path(self) -> Path:
        path = self.folder / "mcp.json"
        section = {"stateDir": str(self.folder / "state"), **self.section}
        path.write_text(json.dumps({**self.config, "toolsearch": section}), encoding="utf-8")
        return path

    def start(self, *, delay_s: float = 0) -> Client:
        (self.folder / "usercustomize.py").write_text(SLOW.format(delay_s=delay_s), encoding="utf-8")
        process = subprocess.Popen(
            [sys.executable, "-m", "toolsearch", "gateway", "--config", str(self.path)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(self.folder), *sys.path])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
        self._running.append(process)
        return Client(process)

    def run_once(self) -> None:
        """Run a gateway until it knows its servers, so that it keeps what the next is to say first."""
        client = self.start()
        client.ask(0, "initialize", **INITIALIZE)
        client.ask(1, "tools/call", name="toolSearchTool", arguments={"query": "select:raw__pid"})
        assert "result" in [client.answer(), client.answer()][1]
        client.end()

    def end(self) -> None:
        for process in self._running:
            process.kill()
            with process:  # closes its pipes
                pass


@pytest.fixture
def gateways(tmp_path: Path) -> Iterator[Starting]:
    starting = Starting(tmp_path)
    yield starting
    starting.end()


def named(answer: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in answer["result"]["tools"]]


def test_a_client_has_its_lists_while_everything_else_still_takes_15_seconds_and_its_first_call_waits(
    gateways: Starting,
) -> None:
    """Were anything else loaded first, the first answer would come with the others."""
    client = gateways.start(delay_s=15)
    client.ask(0, "initialize", **INITIALIZE)
    client.say({"method": "notifications/initialized"})
    for number, method in enumerate(LISTS, 1):
        client.ask(number, method)
    client.ask(5, "tools/call", **PID)
    answers = [client.answer() for _ in range(5)]
    is_loaded = (gateways.folder / "state" / "trust.db").exists()
    called = client.answer()
    client.end()

    assert [answer["id"] for answer in answers] == [0, 1, 2, 3, 4]
    assert named(answers[1]) == OWN
    assert not is_loaded
    assert called["id"] == 5
    assert called["result"]["content"][0]["text"].isdecimal()
    assert "notifications/tools/list_changed" not in client.told


@pytest.mark.parametrize("again", [False, True], ids=["first run", "second run"])
def test_a_client_of_2026_is_answered_at_once_as_often_as_it_asks_and_heard_from_then_on(
    gateways: Starting, again: bool
) -> None:
    """Claude Code asks what there is, to be told of changes, and then once more what there is."""
    if again:
        gateways.run_once()
    client = gateways.start(delay_s=5)
    client.ask("probe", "server/discover", _meta=META)
    client.ask("listen", "subscriptions/listen", **LISTEN)
    client.ask(0, "server/discover", _meta=META)
    client.ask(1, "tools/list", _meta=META)
    answers = [client.answer() for _ in range(3)]
    told_at_first = [*client.told]
    client.ask(2, "tools/call", **PID, _meta=META)
    called = client.answer()

    assert [answer["id"] for answer in answers] == ["probe", 0, 1]
    assert named(answers[2]) == OWN
    assert told_at_first == ["notifications/subscriptions/acknowledged"]
    assert called["result"]["content"][0]["text"].isdecimal()
    assert client.told == told_at_first


def test_a_client_that_gives_up_asking_what_there_is_may_shake_hands_on_the_same_pipe(gateways: Starting) -> None:
    client = gateways.start(delay_s=1)
    client.ask("discover", "server/discover", _meta=META)
    client.ask(0, "initialize", **INITIALIZE)
    client.ask(1, "tools/list")
    client.ask(2, "tools/call", **PID)

    answers = [client.answer() for _ in range(4)]

    assert answers[1]["result"]["protocolVersion"] == "2025-11-25"
    assert named(answers[2]) == OWN
    assert answers[3]["result"]["content"][0]["text"].isdecimal()


def test_the_second_run_says_what_the_servers_are_about_until_the_configuration_is_another(gateways: Starting) -> None:
    def said() -> str:
        client = gateways.start(delay_s=1)
        client.ask(0, "initialize", **INITIALIZE)
        instructions: str = client.answer()["result"]["instructions"]
        client.end()
        return instructions

    gateways.run_once()
    second = said()
    gateways.section["usage"] = False
    other = said()

    assert second.startswith("The tools of raw (cancelled, crash, echo, env), time are behind")
    assert other.startswith("The tools of raw, time are behind toolSearchTool")


def test_what_is_kept_to_be_said_first_does_not_count_once_people_have_decided_on_approvals(gateways: Starting) -> None:
    gateways.run_once()
    revoke = ["gateway", "approve", "--config", str(gateways.path), "--revoke", "--yes", "raw__pid"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-m", "toolsearch", *revoke], check=True, env=environment)
    client = gateways.start(delay_s=1)
    client.ask(0, "initialize", **INITIALIZE)

    assert "pid" not in client.answer()["result"]["instructions"]


def test_a_list_that_settings_may_change_is_waited_for(gateways: Starting) -> None:
    gateways.section["exposure"] = {"pins": ["raw__pid"]}
    client = gateways.start(delay_s=1)
    client.ask(0, "initialize", **INITIALIZE)
    client.ask(1, "tools/list")

    client.answer()
    assert named(client.answer()) == [*OWN, "raw__pid"]


def test_few_tools_are_listed_whole_from_the_second_run_on_and_ours_in_the_first(gateways: Starting) -> None:
    gateways.config["mcpServers"].pop("time")
    gateways.section = {}

    def listed() -> list[str]:
        client = gateways.start()
        client.ask(0, "initialize", **INITIALIZE)
        client.ask(1, "tools/list")
        client.ask(2, "tools/call", **PID)
        answers = [client.answer() for _ in range(3)]
        client.end()
        assert client.told == []
        return named(answers[1])

    assert listed() == OWN
    assert "raw__pid" in (second := listed())
    assert not set(OWN) & set(second)


def test_what_servers_offer_beside_tools_is_told_as_soon_as_it_is_known(gateways: Starting) -> None:
    rich = str(Path(__file__).parents[2] / "mcp_servers" / "rich_server.py")
    gateways.config["mcpServers"]["rich"] = {"command": sys.executable, "args": [rich]}

    def prompts() -> list[str]:
        client = gateways.start(delay_s=1)
        client.ask(0, "initialize", **INITIALIZE)
        client.ask(1, "prompts/list")
        client.ask(2, "tools/call", **PID)
        answers = [client.answer() for _ in range(3)]
        client.ask(3, "prompts/list")
        later = client.answer()
        client.end()
        # A change that is told before the first answer is in both of them.
        assert "notifications/prompts/list_changed" in client.told or answers[1]["result"] == later["result"]
        return [prompt["name"] for prompt in answers[1]["result"]["prompts"]]

    gateways.run_once()
    kept = prompts()
    gateways.section["usage"] = False

    assert [name for name in kept if name.startswith("rich__")]
    assert prompts() == []  # of another configuration nothing is kept


def test_a_gateway_that_cannot_start_says_why_to_whom_it_keeps_waiting(gateways: Starting) -> None:
    gateways.section["limits"] = {"nonsense": 1}
    client = gateways.start(delay_s=1)
    client.ask(0, "initialize", **INITIALIZE)
    client.ask(1, "tools/list")
    client.ask(2, "tools/call", **PID)
    answers = [client.answer() for _ in range(3)]

    assert [answer["id"] for answer in answers] == [0, 1, 2]
    assert "toolsearch.limits.nonsense" in answers[2]["error"]["message"]


# What is said first is what the SDK's own server would say.


@pytest.mark.parametrize("version", [*HANDSHAKE_PROTOCOL_VERSIONS, "2099-01-01"])
async def test_a_handshake_is_that_of_the_sdk(version: str) -> None:
    theirs = await asked_of_the_sdk("initialize", {**INITIALIZE, "protocolVersion": version})
    request = {"id": 1, "params": {**INITIALIZE, "protocolVersion": version}}

    assert opening.initialized(request, server_of(theirs["serverInfo"]), theirs["instructions"]) == theirs


@pytest.mark.parametrize("method", ["server/discover", *LISTS])
async def test_the_answers_of_2026_are_those_of_the_sdk(method: str) -> None:
    theirs = await asked_of_the_sdk(method, {"_meta": META})
    server = server_of(theirs["_meta"]["io.modelcontextprotocol/serverInfo"])
    request = {"id": 1, "params": {"_meta": META}}
    if method == "server/discover":
        ours = opening.discovered(request, server, theirs["instructions"])["result"]
    else:
        which = opening.LISTS[method]
        ours = opening.listed(request, which, theirs[which.key], server)

    assert ours == theirs
    assert (opening.MODERN_VERSION,) == MODERN_PROTOCOL_VERSIONS


async def asked_of_the_sdk(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """What the gateway's server answers over HTTP, where there is no door."""
    import httpx2

    config = {"mcpServers": {"time": time_server()}, "toolsearch": {"passThrough": {"maxTools": 0}}}
    version = params.get("_meta", {}).get("io.modelcontextprotocol/protocolVersion")
    headers = {"accept": "application/json, text/event-stream"}
    if version is not None:
        headers |= {"mcp-protocol-version": version, "mcp-method": method}
    async with served(config) as (_, url), httpx2.AsyncClient(timeout=30) as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        response = await http.post(url, json=body, headers=headers)
    lines = response.text.splitlines()
    data = next((line.removeprefix("data: ") for line in lines if line.startswith("data: {")), response.text)
    result: dict[str, Any] = json.loads(data)["result"]
    return result


def server_of(info: dict[str, str]) -> opening.ServerInfo:
    return opening.ServerInfo(**info)


@pytest.mark.parametrize("topics", [{}, {"git": ("diff", "log")}])
def test_our_tools_are_not_hidden_and_do_not_begin_with_a_condition(topics: dict[str, Sequence[str]]) -> None:
    own = OwnTools.over(topics)

    assert [entry["name"] for entry in own.entries] == OWN
    assert all(entry["_meta"] == {"anthropic/alwaysLoad": True} for entry in own.entries)
    assert all(("git" in str(entry["description"])) == bool(topics) for entry in own.entries)
    assert not own.instructions.startswith("If")
