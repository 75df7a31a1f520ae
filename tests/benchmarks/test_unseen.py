"""Requests on which nothing was fitted: shares worked by hand, and what the file of them holds."""

from collections import Counter

import pytest

from benchmarks.datasets import SETS
from benchmarks.unseen import UnseenRequest, judged, page_tables, read_unseen, unseen_catalogue
from toolsearch.errors import SourceError
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.index import ToolSearchIndex

TOOLS = [
    ToolDocument("clock", "Convert time"),
    ToolDocument("mail", "Send a message"),
    ToolDocument("fax", "Send a fax"),
]


def test_a_task_of_several_steps_is_judged_by_its_tools_and_another_request_by_any_of_them() -> None:
    asked = [
        UnseenRequest("plain", "send a message", frozenset({"mail", "clock"})),
        UnseenRequest("plain", "water flowers", frozenset({"fax"})),
        UnseenRequest("several steps", "send a fax", frozenset({"fax", "clock"})),
        UnseenRequest("no tool", "send a letter", frozenset()),
    ]
    plain, steps, none = judged(ToolSearchIndex(TOOLS), asked, "keyword", "none")

    assert (plain.asked, plain.right_1, plain.right_5, plain.answered) == (2, 0.5, 0.5, 0.5)
    assert (steps.right_1, steps.right_5) == (1.0, 0.5)
    assert (none.right_5, none.answered) == (0.0, 1.0)


def test_a_row_of_requests_without_a_tool_says_only_how_many_are_answered() -> None:
    row = {"search": "hybrid", "requests": "none", "kind": "no tool", "asked": 2, "right_1": 0.0, "right_5": 0.0}
    table = page_tables([{**row, "sure": 1, "sure_right": 0, "answered": 0.5}])
    assert "| hybrid | none | no tool | 2 |  |  | 1, 0 | 0.500 |" in table["unseen"]


def test_the_file_has_every_kind_once_each_and_labels_for_all_that_a_tool_serves() -> None:
    requests = read_unseen()
    counts = Counter(each.kind for each in requests)
    assert counts == {"with values": 120, "plain": 100, "several steps": 60, "agent": 100, "no tool": 80}
    assert all(bool(each.relevant) == (each.kind != "no tool") for each in requests)
    assert len({each.query for each in requests}) == len(requests)


def test_every_right_tool_is_in_the_catalogue() -> None:
    if not SETS.is_dir():
        pytest.skip("../shared/eval is absent")
    try:
        names = {tool.name for tool in unseen_catalogue()}
    except SourceError as error:
        pytest.skip(str(error))
    assert set().union(*(each.relevant for each in read_unseen())) <= names
