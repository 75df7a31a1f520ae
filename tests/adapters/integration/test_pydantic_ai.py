"""The adapter for pydantic-ai, in pydantic-ai: with its own fake model, and on the wires of three APIs."""

from collections.abc import Callable

import pytest

from tests.adapters import told
from tests.adapters.inside.story import SEARCH
from tests.kit.adapter_pages import PAGES, assert_runs
from tests.kit.framework_environment import Framework
from tests.kit.loopback import Call, LoopbackApi, Reply, available_tools

APPENDED = ("responses:gpt-5.6", "anthropic:claude-opus-4-8", "chat:gpt-5.1")
FIXED = "anthropic:claude-sonnet-5"


def test_three_conversations_at_once_each_find_and_call_their_tools(framework: Callable[[str], Framework]) -> None:
    told.assert_told(framework("pydantic-ai").run("pydantic_ai_story.py"))


def test_found_tools_reach_each_model_in_a_way_that_it_takes(
    framework: Callable[[str], Framework], api: LoopbackApi
) -> None:
    api.remembers = False  # pydantic-ai writes the arguments of calls anew
    for _ in APPENDED:
        api.script(*told.replies())
    api.script(*told.replies(through="callTool"))

    answers = framework("pydantic-ai").run("pydantic_ai_wires.py", api.url, *APPENDED, FIXED)

    length = len(told.lists())
    by_way = [slice(start, start + length) for start in range(0, 4 * length, length)]
    responses, claude, chat, fixed = by_way
    assert api.refusals == []
    assert answers == [told.answers()] * 4
    for way in (responses, claude, chat):
        assert [available_tools(request) for request in api.requests[way]] == [set(each) for each in told.lists()]
    assert api.tools[responses] == [[SEARCH]] * length  # found tools come in messages
    assert api.tools[chat] == told.lists()
    assert [
        [each["name"] for each in body["tools"] if not each.get("defer_loading")] for body in api.bodies[claude]
    ] == [[SEARCH]] * length
    assert api.tools[fixed] == [[SEARCH, "callTool"]] * length


@pytest.mark.parametrize("stop", [{"stop": "length"}, {"stop": "content_filter"}])
def test_a_call_in_a_reply_that_was_cut_off_is_not_run(
    framework: Callable[[str], Framework], api: LoopbackApi, stop: dict[str, str]
) -> None:
    api.remembers = False  # pydantic-ai writes the arguments of calls anew
    for way in (*APPENDED, FIXED):
        api.script(*told.cut_off_replies(stop, through="callTool" if way == FIXED else ""))

    framework("pydantic-ai").run("pydantic_ai_wires.py", api.url, *APPENDED, FIXED)

    assert api.refusals == []
    for start in range(0, len(api.bodies), 5):
        told.assert_not_run(api.bodies[start + 2])


def test_our_ranking_serves_its_own_tool_search_on_the_wire_for_that(
    framework: Callable[[str], Framework], api: LoopbackApi
) -> None:
    """All tools are in each request, deferred, and the answer to a search refers to those that it has found."""
    api.script(Reply(calls=[Call("search_tools", {"queries": ["send an email message"]})]))
    api.script(Reply(calls=[Call("send_mail", {"to": "Ada", "text": "hello"})]), *[Reply("It is sent.")] * 3)

    answers = framework("pydantic-ai").run("pydantic_ai_wires.py", api.url, f"{FIXED}:deferred")

    deferred = [each["name"] for each in api.bodies[0]["tools"] if each.get("defer_loading")]
    searched, called = (body["messages"][-1]["content"][0] for body in api.bodies[1:3])
    assert api.refusals == []
    assert answers == [["It is sent."] * 3]
    assert len(deferred) == 499
    assert api.tools == [api.tools[0]] * 5
    assert searched["content"][0] == {"type": "tool_reference", "tool_name": "send_mail"}
    assert called["content"][0]["text"] == "sent 'hello' to Ada"


def test_a_picture_reaches_the_model_and_the_run_reaches_the_tool(framework: Callable[[str], Framework]) -> None:
    picture, contexts = framework("pydantic-ai").run("pictures.py", "pydantic_ai")

    assert picture == [["image/png", "iVBORw0KGgo="]]
    assert contexts == [["run_context"]]


def test_what_the_users_words_ask_for_is_in_the_first_list_and_the_search_holds_up_no_event_loop(
    framework: Callable[[str], Framework],
) -> None:
    assert framework("pydantic-ai").run("anticipated.py", "pydantic_ai") == [
        ["send_mail"],
        ["Send an email message."],
        False,
    ]


def test_its_page_runs(framework: Callable[[str], Framework]) -> None:
    assert_runs(PAGES / "pydantic-ai.md", framework("pydantic-ai"))
