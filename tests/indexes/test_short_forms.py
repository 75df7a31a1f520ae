"""Short forms and what they are short for: which are known, and how a search weighs them."""

from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.keyword_query import OtherForm, other_forms


def found(tools: list[ToolDocument], query: str) -> list[str]:
    return [hit.name for hit in ToolSearchIndex(tools).search(query)]


def test_a_term_is_short_or_long_for_others_wherever_it_stands() -> None:
    assert list(other_forms(["clone", "repo"])) == [OtherForm((1,), ("repositori",))]
    assert [form.terms for form in other_forms(["configur"])] == [("cfg",), ("cfgs",), ("conf",), ("config",)]
    assert list(other_forms(["list", "prs"])) == [OtherForm((1,), ("pull", "request"))]


def test_two_terms_are_long_for_one_only_where_they_stand_together() -> None:
    assert OtherForm((1, 2), ("pr",)) in other_forms(["merg", "pull", "request"])
    assert OtherForm((0, 1), ("pr",)) not in other_forms(["request", "pull"])


def test_an_ambiguous_short_form_is_none() -> None:
    assert list(other_forms(["temp", "dev", "prod", "spec"])) == []


def test_a_word_as_it_is_written_counts_more_than_its_other_form() -> None:
    tools = [ToolDocument("a", "drop repository"), ToolDocument("b", "drop repo")]

    assert found(tools, "repo") == ["b", "a"]
    assert found(tools, "repositories") == ["a", "b"]


def test_a_rare_form_does_not_outweigh_the_word_that_was_said() -> None:
    """By itself *db* would weigh more, since it tells one tool from all others."""
    tools = [ToolDocument(f"t{i}", "database") for i in range(20)]

    assert found([*tools, ToolDocument("short", "db")], "database")[:5] == ["t0", "t1", "t10", "t11", "t12"]


def test_a_tool_with_both_forms_gains_once() -> None:
    one = ToolSearchIndex([ToolDocument("a", "message box"), ToolDocument("b", "msg bag")])
    both = ToolSearchIndex([ToolDocument("a", "message msg"), ToolDocument("b", "msg bag")])

    assert one.search("message")[0].score == both.search("message")[0].score


def test_one_word_that_is_short_for_two_wants_both() -> None:
    tools = [ToolDocument("pull_image"), ToolDocument("send_request"), ToolDocument("list_pull_requests")]

    assert found(tools, "PR")[0] == "list_pull_requests"
    assert found(tools[:1], "PR") == []  # no request anywhere
    assert found([ToolDocument("merge_pr"), ToolDocument("other")], "pull request") == ["merge_pr"]
