"""Sessions with a budget of their own, in place of the one in the options."""

from tests.kit.session_tools import engine_of
from toolsearch import Budget, SessionStore
from toolsearch.sessions.session_eviction import AlwaysEvictStrategy
from toolsearch.storage.memory import InMemorySessionPersistence

TWO = Budget(max_tools=2, low_water=0.5)


def test_a_session_keeps_to_its_own_budget_and_others_to_that_of_the_options() -> None:
    engine = engine_of()
    for session, kept in ((engine.session("own", budget=TWO), 1), (engine.session("common"), 3)):
        session.search("select:send_mail,list_events,pay_bill")
        session.end_turn()
        session.end_turn()
        assert len(session.discovered) == kept


def test_a_budget_bounds_what_one_definition_takes_as_well() -> None:
    engine = engine_of()
    session = engine.session("own", budget=Budget(max_definition_tokens=1))
    assert session.search("select:send_mail") == []
    assert [found.name for found in engine.session("common").search("select:send_mail")] == ["send_mail"]


def test_a_budget_comes_back_with_its_session_and_stays_when_it_is_opened_without_one() -> None:
    kept = InMemorySessionPersistence()
    engine = engine_of(sessions=SessionStore(AlwaysEvictStrategy(), kept))
    with engine.session("own", budget=TWO).conversation():
        pass
    state = engine_of(sessions=SessionStore(persistence=kept)).session("own").state
    assert state.budget == TWO
    assert state.discovered.budget == TWO
    assert engine.session("own").state.budget == TWO


def test_the_budget_that_another_process_has_given_a_session_counts_here() -> None:
    kept = InMemorySessionPersistence()
    ours, theirs = (engine_of(sessions=SessionStore(persistence=kept)) for _ in range(2))
    session = ours.session("a")
    theirs.session("a", budget=TWO)
    with session.conversation() as conversation:
        assert conversation.options.budget == TWO
