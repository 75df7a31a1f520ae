"""What a query is taken for, and which names a written name may mean."""

import pytest

from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.errors import BadQueryError
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.queries import Pattern, Select, Words, name_candidates, name_key, read_form, select_missing


@pytest.mark.parametrize(
    ("query", "form"),
    [
        ("select:a,b", Select(("a", "b"))),
        (" Select: b , a ,,b ", Select(("b", "a"))),  # any case, spaces and doubles put aside, order kept
        ("/mail.*/", Pattern("mail.*")),
        ("/a/b/", Pattern("a/b")),
        ("//", Words("//")),
        ("/usr", Words("/usr")),
        ("  send mail ", Words("send mail")),
        ("selection: a", Words("selection: a")),
    ],
)
def test_a_query_is_names_a_pattern_or_words(query: str, form: object) -> None:
    assert read_form(query) == form


@pytest.mark.parametrize("query", ["", " \t\n", "\u2003"])
def test_an_empty_query_is_an_error_that_says_what_to_write(query: str) -> None:
    with pytest.raises(BadQueryError, match="say in a few words"):
        read_form(query)


@pytest.mark.parametrize("query", ["select:", "select: , ,"])
def test_a_select_without_names_is_an_error_that_shows_one(query: str) -> None:
    with pytest.raises(BadQueryError, match="select:name_a,name_b"):
        read_form(query)


def test_of_a_query_without_end_the_first_4000_characters_are_read() -> None:
    assert read_form("a" * 5_000) == Words("a" * 4_000)


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("git_status", ["git_status"]),
        ("Git_Status", ["git_status"]),
        ("git__git_status", ["git__git_status", "git_status"]),
        ("mcp__git__git_status", ["mcp__git__git_status", "git__git_status", "git_status"]),
        ("trailing__", ["trailing__"]),
        ("__init", ["__init", "init"]),
        ("`Send_Email`.", ["`send_email`.", "send_email"]),
        ("send_email(to, cc)", ["send_email(to, cc)", "send_email"]),
        ("functions.mcp__git__log", ["functions.mcp__git__log", "mcp__git__log", "git__log", "log"]),
        ("mcp_git_log", ["mcp_git_log", "git_log"]),
        ("tool:log", ["tool:log", "log"]),
        ("tool log", ["tool log"]),  # words, of which none is to be put aside
        ("log (git)", ["log (git)", "log (git"]),
        ("?!", ["?!"]),
    ],
)
def test_a_name_means_itself_before_what_is_left_without_what_is_around_it(name: str, candidates: list[str]) -> None:
    assert name_candidates(name) == candidates


@pytest.mark.parametrize(
    "name", ["updateRole", "UPDATE_ROLE", "update-role", "Update Role", "update.role", "update/role"]
)
def test_spellings_of_one_name_have_one_key(name: str) -> None:
    assert name_key(name) == "updaterole"


@pytest.mark.parametrize(("one", "other"), [("c", "c++"), ("_", "__"), ("की", "के"), ("update_role", "update_roles")])
def test_what_tells_names_apart_stays_in_the_key(one: str, other: str) -> None:
    assert name_key(one) != name_key(other)


def test_what_has_a_name_in_full_comes_before_what_has_it_under_a_server() -> None:
    locals_ = [ToolDocument(f"{server}__send", local_name="send") for server in ("a", "mail")]
    index = ToolSearchIndex([*locals_, ToolDocument("Send"), ToolDocument("send")])

    assert [hit.name for hit in index.search("send")] == ["send", "Send", "a__send", "mail__send"]
    assert [hit.name for hit in index.search("SEND")] == ["Send", "send", "a__send", "mail__send"]
    assert [hit.name for hit in index.search("select:send")] == ["send"]


def test_the_names_that_a_select_did_not_find_are_those_that_a_search_for_each_alone_does_not_find() -> None:
    index = ToolSearchIndex([ToolDocument("git__log", local_name="log"), ToolDocument("mail__send")])

    def missing(query: str) -> list[str]:
        return select_missing(query, lambda each: index.search(each, within=["git__log"]))

    assert missing("select:functions.git__log,log,lag,mail__send") == ["lag", "mail__send"]
    assert missing("log") == []
    assert missing("/nothing/") == []
