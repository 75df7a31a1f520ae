"""A request for several things: what its parts are, and that each part's tool is found."""

import pytest

from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import clauses, sentences


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
    assert list(clauses(request_)) == parts


@pytest.mark.parametrize(
    ("request_", "parts"),
    [
        ("Fork the repo, then tag it. Push the files!", ["Fork the repo, then tag it", "Push the files!"]),
        ("read notes.txt and\nsend mail; done", ["read notes.txt and", "send mail;"]),
        ("\u8bfb a b\u3002\u5199 c d", ["\u8bfb a b\u3002", "\u5199 c d"]),
        ("list files and read mail", []),
        ("", []),
    ],
)
def test_sentences_are_cut_at_their_ends_and_at_lines_alone(request_: str, parts: list[str]) -> None:
    assert list(sentences(request_)) == parts


def test_each_part_of_a_short_request_has_its_tool_among_the_first_though_one_part_has_many() -> None:
    branches = [
        ToolDocument(f"{verb}_branch", f"{verb} a branch") for verb in ("list", "rename", "show", "merge", "lock")
    ]
    tools = [*branches, ToolDocument("create_branch", "Create a branch"), ToolDocument("send_email", "Send an email")]
    index = ToolSearchIndex(tools, encoder=open_encoder(BUILT_IN))

    found = [hit.name for hit in index.search("create a branch and email the team", limit=2)]

    assert sorted(found) == ["create_branch", "send_email"]


LONG = (
    "Create a branch of the repository, list each branch, rename a branch, show a branch, merge a branch and lock a "
    "branch. Email the team."
)
TOOLS = [
    *(
        ToolDocument(f"{verb}_branch", f"{verb} a branch of the repository")
        for verb in ("create", "list", "rename", "show", "merge", "lock")
    ),
    ToolDocument("send_email", "Send an email message to a person"),
]


def test_what_surely_serves_a_sentence_of_a_long_request_is_among_the_first_five() -> None:
    """By the whole request it is the last of seven."""
    index = ToolSearchIndex(TOOLS, encoder=open_encoder(BUILT_IN))

    explained = index.explain(LONG, "send_email")

    assert (explained.outcome, explained.place) == ("by a part", 5)


def test_a_long_request_of_one_sentence_has_no_parts() -> None:
    index = ToolSearchIndex(TOOLS, encoder=open_encoder(BUILT_IN))

    assert index.explain(LONG.replace(". ", ", "), "send_email").outcome == "found"
