"""The adapter for the OpenAI Agents SDK, in the SDK: with its own fake model, and on the wire of the Responses API."""

from collections.abc import Callable

import pytest

from tests.adapters import told
from tests.adapters.inside.story import SEARCH
from tests.kit.adapter_pages import PAGES, assert_runs
from tests.kit.framework_environment import Framework
from tests.kit.loopback import LoopbackApi


def test_three_conversations_at_once_each_find_and_call_their_tools(framework: Callable[[str], Framework]) -> None:
    """The SDK passes on what a failed call says, and not that it has failed."""
    told.assert_told(framework("openai-agents").run("openai_agents_story.py"), marks_failures=False)


def test_the_list_on_the_wire_grows_by_what_is_found(framework: Callable[[str], Framework], api: LoopbackApi) -> None:
    api.script(*told.replies())

    answers = framework("openai-agents").run("openai_agents_wires.py", api.url, "gpt-5.1")

    outputs = [item["output"] for item in api.bodies[-1]["input"] if item.get("type") == "function_call_output"]
    assert api.refusals == []
    assert answers == told.answers()
    assert api.tools == told.lists()
    assert [output[0]["text"] for output in outputs] == [text for text, _ in told.results()]


def test_a_call_that_the_api_says_is_incomplete_is_not_run(
    framework: Callable[[str], Framework], api: LoopbackApi
) -> None:
    """A whole reply that is incomplete ends the run: the SDK raises."""
    api.script(*told.cut_off_replies({"cut": 1_000}))

    framework("openai-agents").run("openai_agents_wires.py", api.url, "gpt-5.1")

    assert api.refusals == []
    told.assert_not_run(api.bodies[2])


def test_the_list_stays_for_a_claude(framework: Callable[[str], Framework]) -> None:
    claude, other = framework("openai-agents").run("openai_agents_claude.py")

    assert claude == [SEARCH, "callTool"]
    assert other == [SEARCH, "send_mail"]


def test_a_picture_reaches_the_model_and_the_run_reaches_the_tool(framework: Callable[[str], Framework]) -> None:
    (item,), contexts = framework("openai-agents").run("pictures.py", "openai_agents")

    assert item == {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    assert contexts == [["run_context"]]


@pytest.mark.parametrize("said", ["openai_agents", "openai_agents-blocks"])
def test_what_the_users_words_ask_for_is_in_the_first_list_and_the_search_holds_up_no_event_loop(
    framework: Callable[[str], Framework], said: str
) -> None:
    assert framework("openai-agents").run("anticipated.py", said) == [["send_mail"], ["Send an email message."], False]


def test_the_result_of_a_tool_does_not_count_as_the_users_words(framework: Callable[[str], Framework]) -> None:
    assert framework("openai-agents").run("anticipated.py", "openai_agents-result") == [[], [], False]


def test_its_page_runs(framework: Callable[[str], Framework]) -> None:
    assert_runs(PAGES / "openai-agents.md", framework("openai-agents"))
