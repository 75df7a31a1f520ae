"""The adapter for LlamaIndex, in LlamaIndex: with its own fake model, which is given the tools that a request holds."""

import json
from collections.abc import Callable

from tests.adapters import told
from tests.kit.adapter_pages import PAGES, assert_runs
from tests.kit.framework_environment import Framework


def test_three_conversations_at_once_each_find_and_call_their_tools(framework: Callable[[str], Framework]) -> None:
    told.assert_told(framework("llama-index").run("llama_index_story.py"))


def test_tools_are_loaded_for_what_the_user_says_and_given_by_name(framework: Callable[[str], Framework]) -> None:
    """What is no tool in reach counts as said by the user."""
    given, looked_up, requests = framework("llama-index").printed("llama_index_asked.py").splitlines()

    assert json.loads(given) == [
        ["toolSearchTool", "send_mail"],
        ["toolSearchTool", "send_mail"],
        ["send_mail"],
        ["book_room"],
        ["toolSearchTool", "send_mail", "book_room"],
        ["toolSearchTool", "send_mail", "book_room", "convert_money"],
    ]
    assert json.loads(looked_up) == ["book_room", "pay_bill"]  # no sentence is looked up among the names
    assert requests == "4"


def test_a_picture_reaches_the_model(framework: Callable[[str], Framework]) -> None:
    (block,), contexts = framework("llama-index").run("pictures.py", "llama_index")

    assert block == {"image": "iVBORw0KGgo=", "image_mimetype": "image/png"}
    assert contexts == [[]]


def test_what_the_users_words_ask_for_is_in_the_first_list_and_the_search_holds_up_no_event_loop(
    framework: Callable[[str], Framework],
) -> None:
    assert framework("llama-index").run("anticipated.py", "llama_index") == [
        ["send_mail"],
        ["Send an email message."],
        False,
    ]


def test_its_page_runs(framework: Callable[[str], Framework]) -> None:
    assert_runs(PAGES / "llama-index.md", framework("llama-index"))
