"""The adapter for LangChain, in LangChain: with a fake chat model, and on the wires of two APIs."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.adapters import told
from tests.adapters.inside.story import SEARCH
from tests.kit.adapter_pages import PAGES, assert_runs
from tests.kit.framework_environment import Framework
from tests.kit.loopback import LoopbackApi


def test_three_threads_at_once_each_find_and_call_their_tools(framework: Callable[[str], Framework]) -> None:
    told.assert_told(framework("langchain").run("langchain_story.py"))


def test_the_list_grows_for_openai_and_stays_for_claude(
    framework: Callable[[str], Framework], api: LoopbackApi
) -> None:
    """Without an event loop, which takes the other half of the middleware."""
    api.remembers = False  # LangChain writes the arguments of calls anew
    api.script(*told.replies(), *told.replies(through="callTool"))

    answers = framework("langchain").run("langchain_wires.py", api.url, "openai:gpt-5.1", "anthropic:claude-sonnet-5")

    length = len(told.lists())
    assert api.refusals == []
    assert answers == [told.answers()] * 2
    assert api.tools == told.lists() + [[SEARCH, "callTool"]] * length
    assert [body["tools"] for body in api.bodies[length:]] == [api.bodies[length]["tools"]] * length


@pytest.mark.parametrize("stop", [{"stop": "length"}, {"stop": "content_filter"}, {"ended": None}])
def test_a_call_in_a_reply_that_was_cut_off_is_not_run(
    framework: Callable[[str], Framework], api: LoopbackApi, stop: dict[str, Any]
) -> None:
    api.remembers = False  # LangChain writes the arguments of calls anew
    ways = ("openai:gpt-5.1", "anthropic:claude-sonnet-5")
    for way in ways:
        api.script(*told.cut_off_replies(stop, through="callTool" if "claude" in way else ""))

    framework("langchain").run("langchain_wires.py", api.url, *ways)

    assert api.refusals == []
    for start in range(0, len(api.bodies), 5):
        told.assert_not_run(api.bodies[start + 2])


FINISHED = (
    {},
    {"response_metadata": {"finish_reason": "STOP"}},
    {"response_metadata": {"stop_reason": "tool_use"}},
    {"response_metadata": {"status": "completed"}},
)
CUT_OFF = (
    {"response_metadata": {"finish_reason": "MAX_TOKENS"}},
    {"response_metadata": {"stop_reason": "max_tokens"}},
    {"response_metadata": {"stopReason": "max_tokens"}},
    {"response_metadata": {"done_reason": "length"}},
    {"response_metadata": {"status": "incomplete"}},
    {"response_metadata": {"finish_reason": None}},
    {"response_metadata": {"finish_reason": "stop"}, "additional_kwargs": {"refusal": "I cannot."}},
)


def test_each_providers_words_for_a_reply_that_was_cut_off_are_known(framework: Callable[[str], Framework]) -> None:
    """A model class that says nothing of it is taken at its word."""
    outcomes = framework("langchain").run("langchain_cut_off.py", *map(json.dumps, (*FINISHED, *CUT_OFF)))

    assert outcomes[: len(FINISHED)] == ["sent 'hello' to Ada"] * len(FINISHED)
    assert ["did not finish" in outcome for outcome in outcomes[len(FINISHED) :]] == [True] * len(CUT_OFF)


def test_an_agent_runs_its_own_tools_and_needs_a_thread_for_ours(framework: Callable[[str], Framework]) -> None:
    refused, results = framework("langchain").printed("langchain_own.py").splitlines()

    assert refused == 'run the agent with config={"configurable": {"thread_id": ...}}, or give session='
    assert results == (
        '[["noon", "success"], ["sent \'hello\' to Ada", "success"], ["no tool named \'no_such_tool\'", "error"]]'
    )


def test_a_picture_reaches_the_model_and_the_run_reaches_the_tool(framework: Callable[[str], Framework]) -> None:
    (block,), contexts = framework("langchain").run("pictures.py", "langchain")

    assert block == {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}
    assert contexts == [["runtime"]]


def test_what_the_users_words_ask_for_is_in_the_first_list_and_the_search_holds_up_no_event_loop(
    framework: Callable[[str], Framework],
) -> None:
    assert framework("langchain").run("anticipated.py", "langchain") == [
        ["send_mail"],
        ["Send an email message."],
        False,
    ]


def test_the_result_of_a_tool_does_not_count_as_the_users_words(framework: Callable[[str], Framework]) -> None:
    assert framework("langchain").run("anticipated.py", "langchain-result") == [[], [], False]


def test_its_page_runs(framework: Callable[[str], Framework]) -> None:
    assert_runs(PAGES / "langchain.md", framework("langchain"))
