"""Calls in a session: of what was found and what was not, whole or limited by the turn."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.session_tools import ALWAYS_SEARCH, FUNCTIONS, convert_time, engine_of, list_events
from toolsearch import (
    CallLimits,
    Catalog,
    Session,
    SessionOptions,
    ToolCallingManager,
    ToolSearch,
    TurnCounter,
)

# Calls


def test_an_undiscovered_call_is_expanded_and_run() -> None:
    session = engine_of().session("a")
    assert asyncio.run(session.call("list_events", {"day": "Monday"})).text == '["Monday: lunch"]'
    assert session.discovered == ["list_events"]


def test_an_undiscovered_call_is_refused_if_so_set_and_says_what_to_do() -> None:
    session = engine_of(expand_undiscovered=False).session("a")
    result = asyncio.run(session.call("list_events", {"day": "Monday"}))
    assert (result.error_code, session.discovered) == ("undiscovered_tool", [])
    assert "'select:list_events'" in result.text

    session.search("select:list_events")
    assert not asyncio.run(session.call("list_events", {"day": "Monday"})).is_error


def test_an_unknown_tool_has_near_names_in_reach_only() -> None:
    engine = engine_of()
    everything, little = engine.session("a"), engine.session("b", deny=["send_*"])
    assert "did you mean send_mail" in asyncio.run(everything.call("send_male")).text
    for name in ("send_male", "send_mail"):
        result = asyncio.run(little.call(name, {"to": "x", "text": "y"}))
        assert result.error_code == "unknown_tool"
        assert "send_mail" not in result.text.replace(f"named '{name}'", "")


def test_a_tool_that_fails_costs_its_siblings_nothing() -> None:
    calls = [
        {"id": "1", "name": "pay_bill", "arguments": {"amount": 1.5}},
        {"id": "2", "name": "convert_time", "arguments": {"hour": "seven"}},
        {"id": "3", "name": "send_mail", "arguments": {"to": "Ann", "text": "hi"}},
        {"id": "4", "name": "volcano"},
    ]
    session = engine_of().session("a")
    messages = asyncio.run(session.execute(calls))
    assert [message["isError"] for message in messages] == [True, True, False, True]
    assert "no money left" in messages[0]["content"][0]["text"]
    assert messages[2]["content"][0]["text"] == "sent 'hi' to Ann"
    assert (session.state.counters.calls, session.state.counters.failed_calls) == (4, 3)


def test_without_an_event_loop_calls_and_replies_are_run_by_the_synchronous_doors() -> None:
    session = ToolSearch([convert_time, list_events]).session("a")

    assert session.call_sync("convert_time", {"hour": 9}, context={"user": "ada"}).text == "10"
    [answer] = session.execute_sync({"name": "list_events", "arguments": {"day": "Monday"}})
    assert answer["content"][0]["text"] == '["Monday: lunch"]'


async def test_where_an_event_loop_runs_a_synchronous_door_names_the_asynchronous_one() -> None:
    session = ToolSearch([convert_time]).session("a")

    with pytest.raises(RuntimeError, match=r"use 'await session\.call\(\)'"):
        session.call_sync("convert_time", {"hour": 9})
    with pytest.raises(RuntimeError, match=r"use 'await session\.execute\(\)'"):
        session.execute_sync({"name": "convert_time", "arguments": {"hour": 9}})


def test_a_reply_without_calls_has_nothing_to_append() -> None:
    reply = {"role": "assistant", "content": "Done."}
    assert asyncio.run(engine_of().session("a").execute(reply)) == []


# Limits of a turn


def limited(**limits: Any) -> ToolSearch:
    catalog = Catalog.from_functions(FUNCTIONS)
    options = SessionOptions(pass_through=ALWAYS_SEARCH)
    return ToolSearch(catalog, encoder=None, options=options, manager=ToolCallingManager(limits=CallLimits(**limits)))


def code_of(session: Session, **more: Any) -> str | None:
    return asyncio.run(session.call("convert_time", {"hour": 1}, **more)).error_code


@pytest.mark.parametrize("ends", [Session.end_turn, Session.begin_turn])
def test_the_limits_of_a_turn_hold_until_it_ends_and_a_new_one_begins(ends: Callable[[Session], list[str]]) -> None:
    session = limited(total=1).session("a")
    assert [code_of(session), code_of(session)] == [None, "call_limit"]
    ends(session)
    assert [code_of(session), code_of(session)] == [None, "call_limit"]


def test_a_session_that_is_opened_anew_for_each_reply_goes_on_counting() -> None:
    engine = limited(total=2)
    assert [code_of(engine.session("a")) for _ in range(3)] == [None, None, "call_limit"]
    assert code_of(engine.session("b")) is None
    engine.session("a").end_turn()
    assert code_of(engine.session("a")) is None


def test_a_count_that_the_caller_carries_along_holds_where_sessions_are_forgotten() -> None:
    engine, turn = limited(total=2), TurnCounter()
    reply = [{"name": "convert_time", "arguments": {"hour": 1}}]
    errors: list[bool] = []
    for _ in range(3):
        (message,) = asyncio.run(engine.session("a").execute(reply, turn=turn))
        errors.append(message["isError"])
        engine.sessions.evict("a")
    assert errors == [False, False, True]
    assert code_of(engine.session("a"), turn=turn) == "call_limit"
    assert code_of(engine.session("a"), turn=TurnCounter()) is None
