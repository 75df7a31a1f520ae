"""The adapter for Google ADK, in an agent of it with a model of ours, as ``inside/adk_agent.py`` plays it."""

import pytest

from tests.adapters.inside.toolbox import LOST, WISHES
from tests.kit.adapter_pages import PAGES, assert_runs

SEARCH, CALL = "toolSearchTool", "callTool"
FOUND = {user: [wish.name for wish in wishes] for user, wishes in WISHES.items()}
TOLD = {
    user: [
        {"error": "there is no exam 'lost'"} if wish.id == LOST else {"result": f"{wish.name} has run for 7"}
        for wish in wishes
    ]
    for user, wishes in WISHES.items()
}
ASKED = sorted([*FOUND["ann"], *FOUND["bob"], *[SEARCH] * 6])


@pytest.mark.timeout(300)  # for the environment, which the first run makes
def test_two_users_of_an_agent_each_find_and_call_their_tools(framework):
    """A turn is three requests: the first searches, the second calls what was found, the third reads the result.

    The first list already has what the first message surely asks for, where the list may grow. A hook is asked about
    each call by the name of the tool that runs, whatever way it is called.
    """
    played = framework("google-adk").run("adk_agent.py")

    grown = {
        user: [[SEARCH, *found[: max(1, (request + 2) // 3)]] for request in range(9)] for user, found in FOUND.items()
    }
    fixed = {"listed": dict.fromkeys(FOUND, [[SEARCH, CALL]] * 9), "told": TOLD, "asked": ASKED}
    assert played["by default"] == {"listed": grown, "told": TOLD, "asked": ASKED}
    assert played["for a Claude"] == played["as asked"] == fixed


def test_a_call_in_a_reply_that_was_cut_off_is_not_run(framework):
    refused, run = framework("google-adk").run("adk_cut_off.py", "MAX_TOKENS", "STOP")

    assert "did not finish (max_tokens)" in refused["error"]
    assert run == {"result": "rename_invoice has run for 7"}


def test_what_the_users_words_ask_for_is_in_the_first_list_and_the_search_holds_up_no_event_loop(framework):
    assert framework("google-adk").run("anticipated.py", "google_adk") == [
        ["send_mail"],
        ["Send an email message."],
        False,
    ]


@pytest.mark.timeout(300)
def test_the_page_runs(framework):
    assert_runs(PAGES / "google-adk.md", framework("google-adk"))
