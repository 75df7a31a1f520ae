"""One session that several callers of a principal use, each with a reach of its own."""

from tests.kit.kept_sessions import engine_of as engine_over
from tests.kit.session_tools import SEARCH, engine_of, names_in
from toolsearch import Budget, Principal, Reach
from toolsearch.session import Session
from toolsearch.storage.memory import InMemorySessionPersistence

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


def test_what_one_caller_has_found_stays_when_another_who_does_not_reach_it_ends_the_turn() -> None:
    engine = engine_of()
    engine.session("a", principal=ALL)
    wide, narrow = Session(engine, "a", ALL), Session(engine, "a", NO_BILLS)
    wide.search("select:pay_bill,send_mail")

    assert narrow.end_turn() == []
    narrow.tools()

    assert wide.discovered == ["pay_bill", "send_mail"]


def test_a_caller_is_not_told_that_a_tool_out_of_its_reach_was_evicted() -> None:
    engine = engine_of()
    engine.session("a", principal=ALL, budget=Budget(max_tools=1, low_water=0))
    wide, narrow = Session(engine, "a", ALL), Session(engine, "a", NO_BILLS)
    wide.search("select:pay_bill,send_mail")
    wide.end_turn()

    assert narrow.end_turn() == ["send_mail"]
    assert wide.discovered == []


def test_what_a_caller_has_found_in_one_process_stays_when_a_narrower_one_reads_it_in_another() -> None:
    kept = InMemorySessionPersistence()
    one, other = (engine_over(kept) for _ in range(2))
    one.session("a", principal=ALL)
    wide, narrow = Session(one, "a", ALL), Session(other, "a", NO_BILLS)
    narrow.search("select:send_mail")
    wide.search("select:pay_bill")
    narrow.search("select:list_events")

    assert [tool.name for tool in narrow.shown()] == [SEARCH, "send_mail", "list_events"]
    wide.search("select:send_mail")
    assert [tool.name for tool in wide.shown()] == [SEARCH, "send_mail", "pay_bill", "list_events"]
