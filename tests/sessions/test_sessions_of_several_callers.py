"""One session that several callers of a principal use, each with a reach of its own."""

from tests.kit.session_tools import SEARCH, engine_of, names_in
from toolsearch import Principal, Reach
from toolsearch.session import Session

ALL, NO_BILLS = Principal("acme"), Principal("acme", Reach.parse(deny=["pay_bill"]))


def test_a_list_that_was_sent_to_one_caller_shows_another_only_what_it_reaches() -> None:
    engine = engine_of()
    engine.session("a", principal=ALL, exposure="append")
    wide, narrow = Session(engine, "a", ALL), Session(engine, "a", NO_BILLS)
    wide.search("select:pay_bill,send_mail")
    assert names_in(wide.tools("anthropic")) == [SEARCH, "pay_bill", "send_mail"]

    assert names_in(narrow.tools("anthropic")) == [SEARCH, "send_mail"]


def test_deferred_tools_of_a_list_are_left_out_as_well_where_a_caller_does_not_reach_them() -> None:
    engine = engine_of()
    engine.session("a", principal=ALL, exposure="deferred")
    model = "claude-opus-4-6"
    wide, narrow = Session(engine, "a", ALL), Session(engine, "a", NO_BILLS)
    assert "pay_bill" in names_in(wide.tools("anthropic", model=model))

    assert "pay_bill" not in names_in(narrow.tools("anthropic", model=model))
