"""What a session may see, and what is pinned to it."""

import asyncio

import pytest

from tests.kit.session_tools import SEARCH, engine_of, names_in
from toolsearch import (
    Budget,
    Catalog,
    Reach,
    ToolDefinition,
)
from toolsearch.errors import UnknownToolError


def test_a_session_finds_shows_and_runs_only_what_is_in_reach() -> None:
    session = engine_of().session("a", allow=["*_mail", "convert_time"], deny=["tag:write"])
    assert [found.name for found in session.search("email calendar bill, convert hour")] == [
        "convert_time",
        "send_mail",
    ]
    assert asyncio.run(session.call("pay_bill", {"amount": 1.0})).error_code == "unknown_tool"


def test_the_search_tool_names_no_servers_and_its_answer_those_in_reach() -> None:
    servers = ("bank", "mail", "secret")
    catalog = Catalog([ToolDefinition(f"{server}__list", f"List the {server}", server=server) for server in servers])
    session = engine_of(catalog=catalog).session("a", deny=["server:secret"])
    for definition in (session.shown()[0].definition, session.resolve(SEARCH).definition):
        assert definition.input_schema["properties"]["server"]["description"] == "Only tools of this server."
    listed = session.call_sync(SEARCH, {"queries": ["servers:"]}).text.splitlines()
    assert listed == ["Tools come from these servers:", "- bank (1)", "- mail (1)"]


def test_a_reach_that_changes_on_reopening_drops_what_left_it() -> None:
    engine = engine_of()
    session = engine.session("a")
    session.search("email calendar bill hour")
    before = session.discovered

    assert engine.session("a") is session
    assert session.discovered == before  # no reach given, none changed
    engine.session("a", deny=["pay_bill", "list_events"])
    assert session.discovered == [name for name in before if name in ("convert_time", "send_mail")]
    engine.session("a", reach=Reach())
    assert len(session.search("bill")) == 1


def test_pins_are_shown_from_the_start_and_never_evicted() -> None:
    engine = engine_of(budget=Budget(max_tools=1))
    session = engine.session("a", pins=["send_mail", "list_events"])
    assert names_in(session.tools()) == [SEARCH, "list_events", "send_mail"]
    session.search("hour")
    session.end_turn()
    session.end_turn()
    assert session.discovered == ["list_events", "send_mail"]


def test_a_pin_that_nobody_may_see_is_an_error_and_changes_nothing() -> None:
    engine = engine_of()
    session = engine.session("a")
    session.search("bill")
    with pytest.raises(UnknownToolError, match="volcano"):
        engine.session("a", pins=["send_mail", "volcano"], deny=["pay_bill"])
    with pytest.raises(UnknownToolError):
        engine.session("a", pins=["send_mail"], deny=["send_mail"])
    assert engine.session("a").discovered == ["pay_bill"]


def test_a_pin_is_hidden_while_it_is_gone_and_comes_back_with_it() -> None:
    engine = engine_of()
    session = engine.session("a", pins=["send_mail"])
    pinned = engine.catalog.get("send_mail")
    engine.catalog.remove("send_mail")
    assert engine.session("a").discovered == []
    engine.catalog.add(pinned)
    assert engine.session("a", deny=["send_mail"]).discovered == []
    assert engine.session("a", reach=Reach()).discovered == ["send_mail"]
    assert names_in(session.tools()) == [SEARCH, "send_mail"]


def test_a_tool_that_was_removed_before_the_model_was_sent_it_is_not_in_the_list() -> None:
    engine = engine_of()
    session = engine.session("a")
    session.search("email calendar")
    engine.catalog.remove("send_mail")
    assert names_in(session.tools()) == [SEARCH, "list_events"]
    assert session.discovered == ["list_events"]
    assert session.savings().cache_breaks == 0
