"""A request for several things: what its parts are, and that each part's tool is found."""

import pytest

from toolsearch import ToolDefinition
from toolsearch.catalog.indexing import document_of
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.opening import BUILT_IN, open_encoder
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import clauses, sentences, steps


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
        ("download the file, then plot it", ["download the file", "plot it"]),
        ("Create a branch and please open a pull request", ["Create a branch", "please open a pull request"]),
        ("compute the mean, the median and the variance", []),
        ("list pages and what links to them", ["list pages", "what links to them"]),
        ("Fork the repo. It is large!\nPush files", ["Fork the repo", "It is large!", "Push files"]),
        ("\u8bfb a b\u3002\u5199 c d", ["\u8bfb a b\u3002", "\u5199 c d"]),
        ("search and replace", []),
        ("get the weather", []),
        ("", []),
        ("do one thing, " * 9, ["do one thing"] * 8),
        ("Find the weather in St. Louis, e.g. at 3 p.m. today", []),
    ],
)
def test_a_step_begins_where_the_next_words_ask_for_something(request_: str, parts: list[str]) -> None:
    assert list(steps(request_)) == parts


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
    "Create a branch of the repository with the name, the owner and the date of another branch of the repository. "
    "Email the team."
)
TOOLS = [
    *(
        ToolDocument(f"{verb}_branch", f"{verb} a branch of the repository")
        for verb in ("create", "list", "rename", "show", "merge", "lock")
    ),
    ToolDocument("send_email", "Send an email message to a person"),
]


def test_what_serves_a_sentence_of_a_long_request_is_among_the_first_five() -> None:
    """By the whole request it is the last of seven."""
    index = ToolSearchIndex(TOOLS, encoder=open_encoder(BUILT_IN))

    first, *others = [hit.name for hit in index.search(LONG, limit=5)]

    assert first == "create_branch"
    assert "send_email" in others
    assert index.explain(LONG.replace(". ", " of "), "send_email").place == 7


def test_a_request_without_steps_has_no_tools_of_parts() -> None:
    index = ToolSearchIndex(TOOLS, encoder=open_encoder(BUILT_IN))

    assert index.explain("create a branch, a tag, an email", "send_email").outcome == "found"


def test_steps_that_no_tool_surely_serves_make_no_answer_where_the_whole_makes_none() -> None:
    described = {
        "mail": "Send a letter to somebody by post.",
        "rooms": "Book a meeting room for a team.",
        "chart": "Draw a chart of numbers from a table.",
        "weather": "The weather of a place in the next days.",
        "stocks": "Prices of shares.",
        "convert": "Convert money from a currency into another one.",
    }
    documents = [document_of(ToolDefinition(name, description)) for name, description in described.items()]
    index = ToolSearchIndex(documents, encoder=open_encoder(BUILT_IN))

    assert [hit.confidence for hit in index.search("cook moon", limit=1)] == ["low"]
    assert index.search("first blue cook cat, then cook moon.") == []
