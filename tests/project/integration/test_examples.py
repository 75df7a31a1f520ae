"""Every example, started as its reader starts it; the agents talk to an API on the loopback interface."""

import json

from tests.kit.examples import EXAMPLES, run_example
from tests.kit.loopback import Call, LoopbackApi, Reply

SEARCH = "toolSearchTool"
MEDIAN = "statistics__median"
MEDIAN_SCRIPT = (
    Reply(calls=[Call(SEARCH, {"query": "median of numbers", "limit": 1}, "1")]),
    Reply(calls=[Call(MEDIAN, {"data": [3, 1, 4, 1, 5]}, "2")]),
    Reply("The median is 3."),
)


def test_the_quickstart_searches_discovers_and_calls():
    lines = run_example(str(EXAMPLES / "quickstart.py")).splitlines()

    assert lines[0].endswith("convert_time: Convert a moment from one time zone to another.")
    assert lines.index(f"['{SEARCH}']") < lines.index(f"['{SEARCH}', '{MEDIAN}', '{MEDIAN}_high']")
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


def test_the_anthropic_agent_finds_a_tool_calls_it_and_answers(api: LoopbackApi):
    api.script(*MEDIAN_SCRIPT)

    said = run_example(
        str(EXAMPLES / "anthropic_agent.py"), ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=api.url, ANTHROPIC_MODEL="m"
    )

    assert said == "The median is 3.\n"
    assert api.refusals == []
    assert api.tools == [[SEARCH], [SEARCH, MEDIAN], [SEARCH, MEDIAN]]
    [result] = api.bodies[2]["messages"][-1]["content"]
    assert (result["tool_use_id"], result["content"]) == ("2", [{"type": "text", "text": "3"}])


def test_the_mcp_servers_start_and_give_tools():
    told = json.loads(run_example("-m", "toolsearch", "sources", str(EXAMPLES / "mcp_servers.json"), "--json"))

    [source] = told["sources"]
    assert [(server["name"], server["state"]) for server in source["servers"]] == [("git", "ready"), ("time", "ready")]
    assert told["refused"] == []
