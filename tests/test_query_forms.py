"""What a query is taken for, and which names a written name may mean."""

import pytest

from toolsearch_indexes.errors import BadQueryError
from toolsearch_indexes.query_forms import Pattern, Select, Words, name_candidates, read_form


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
    ],
)
def test_a_name_means_itself_before_what_is_left_without_a_prefix(name: str, candidates: list[str]) -> None:
    assert name_candidates(name) == candidates
