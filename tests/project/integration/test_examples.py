"""The examples without a model, started as their readers start them."""

import json

import pytest

from tests.kit.commands import start_python
from tests.kit.examples import EXAMPLES, run_example
from tests.kit.service_process import service_process

SEARCH = "toolSearchTool"
MEDIAN = "statistics__median"


def test_the_quickstart_searches_discovers_and_calls():
    lines = run_example(str(EXAMPLES / "quickstart.py")).splitlines()

    assert lines[0].endswith("convert_time: Convert a moment from one time zone to another.")
    assert lines.index(f"['{SEARCH}']") < lines.index(f"['{SEARCH}', '{MEDIAN}']")
    assert lines[-1] == "3"


def test_the_mcp_servers_start_and_give_tools():
    told = json.loads(run_example("-m", "toolsearch", "sources", str(EXAMPLES / "mcp_servers.json"), "--json"))

    [source] = told["sources"]
    assert [(server["name"], server["state"]) for server in source["servers"]] == [("git", "ready"), ("time", "ready")]
    assert told["refused"] == []


def test_the_client_of_a_service_gets_an_agent_its_tools(tmp_path):
    with service_process(tmp_path, "--log-level", "error") as started:
        said = run_example(
            str(EXAMPLES / "service_client.py"), TOOLSEARCH_URL=started.url, TOOLSEARCH_KEY=started.key
        ).splitlines()

    assert said[0].endswith("/mcp/...")
    assert said[1].startswith("found: ['send_mail'")
    assert said[-1] == "the call is handed_back with {'to': 'ann@example.com'}"


@pytest.mark.parametrize(
    ("example", "given", "said"),
    [
        ("openai_agent.py", {"OPENAI_API_KEY": ""}, "Set OPENAI_API_KEY first, and OPENAI_BASE_URL"),
        ("anthropic_agent.py", {"ANTHROPIC_API_KEY": ""}, "Set ANTHROPIC_API_KEY first, and ANTHROPIC_BASE_URL"),
        ("service_client.py", {"TOOLSEARCH_URL": ""}, "Start the service first, and set TOOLSEARCH_URL"),
        (
            "service_client.py",
            {"TOOLSEARCH_URL": "http://127.0.0.1:9", "TOOLSEARCH_KEY": "k"},
            "error [service_unreachable]: the service cannot be reached",
        ),
    ],
)
def test_an_example_without_what_it_needs_says_so_in_one_line(example: str, given: dict[str, str], said: str):
    program = start_python(str(EXAMPLES / example), **given)
    out, err = program.communicate(timeout=60)

    assert (program.returncode, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(said)
