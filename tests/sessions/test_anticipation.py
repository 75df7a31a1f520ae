"""Anticipation: what is shown for the user's words before the model is asked, and what is not."""

from typing import Any

import pytest

from tests.kit.session_tools import FUNCTIONS, SEARCH, engine_of, names_in
from toolsearch import (
    Budget,
    Catalog,
    PassThrough,
    Session,
    SessionOptions,
    SessionStore,
    ToolDefinition,
    ToolSearch,
)
from toolsearch.storage.memory import InMemorySessionPersistence
from toolsearch.wire.formats import render_change
from toolsearch.wire.messages import ToolChangeMessage
from toolsearch_indexes.documents import Hit

CLAUDE: dict[str, Any] = {"format": "anthropic", "model": "claude-opus-5-5"}
GPT: dict[str, Any] = {"format": "openai-responses", "model": "gpt-5.6"}
CHAT: dict[str, Any] = {"format": "openai", "model": "gpt-5.1"}
MAIL = "Send an email message."
EVENTS = "List the events of the calendar on that day."


def listed(session: Session, to: dict[str, Any]) -> list[str]:
    return names_in(session.request(**to)["tools"])


@pytest.mark.parametrize("to", [CLAUDE, GPT], ids=["anthropic", "responses"])
def test_a_message_behind_the_users_adds_what_the_words_surely_ask_for_and_says_nothing_else(
    to: dict[str, Any],
) -> None:
    engine = engine_of()
    session = engine.session("a")

    for said, name in ((MAIL, "send_mail"), (EVENTS, "list_events")):
        definition = engine.catalog.get(name).definition
        assert session.begin_turn(said, **to) == render_change(ToolChangeMessage((definition,)), to["format"])
        assert listed(session, to) == [SEARCH]

    assert session.savings().cache_breaks == 0


def test_where_no_message_can_add_tools_one_is_in_the_first_list_and_none_in_later_ones() -> None:
    session = engine_of().session("a")

    assert session.begin_turn(MAIL, **CHAT) == []
    assert listed(session, CHAT) == [SEARCH, "send_mail"]
    assert session.begin_turn(EVENTS, **CHAT) == []
    assert listed(session, CHAT) == [SEARCH, "send_mail"]
    assert session.savings().cache_breaks == 0


def test_the_first_list_is_left_alone_if_the_model_probably_has_to_search_anyway() -> None:
    session = engine_of().session("a")

    session.begin_turn(f"{MAIL} {EVENTS}", **CHAT)

    assert session.discovered == []


def test_each_sentence_is_asked_for_by_itself() -> None:
    session = engine_of().session("a")

    session.begin_turn(f"{MAIL} {EVENTS} It was a good day.", **GPT)

    assert session.discovered == ["send_mail", "list_events"]


@pytest.mark.parametrize(
    ("exposure", "to"),
    [("fixed", CLAUDE), ("fixed", CHAT), ("deferred", CLAUDE), ("deferred", GPT)],
    ids=["fixed-anthropic", "fixed-chat", "deferred-anthropic", "deferred-responses"],
)
def test_where_another_first_list_costs_more_than_a_search_nothing_is_anticipated(
    exposure: Any, to: dict[str, Any]
) -> None:
    session = engine_of().session("a", exposure=exposure)

    for said in (MAIL, EVENTS):
        assert session.begin_turn(said, **to) == []
        session.request(**to)

    assert session.discovered == []


@pytest.mark.parametrize("said", ["", " ", "Good morning!", "Is it raining?", "select:pay_bill", "/mail/", "/(/"])
def test_unsure_words_and_forms_of_queries_show_nothing(said: str) -> None:
    session = engine_of().session("a")

    assert (session.begin_turn(said, **GPT), session.discovered) == ([], [])


def test_nothing_is_anticipated_if_that_is_switched_off() -> None:
    session = engine_of(anticipate=False).session("a")

    assert (session.begin_turn(MAIL, **GPT), session.discovered) == ([], [])


def test_a_small_catalog_that_is_shown_whole_needs_nothing_more() -> None:
    session = engine_of(pass_through=PassThrough()).session("a")

    assert (session.begin_turn(MAIL, **GPT), session.discovered) == ([], [])


def test_the_destination_is_known_from_the_first_request_on() -> None:
    session = engine_of().session("a")

    assert session.begin_turn(MAIL) == []
    listed(session, GPT)

    assert session.begin_turn(MAIL) != []


def test_a_tool_out_of_reach_is_never_shown() -> None:
    session = engine_of().session("a", deny=["send_mail"])

    assert (session.begin_turn(MAIL, **GPT), session.discovered) == ([], [])


def test_of_tools_that_say_the_same_none_is_shown_before_the_model_has_chosen() -> None:
    servers = ("mail", "gmail", "outlook")
    tools = [ToolDefinition(f"{server}__send", "Send an email message.", server=server) for server in servers]
    one, three = (engine_of(catalog=Catalog(found)).session("a") for found in (tools[:1], tools))

    assert (one.begin_turn(MAIL, **GPT) != [], one.discovered) == (True, ["mail__send"])
    assert (three.begin_turn(MAIL, **GPT), three.discovered) == ([], [])
    assert three.begin_turn("Send an email message by Outlook.", **GPT) != []
    assert three.discovered == ["outlook__send"]


class Finder:
    """An index of an application's own, which finds one tool for everything, or fails."""

    rankings = ("keyword",)

    def __init__(self, found: Hit | None) -> None:
        self.found = found

    def resolve_strategy(self, _: str) -> str:
        return "keyword"

    def update(self, _: object, remove: object = ()) -> None: ...

    def names(self) -> list[str]:
        return []

    def search(self, *_: object, **__: object) -> list[Hit]:
        if self.found is None:
            raise TypeError("the database is away")
        return [self.found]

    def __len__(self) -> int:
        return 0


@pytest.mark.parametrize("found", [None, Hit("send_mail", 1.0)], ids=["fails", "is not sure of what it finds"])
def test_an_index_of_ones_own_that_fails_or_is_not_sure_anticipates_nothing(found: Hit | None) -> None:
    catalog = Catalog.from_functions(FUNCTIONS)
    index: Any = Finder(found)
    options = SessionOptions(pass_through=PassThrough(max_tools=0))
    session = ToolSearch(catalog, index=index, options=options).session("a")

    assert (session.begin_turn(MAIL, **GPT), session.discovered) == ([], [])


@pytest.mark.parametrize("budget", [Budget(max_tools=1), Budget(max_sent_tools=1), Budget(max_tokens=60)])
@pytest.mark.parametrize("to", [CLAUDE, GPT], ids=["anthropic", "responses"])
def test_no_tool_has_to_go_for_an_anticipated_one(budget: Budget, to: dict[str, Any]) -> None:
    session = engine_of(budget=budget).session("a")
    session.search("convert_time")

    assert session.begin_turn(MAIL, **to) == []
    assert session.discovered == ["convert_time"]
    assert listed(session, to) == [SEARCH, "convert_time"]


def test_savings_count_anticipated_tools_and_how_many_of_them_were_called() -> None:
    session = engine_of().session("a")
    session.begin_turn(f"{MAIL} {EVENTS}", **GPT)
    for _ in range(2):
        session.call_sync("send_mail", {"to": "Ann", "text": "hello"})

    savings = session.savings()

    assert (savings.anticipated, savings.anticipated_calls, savings.search_rounds) == (2, 1, 0)


def test_a_tool_that_the_model_has_is_not_shown_again() -> None:
    session = engine_of().session("a")
    session.begin_turn(MAIL, **GPT)

    assert (session.begin_turn(MAIL, **GPT), session.savings().anticipated) == ([], 1)


def test_the_figures_are_stored_with_the_session() -> None:
    kept = InMemorySessionPersistence()
    engine_of(sessions=SessionStore(persistence=kept)).session("a").begin_turn(MAIL, **GPT)

    again = engine_of(sessions=SessionStore(persistence=kept)).session("a")

    assert (again.savings().anticipated, again.discovered) == (1, ["send_mail"])


def test_words_that_two_tools_fit_alike_show_neither() -> None:
    catalog = Catalog([ToolDefinition(f"{server}_send_mail", "Send an email message.") for server in ("one", "two")])
    session = engine_of(catalog=catalog).session("a")

    assert (session.begin_turn(MAIL, **GPT), session.discovered) == ([], [])
