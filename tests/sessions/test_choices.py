"""What is chosen for a session by name: tools that are shown, pinned, or forgotten."""

from tests.kit.session_tools import SEARCH, engine_of, names_in
from toolsearch import Budget, Principal, Reach
from toolsearch.sessions.unit_of_work import Chosen, expand, forget, pin, unpin


def test_tools_that_are_expanded_are_shown_without_a_search_and_unknown_names_are_given_back() -> None:
    session = engine_of().session("a")
    with session.conversation() as conversation:
        assert expand(conversation, ["send_mail", "no_such", "send_mail"]) == Chosen(("send_mail",), ("no_such",))
    assert names_in(session.tools()) == [SEARCH, "send_mail"]


def test_what_is_out_of_reach_is_as_unknown_as_what_is_not_there() -> None:
    session = engine_of().session("a", principal=Principal("acme", Reach.parse(deny=["pay_bill"])))
    with session.conversation() as conversation:
        for choose in (expand, pin, unpin, forget):
            assert choose(conversation, ["pay_bill"]) == Chosen((), ("pay_bill",))
    assert session.discovered == []


def test_a_tool_that_is_too_long_to_be_shown_is_not_expanded() -> None:
    session = engine_of(budget=Budget(max_definition_tokens=1)).session("a")
    with session.conversation() as conversation:
        assert expand(conversation, ["send_mail"]) == Chosen((), too_long=("send_mail",))


def test_a_pin_stays_until_it_is_unpinned_and_can_be_forgotten_then() -> None:
    session = engine_of().session("a")
    with session.conversation() as conversation:
        pin(conversation, ["send_mail"])
        expand(conversation, ["list_events"])
        assert forget(conversation, ["send_mail", "list_events", "pay_bill"]) == Chosen(("list_events",), ("pay_bill",))
        assert unpin(conversation, ["send_mail", "list_events"]) == Chosen(("send_mail",), ("list_events",))
        assert forget(conversation, ["send_mail"]) == Chosen(("send_mail",))
    assert session.discovered == []


def test_a_tool_that_is_being_called_is_not_forgotten() -> None:
    session = engine_of().session("a")
    with session.conversation() as conversation:
        expand(conversation, ["send_mail"])
        conversation.state.discovered.begin_call("send_mail")
        assert forget(conversation, ["send_mail"]) == Chosen(())
    assert session.discovered == ["send_mail"]
