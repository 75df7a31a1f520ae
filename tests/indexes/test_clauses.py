"""A request for several things: what its parts are, and that each part's tool is found."""

import pytest

from toolsearch_indexes.clauses import clauses
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.index import ToolSearchIndex


@pytest.mark.parametrize(
    ("request_", "parts"),
    [
        ("download the file, then plot it", ["download the file", "plot it"]),
        ("create a branch and open a pull request", ["create a branch", "open a pull request"]),
        ("Fork the repo. Push the files!", ["Fork the repo", "Push the files!"]),
        ("list files; read mail\nsend mail", ["list files", "read mail", "send mail"]),
        ("list files AND read mail", ["list files", "read mail"]),
        ("list files\tthen read mail", ["list files", "read mail"]),
        ("list files as well as all mail", ["list files", "all mail"]),
        ("open the café & book a table", ["open the café", "book a table"]),
        ("search and replace", []),
        ("list users and groups", []),
        ("get the weather", []),
        ("", []),
        ("do one thing, " * 9, ["do one thing"] * 6),
    ],
)
def test_a_request_is_cut_where_another_thing_begins(request_: str, parts: list[str]) -> None:
    assert clauses(request_) == parts


def test_each_part_of_a_short_request_has_its_tool_among_the_first_though_one_part_has_many() -> None:
    branches = [
        ToolDocument(f"{verb}_branch", f"{verb} a branch") for verb in ("list", "rename", "show", "merge", "lock")
    ]
    tools = [*branches, ToolDocument("create_branch", "Create a branch"), ToolDocument("send_email", "Send an email")]
    index = ToolSearchIndex(tools, encoder=open_encoder(BUILT_IN))

    found = [hit.name for hit in index.search("create a branch and email the team", limit=2)]

    assert sorted(found) == ["create_branch", "send_email"]
