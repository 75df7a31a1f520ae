"""Every example, started as its reader starts it; the agents talk to an API on the loopback interface."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.loopback import Call, LoopbackApi, Reply, api

__all__ = ["api"]  # a fixture

EXAMPLES = Path(__file__).parents[1] / "examples"
PRINTED = Path(__file__).parent / "example_outputs"  # what the chat examples print without a key
NO_KEYS = {"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": ""}
ELSEWHERE = {"anthropic_agent", "openai_agent", "quickstart", "weather_28_tools", "model"}  # tested otherwise
SEARCH = "toolSearchTool"
MEDIAN = "statistics__median"
MEDIAN_SCRIPT = (
    Reply(calls=[Call(SEARCH, {"query": "median of numbers", "limit": 1}, "1")]),
    Reply(calls=[Call(MEDIAN, {"data": [3, 1, 4, 1, 5]}, "2")]),
    Reply("The median is 3."),
)


def run(*arguments: str, **environment: str) -> str:
    """Run Python with *arguments*, as if the package were installed, and return what it prints."""
    commands = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": _path_with_python(), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], env=os.environ | commands | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _path_with_python() -> str:
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def test_the_quickstart_searches_discovers_and_calls():
    lines = run(str(EXAMPLES / "quickstart.py")).splitlines()

    assert lines[0].endswith("convert_time: Convert a moment from one time zone to another.")
    assert lines.index(f"['{SEARCH}']") < lines.index(f"['{SEARCH}', '{MEDIAN}', '{MEDIAN}_high']")
    assert lines[-1] == "3"


def test_the_openai_agent_finds_a_tool_calls_it_and_answers(api: LoopbackApi):
    api.script(*MEDIAN_SCRIPT)

    said = run(str(EXAMPLES / "openai_agent.py"), OPENAI_API_KEY="k", OPENAI_BASE_URL=api.openai_url, OPENAI_MODEL="m")

    assert said == "The median is 3.\n"
    assert api.refusals == []
    assert api.tools == [[SEARCH], [SEARCH, MEDIAN], [SEARCH, MEDIAN]]
    assert [body["model"] for body in api.bodies] == ["m", "m", "m"]
    assert api.bodies[2]["messages"][-1] == {"role": "tool", "tool_call_id": "2", "content": "3"}


def test_the_anthropic_agent_finds_a_tool_calls_it_and_answers(api: LoopbackApi):
    api.script(*MEDIAN_SCRIPT)

    said = run(
        str(EXAMPLES / "anthropic_agent.py"), ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=api.url, ANTHROPIC_MODEL="m"
    )

    assert said == "The median is 3.\n"
    assert api.refusals == []
    assert api.tools == [[SEARCH], [SEARCH, MEDIAN], [SEARCH, MEDIAN]]
    [result] = api.bodies[2]["messages"][-1]["content"]
    assert (result["tool_use_id"], result["content"]) == ("2", [{"type": "text", "text": "3"}])


@pytest.mark.parametrize("name", sorted(path.stem for path in PRINTED.glob("*.txt")))
def test_an_example_of_chat_prints_what_its_reader_is_to_see(name):
    printed = run("-W", "error", str(EXAMPLES / f"{name}.py"), **NO_KEYS)

    assert printed == (PRINTED / f"{name}.txt").read_text(encoding="utf-8")


def test_every_example_is_run_by_a_test():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {path.stem for path in PRINTED.glob("*.txt")} | ELSEWHERE


def test_an_example_asks_a_real_model_where_there_is_a_key(api: ScriptedApi):
    api.replies = [anthropic_message({"type": "text", "text": "No."}) | {"stop_reason": "end_turn"}] * 3

    keys = {"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": api.url, "ANTHROPIC_MODEL": "m"}
    said = run(str(EXAMPLES / "chat_quickstart.py"), **keys)

    assert [line.split()[-1] for line in said.splitlines()] == ["No."] * 3
    assert [request["model"] for request in api.requests] == ["m"] * 3


def test_the_mcp_servers_start_and_give_tools():
    told = json.loads(run("-m", "toolsearch", "sources", str(EXAMPLES / "mcp_servers.json"), "--json"))

    [source] = told["sources"]
    assert [(server["name"], server["state"]) for server in source["servers"]] == [("git", "ready"), ("time", "ready")]
    assert told["refused"] == []
