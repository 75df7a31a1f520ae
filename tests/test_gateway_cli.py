"""The commands under ``toolsearch gateway``: what they print, what they leave alone, and their exit codes."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.gateway_harness import raw_server
from toolsearch.cli import main


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run(capsys, monkeypatch) -> Callable[..., Ran]:
    """Run a command as a shell would, on a screen that cuts nothing off."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> Ran:
        code = main(["gateway", *arguments])
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture
def configured(tmp_path) -> Callable[..., str]:
    """Write a configuration of these servers, and settings, and give its path."""

    def configured(servers: dict[str, Any], **section: Any) -> str:
        path = tmp_path / "mcp.json"
        section = {"stateDir": str(tmp_path / "state"), **section}
        path.write_text(json.dumps({"mcpServers": servers, "toolsearch": section}))
        return str(path)

    return configured


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_check_tells_what_each_server_gives_refuses_and_costs(run, configured):
    config = configured(
        {"raw": raw_server(), "bad": raw_server("bad-tools"), "gone": {"command": "/no/such/program"}},
        rules={"deny": ["raw__crash"]},
    )
    ran = run("check", "--config", config, "--json")

    raw, bad, gone = ran.json["servers"]
    assert ran.code == 1
    assert (raw["state"], raw["tools"], raw["ruled_out"], raw["error"]) == ("ready", 8, ["raw__crash"], "")
    assert raw["tokens"] > 0
    assert (bad["state"], bad["tools"]) == ("ready", 4)
    assert "bad__array" in [refusal["name"] for refusal in bad["refused"]]
    assert (gone["state"], gone["tools"]) == ("down", 0)
    assert "/no/such/program" in gone["error"]
    assert ran.json["tools"] == 12
    assert ran.json["all_tools_tokens"] == raw["tokens"] + bad["tokens"]


def test_check_shows_the_same_to_people_with_the_reasons(run, configured):
    ran = run("check", "--config", configured({"bad": raw_server("bad-tools")}))

    assert ran.code == 0
    assert "inputSchema" in ran.out
    assert "in place of 4 tools" in ran.out


def test_check_says_that_no_server_can_be_used(run, configured):
    assert run("check", "--config", configured({"gone": {"command": "/no/such/program"}})).code == 3


def test_check_names_the_setting_that_cannot_be_used(run, configured):
    ran = run("check", "--config", configured({"raw": raw_server()}, exposure={"limit": 0}))

    assert ran.code == 2
    assert "toolsearch.exposure.limit" in ran.err


def test_check_remembers_no_tool_as_seen(run, configured, tmp_path):
    run("check", "--config", configured({"raw": raw_server()}))

    assert not [path for path in files_below(tmp_path) if "pins" in Path(path).name]


def test_a_command_without_a_configuration_says_how_to_give_one(run):
    ran = run("check")

    assert ran.code == 2
    assert "--config mcp.json" in ran.err
