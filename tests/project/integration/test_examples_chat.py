"""The examples of chat and tool calling: what each prints without a key, and what agents do with a model.

The models are APIs on the loopback interface. Each example runs in a copy of one process.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.examples import EXAMPLES
from tests.kit.loopback import Call, LoopbackApi, Reply

PRINTED = Path(__file__).parent / "example_outputs"
NAMES = sorted(path.stem for path in PRINTED.glob("*.txt"))
# They have tests of their own.
ELSEWHERE = {"anthropic_agent", "openai_agent", "quickstart", "service_client", "weather_28_tools"}
NO_KEYS = {"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": ""}

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


@pytest.mark.parametrize("name", NAMES)
def test_an_example_prints_what_its_reader_is_to_see(name: str, copied_example: Callable[..., str]):
    printed = copied_example(f"{name}.py", **NO_KEYS)

    assert printed == (PRINTED / f"{name}.txt").read_text(encoding="utf-8")


def test_every_example_is_run_by_a_test():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*NAMES, *ELSEWHERE, "model"}


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_an_example_asks_a_real_model_where_there_is_a_key(
    api: LoopbackApi, provider: str, copied_example: Callable[..., str]
):
    api.script(*[Reply("No.")] * 3)
    name, url = provider.upper(), api.openai_url if provider == "openai" else api.url
    keys = NO_KEYS | {f"{name}_API_KEY": "k", f"{name}_BASE_URL": url, f"{name}_MODEL": "m"}

    said = copied_example("chat_quickstart.py", **keys)

    assert [line.split()[-1] for line in said.splitlines()] == ["No."] * 3
    assert api.refusals == []


def test_the_openai_agent_finds_a_tool_calls_it_and_answers(api: LoopbackApi, copied_example: Callable[..., str]):
    api.script(*MEDIAN_SCRIPT)

    said = copied_example("openai_agent.py", OPENAI_API_KEY="k", OPENAI_BASE_URL=api.openai_url, OPENAI_MODEL="m")

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
    model: str, begins: list[str], called: Call, api: LoopbackApi, copied_example: Callable[..., str]
):
    api.script(MEDIAN_SCRIPT[0], Reply(calls=[called]), MEDIAN_SCRIPT[2])

    said = copied_example(
        "anthropic_agent.py", ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=api.url, ANTHROPIC_MODEL=model
    )

    assert said == "The median is 3.\n"
    assert api.refusals == []
    tools = api.bodies[0]["tools"]
    assert [tool["name"] for tool in tools][: len(begins)] == begins
    assert all(body["tools"] == tools for body in api.bodies)
    [result] = [block for block in api.bodies[2]["messages"][-1]["content"] if block.get("tool_use_id") == "2"]
    assert result["content"] == [{"type": "text", "text": "3"}]
