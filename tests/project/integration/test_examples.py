"""Every example, started as its reader starts it; the agents talk to an API on the loopback interface."""

import json

import pytest

from tests.kit.commands import start_python
from tests.kit.examples import EXAMPLES, run_example
from tests.kit.loopback import Call, LoopbackApi, Reply
from tests.kit.service_process import service_process

SEARCH = "toolSearchTool"
CALL = "callTool"
MEDIAN = "statistics__median"
NUMBERS = {"data": [3, 1, 4, 1, 5]}
MEDIAN_CALL = Call(MEDIAN, NUMBERS, "2")
MEDIAN_SCRIPT = (
    Reply(calls=[Call(SEARCH, {"query": "median of numbers", "limit": 1}, "1")]),
    Reply(calls=[MEDIAN_CALL]),
    Reply("The median is 3."),
)


def test_the_quickstart_searches_discovers_and_calls():
    lines = run_example(str(EXAMPLES / "quickstart.py")).splitlines()

    assert lines[0].endswith("convert_time: Convert a moment from one time zone to another.")
    assert lines.index(f"['{SEARCH}']") < lines.index(f"['{SEARCH}', '{MEDIAN}']")
    assert lines[-1] == "3"


def test_the_openai_agent_finds_a_tool_calls_it_and_answers(api: LoopbackApi):
    api.script(*MEDIAN_SCRIPT)

    said = run_example(
        str(EXAMPLES / "openai_agent.py"), OPENAI_API_KEY="k", OPENAI_BASE_URL=api.openai_url, OPENAI_MODEL="m"
    )

    assert said == "The median is 3.\n"
    assert api.refusals == []
    assert api.tools == [[SEARCH], [SEARCH, MEDIAN], [SEARCH, MEDIAN]]
    assert [body["model"] for body in api.bodies] == ["m", "m", "m"]
    assert api.bodies[2]["messages"][-1] == {"role": "tool", "tool_call_id": "2", "content": "3"}


@pytest.mark.parametrize(
    ("model", "begins", "called"),
    [
        ("m", [SEARCH, CALL], Call(CALL, {"name": MEDIAN, "arguments": NUMBERS}, "2")),  # the answer has the definition
        (
            "claude-sonnet-4-6",
            [SEARCH, CALL, "calendar__calendar"],
            MEDIAN_CALL,
        ),  # the answer refers to a listed tool
        ("claude-opus-4-8", [SEARCH], MEDIAN_CALL),  # a message after the answer adds the tool
    ],
)
def test_the_anthropic_agent_finds_a_tool_calls_it_and_answers(
    model: str, begins: list[str], called: Call, api: LoopbackApi
):
    api.script(MEDIAN_SCRIPT[0], Reply(calls=[called]), MEDIAN_SCRIPT[2])

    said = run_example(
        str(EXAMPLES / "anthropic_agent.py"), ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=api.url, ANTHROPIC_MODEL=model
    )

    assert said == "The median is 3.\n"
    assert api.refusals == []
    tools = api.bodies[0]["tools"]
    assert [tool["name"] for tool in tools][: len(begins)] == begins
    assert all(body["tools"] == tools for body in api.bodies)
    [result] = [block for block in api.bodies[2]["messages"][-1]["content"] if block.get("tool_use_id") == "2"]
    assert result["content"] == [{"type": "text", "text": "3"}]


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
