"""The adapter for the Claude Agent SDK, in its client, with a script for Claude Code: ``inside/claude_code.py``."""

import pytest

from tests.adapters.inside.toolbox import LOST, WISHES
from tests.kit.adapter_pages import PAGES, assert_runs

LISTED = ["toolSearchTool", "callToolRead", "callToolWrite", "callToolDestructive"]
TOLD = {
    user: [
        ["there is no exam 'lost'", True] if wish.id == LOST else [f"{wish.name} has run for 7", False]
        for wish in wishes
    ]
    for user, wishes in WISHES.items()
}


@pytest.mark.timeout(300)  # for the environment, which the first run makes
def test_claude_code_finds_and_calls_tools_by_a_list_that_stays(framework):
    """Two users share a server, and a guest has one whose principal may rename nothing. Hooks are asked about each call
    that may run.
    """
    played = framework("claude-agent-sdk").run("claude_code.py")

    assert played["listed"] == {"ann": [LISTED] * 3, "bob": [LISTED] * 3, "guest": [LISTED]}
    assert played["told"] == {**TOLD, "guest": [["no tool named 'rename_invoice'", True]]}
    assert played["asked"] == sorted(wish.name for wishes in WISHES.values() for wish in wishes)


@pytest.mark.timeout(300)
def test_the_page_runs(framework):
    assert_runs(PAGES / "claude-agent-sdk.md", framework("claude-agent-sdk"))
