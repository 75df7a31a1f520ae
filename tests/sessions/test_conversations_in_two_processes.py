"""What two processes make of one session: nothing found is lost, nothing dropped comes back, no reach gets wider."""

import json

import pytest

from tests.kit.kept_sessions import ACME, NAMES, SEARCH, Counted, engine_of, stored
from toolsearch import (
    Budget,
    Reach,
    SessionStore,
)
from toolsearch.errors import ConflictError, UnknownSessionError
from toolsearch.sessions.state import SessionState
from toolsearch.storage.memory import InMemorySessionPersistence


def test_two_processes_find_each_others_tools_in_one_order(kept: Counted) -> None:
    ours, theirs = engine_of(kept), engine_of(kept)
    ours.session("a").search("select:send_mail")

    with theirs.conversation("a") as conversation:
        conversation.search("select:pay_bill")
        ours.session("a").search("select:list_events")

    assert stored(kept) == theirs.session("a").discovered == ["send_mail", "list_events", "pay_bill"]
    assert ours.session("a").discovered == ["send_mail", "list_events", "pay_bill"]
    assert theirs.session("a").state.counters.searches == 3


def test_what_one_process_has_dropped_is_not_brought_back_by_the_stale_copy_of_another(kept: Counted) -> None:
    ours, theirs = engine_of(kept), engine_of(kept)
    ours.session("a").search("select:send_mail,pay_bill")

    with theirs.conversation("a") as conversation:
        ours.session("a", deny=["pay_bill"])
        ours.session("a", reach=Reach())
        conversation.search("select:list_events")

    assert stored(kept) == ["send_mail", "list_events"]
    assert conversation.discovered == ["send_mail", "list_events"]


def test_a_stale_copy_does_not_widen_a_reach(kept: Counted) -> None:
    ours, theirs = engine_of(kept), engine_of(kept)
    theirs.session("a")

    with theirs.conversation("a") as conversation:
        conversation.search("select:pay_bill,send_mail")
        ours.session("a", deny=["pay_bill"])

    assert conversation.reach == Reach.parse(deny=["pay_bill"])
    assert conversation.discovered == stored(kept) == ["send_mail"]
    assert [tool.name for tool in theirs.session("a").shown()] == [SEARCH, "send_mail"]


def test_of_two_who_change_a_reach_at_once_neither_gets_more_than_both_allow(kept: Counted) -> None:
    ours, theirs = engine_of(kept), engine_of(kept)
    ours.session("a", allow=["send_mail"])

    with theirs.conversation("a", reach=Reach.parse(allow=["send_mail", "pay_bill", "list_events"])):
        ours.session("a", allow=["pay_bill", "list_events", "play_music"], deny=["list_events"])

    session = engine_of(kept).session("a")
    assert [found.name for found in session.search(f"select:{','.join(NAMES)}")] == ["pay_bill"]


def test_a_reach_that_one_process_has_narrowed_holds_in_another_with_its_next_step(kept: Counted) -> None:
    ours, theirs = engine_of(kept), engine_of(kept)
    session = theirs.session("a")
    session.search("select:pay_bill")
    ours.session("a", deny=["pay_bill"])

    assert session.search("select:pay_bill") == []
    assert session.discovered == []


def test_the_budget_holds_after_a_turn_that_ends_in_two_processes_at_once(kept: Counted) -> None:
    budget = Budget(max_tools=2, low_water=1)
    ours, theirs = engine_of(kept, budget=budget), engine_of(kept, budget=budget)

    with theirs.conversation("a") as conversation:
        conversation.search("select:send_mail,list_events")
        conversation.end_turn()
        ours.session("a").search("select:pay_bill,play_music")
        ours.session("a").end_turn()

    assert len(stored(kept)) == len(conversation.discovered) == 2


def test_two_who_open_a_new_session_at_once_share_it_unless_it_is_somebody_elses(kept: Counted) -> None:
    ours, theirs, acme = engine_of(kept), engine_of(kept), engine_of(kept)

    with ours.conversation("a", deny=["pay_bill"]) as first, theirs.conversation("a", deny=["send_mail"]) as second:
        first.search("select:list_events")
        second.search("select:play_music")
    assert stored(kept) == ["play_music", "list_events"]
    assert sorted(map(str, first.reach.deny)) == ["name:pay_bill", "name:send_mail"]

    work = acme.conversation("b", principal=ACME)
    with work as conversation:
        ours.session("b").search("select:send_mail")
        conversation.search("select:pay_bill")
    assert stored(kept, "b") == ["send_mail"]
    with pytest.raises(UnknownSessionError):
        acme.session("b", principal=ACME)


def test_a_saving_that_others_always_overtake_fails_visibly() -> None:
    class Overtaken(InMemorySessionPersistence):
        def save(self, session_id: str, text: str, *, version: int) -> int:
            if version:  # another process has just counted one search more
                document = json.loads(self._sessions[session_id].text)
                document["counters"]["searches"] += 1
                super().save(session_id, json.dumps(document), version=version)
            return super().save(session_id, text, version=version)

    store = SessionStore(persistence=Overtaken())
    state = store.get_or_create("a", lambda: SessionState.new("a", clock=lambda: 0.0))
    store.save(state)
    state.counters.searches = 1

    with pytest.raises(ConflictError, match="session 'a' has changed meanwhile") as failed:
        store.save(state, lambda _: None)
    assert (failed.value.code, failed.value.status, failed.value.retry_after_s) == ("session_conflict", 503, 1.0)
