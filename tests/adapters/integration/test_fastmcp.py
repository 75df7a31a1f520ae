"""The adapter for FastMCP, in a server of it with clients of it, as ``inside/fastmcp_server.py`` plays it."""

import pytest

from tests.adapters.inside.toolbox import LOST, WISHES
from tests.kit.adapter_pages import PAGES, assert_runs

SEARCH, CALL = "toolSearchTool", "callTool"
FAILED = ["Error calling tool 'schedule_exam': there is no exam 'lost'", True]
TOLD = {
    user: [FAILED if wish.id == LOST else [f"{wish.name} has run for 7", False] for wish in wishes]
    for user, wishes in WISHES.items()
}
NAMES = [wish.name for wishes in WISHES.values() for wish in wishes]


@pytest.mark.timeout(300)  # for the environment, which the first run makes
def test_clients_find_and_call_tools_by_a_list_that_stays(framework):
    """Two at once: one of the protocol of 2026, and one of the protocol before. A call passes our hooks, and then the
    server's own middleware.
    """
    played = framework("fastmcp").run("fastmcp_server.py")

    for user, wishes in WISHES.items():
        assert played[user]["listed"] == [[SEARCH, CALL]] * 4
        assert [found["tools"] for found in played[user]["found"]] == [[wish.name] for wish in wishes]
        assert played[user]["told"] == TOLD[user]
    assert played["asked"] == sorted([*NAMES, *[SEARCH] * 6])
    assert played["called"] == sorted([*NAMES, *[SEARCH] * 6, *[CALL] * 6])
    assert played["small things"] == {
        "pinned": [SEARCH, CALL, "count.all"],
        "few": ["approve_invoice", "approve_receipt", "approve_voucher"],
        "by legal name": ['{"counted":3}', False],
        "by own name": ['{"counted":4}', False],
        "wrong arguments": [
            "the arguments do not fit the schema of 'count_all': most: expected integer, got string",
            True,
        ],
        "hidden is found": False,
        "hidden is called": ["no tool named 'rename_invoice'", True],
    }


@pytest.mark.timeout(300)
def test_the_page_runs(framework):
    assert_runs(PAGES / "fastmcp.md", framework("fastmcp"))
