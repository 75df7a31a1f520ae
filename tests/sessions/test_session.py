"""A session: the tools it shows, in which order, what a search answers, and what it has saved."""

import asyncio
import json
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.kit.session_tools import (
    ALWAYS_SEARCH,
    FORMATS,
    FUNCTIONS,
    SEARCH,
    engine_of,
    names_in,
)
from toolsearch import (
    Budget,
    Catalog,
    LruEvictionStrategy,
    PassThrough,
    SessionOptions,
    SessionStore,
    SqliteSessionPersistence,
    ToolDefinition,
    ToolSearch,
)
from toolsearch.errors import BadQueryError, BadSettingError, UnknownSessionError


def test_the_readme_in_one_piece_in_every_format() -> None:
    async def converse(wire_format: str) -> None:
        session = engine_of().session("user-42")
        first = names_in(session.tools(format=wire_format))
        assert first == ([SEARCH, "callTool"] if wire_format == "anthropic" else [SEARCH])

        found = await session.call(SEARCH, {"query": "convert time zones", "limit": 1})
        assert "convert_time" in found.text
        grown = [*first, "convert_time"]  # of a Claude model that is not named, nothing may change
        assert names_in(session.tools(format=wire_format)) == (first if wire_format == "anthropic" else grown)

        result = await session.call("convert_time", {"hour": 7})
        assert (result.text, result.is_error) == ("8", False)

    for wire_format in FORMATS:
        asyncio.run(converse(wire_format))


def test_an_unknown_format_is_an_error_that_names_the_known() -> None:
    with pytest.raises(BadSettingError, match="'openai', 'openai-responses', 'anthropic', 'mcp'"):
        engine_of().session("a").tools(format="yaml")


@pytest.mark.parametrize("wire_format", FORMATS)
def test_lists_that_grow_do_so_at_their_end_only_byte_for_byte(wire_format: str) -> None:
    session = engine_of().session("a")
    texts = [json.dumps(session.tools(format=wire_format))]
    for query in ("email", "calendar", "email calendar bill", "nothing of the kind", "select:convert_time"):
        session.search(query)
        session.end_turn()
        texts.append(json.dumps(session.tools(format=wire_format)))

    assert all(after.startswith(before[:-1]) for before, after in pairwise(texts))
    assert session.discovered == ["send_mail", "list_events", "pay_bill", "convert_time"]
    assert session.savings().cache_breaks == sum(after != before for before, after in pairwise(texts))


def test_a_catalog_of_a_few_tools_is_shown_whole_without_a_search_tool() -> None:
    engine = engine_of(pass_through=PassThrough(max_tools=4))
    session = engine.session("a")
    assert names_in(session.tools()) == ["convert_time", "list_events", "pay_bill", "send_mail"]
    assert asyncio.run(session.call("convert_time", {"hour": 1})).text == "2"

    engine.catalog.add(ToolDefinition("fifth"))
    assert names_in(engine.session("new").tools()) == [SEARCH]
    assert len(names_in(engine.session("b", deny=["fifth"]).tools())) == 4  # it is the reach that counts


def test_what_passes_through_is_bounded_in_tokens_too() -> None:
    session = engine_of(pass_through=PassThrough(max_tools=4, max_tokens=50)).session("a")
    assert names_in(session.tools()) == [SEARCH]


# The search tool


def test_the_answer_marks_what_is_loaded_by_it_and_what_was_before() -> None:
    session = engine_of().session("a")
    session.search("email")
    text = asyncio.run(session.call(SEARCH, {"queries": ["email", "calendar"]})).text
    assert "- send_mail(to*, text*) [likely, loaded]" in text
    assert "- list_events(day*) [likely, loaded]" in text
    assert session.discovered == ["send_mail", "list_events"]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"query": ""}, "queries must be texts"),
        ({}, "queries"),
        ({"query": "/(mail/"}, "mail"),
        ({"query": "mail", "strategy": "semantic"}, "strategy"),
        ({"query": "mail", "server": "bank"}, "there is no server 'bank'; there are: none"),
    ],
)
def test_a_search_that_cannot_be_run_is_a_result_that_the_model_can_act_on(
    arguments: dict[str, Any], part: str
) -> None:
    session = engine_of().session("a")
    result = asyncio.run(session.call(SEARCH, arguments))
    assert result.is_error
    assert part in result.text
    assert session.discovered == []


def test_a_search_whose_client_made_every_argument_required_text_is_understood() -> None:
    arguments = {"query": "email calendar bill", "limit": "1", "server": "any", "strategy": "keyword"}
    result = asyncio.run(engine_of().session("a").call(SEARCH, arguments))
    assert result.text.count("\n- ") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        {"limit": 10**4_000}, {"limit": -(10**4_000)}, {"server": "x" * 50_000}, {"x" * 50_000: 1},
        {"strategy": "x" * 50_000}, {"query": "x" * 50_000}, {"query": f"/{'x' * 900}/"},
        {"query": f"select:{'x' * 900}"},
    ],
    ids=lambda arguments: str(arguments)[:20],
)  # fmt: skip
def test_no_answer_says_a_long_argument_back(arguments: dict[str, Any]) -> None:
    answer = asyncio.run(engine_of().session("a").call(SEARCH, {"query": "mail", **arguments}))
    assert len(answer.text) < 1_000


def test_a_search_that_finds_nothing_says_what_to_try() -> None:
    result = asyncio.run(engine_of().session("a").call(SEARCH, {"query": "volcano"}))
    assert result.text.startswith("No tool found.\nDo without")
    assert not result.is_error


def test_limits_are_clamped_for_the_model_and_checked_for_the_caller() -> None:
    session = engine_of(max_limit=2).session("a")
    text = asyncio.run(session.call(SEARCH, {"query": "email calendar bill hour", "limit": 99})).text
    assert "limit 99" in text
    assert "2 was used (1-2)." in text
    assert text.count("\n- ") == 2
    with pytest.raises(BadQueryError, match="at least 1, not 0"):
        session.search("email", limit=0)


# The ends of sessions


def test_an_evicted_session_is_an_error_in_everything_it_does() -> None:
    engine = engine_of(sessions=SessionStore(LruEvictionStrategy(1)))
    session = engine.session("a")
    engine.session("b")

    for act in (session.tools, session.end_turn, session.savings, lambda: session.search("x"), lambda: session.state):
        with pytest.raises(UnknownSessionError, match=r"'a'.*open it again"):
            act()
    with pytest.raises(UnknownSessionError):
        asyncio.run(session.call("convert_time", {"hour": 1}))
    assert names_in(engine.session("a").tools()) == [SEARCH]
    assert session.discovered == []  # the same session, opened again, with nothing left


def test_a_session_that_is_evicted_during_its_calls_still_gets_their_results() -> None:
    engine = engine_of(sessions=SessionStore(LruEvictionStrategy(1)))

    def crowd_out() -> str:
        """Open another session."""
        engine.session("b")
        return "done"

    engine.catalog.add(crowd_out)
    messages = asyncio.run(engine.session("a").execute([{"name": "crowd_out"}, {"name": "crowd_out"}]))
    assert [message["content"][0]["text"] for message in messages] == ["done", "done"]


def test_a_session_survives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "sessions.sqlite"
    with SqliteSessionPersistence(path) as kept, engine_of(sessions=SessionStore(persistence=kept)) as first:
        session = first.session("a", deny=["pay_bill"], pins=["send_mail"])
        session.search("hour calendar")
        before = json.dumps(session.tools())
    with SqliteSessionPersistence(path) as kept, engine_of(sessions=SessionStore(persistence=kept)) as second:
        session = second.session("a")
        assert json.dumps(session.tools()) == before
        assert session.search("bill") == []
        assert session.savings().requests == 2


def test_a_reach_that_was_narrowed_stays_so_after_a_crash(tmp_path: Path) -> None:
    """The engine is not closed, and nothing but the reopening happened."""
    with SqliteSessionPersistence(tmp_path / "sessions.sqlite") as kept:
        crashed = engine_of(sessions=SessionStore(persistence=kept))
        crashed.session("a").search("bill")
        crashed.session("a", deny=["pay_bill"])

        session = engine_of(sessions=SessionStore(persistence=kept)).session("a")
        assert session.search("bill") == []
        assert session.discovered == []


# Figures


class TenEach:
    """Every text counts ten tokens."""

    estimate = False

    def count(self, text: str) -> int:  # noqa: ARG002
        return 10


def test_savings_worked_by_hand() -> None:
    """Four tools, 40 tokens. Three requests: [search] 10; [search, tool] 20 and history 20, twice: 90 sent, 10 written.
    The first reply only searched, so without a search tool two requests of 40 would have done.
    """
    engine = ToolSearch(
        Catalog.from_functions(FUNCTIONS),
        encoder=None,
        counter=TenEach(),
        options=SessionOptions(pass_through=ALWAYS_SEARCH),
    )
    session = engine.session("a")
    session.tools()
    asyncio.run(session.execute([{"name": SEARCH, "arguments": {"query": "hour"}}]))
    session.tools()
    asyncio.run(session.execute([{"name": "convert_time", "arguments": {"hour": 1}}]))
    session.tools()

    savings = session.savings()
    assert (savings.requests, savings.search_rounds) == (3, 1)
    assert (savings.sent_tokens, savings.written_tokens, savings.all_tools_tokens) == (90, 10, 80)
    assert (savings.saved_tokens, savings.saved_share) == (-20, -0.25)
    assert (savings.cache_breaks, savings.break_tokens) == (
        1,
        10,
    )  # one tool was added to the list of the first request
    assert savings.is_estimate is False


def test_what_is_out_of_reach_was_never_to_be_sent_and_so_is_not_saved() -> None:
    """Two of four tools are in reach: 20 tokens with each of two requests."""
    engine = ToolSearch(
        Catalog.from_functions(FUNCTIONS),
        encoder=None,
        counter=TenEach(),
        options=SessionOptions(pass_through=ALWAYS_SEARCH),
    )
    session = engine.session("a", deny=["send_mail", "pay_bill"])
    session.tools()
    session.tools()
    assert session.savings().all_tools_tokens == 40


def test_a_session_without_requests_has_saved_nothing() -> None:
    savings = engine_of().session("a").savings()
    assert (savings.saved_tokens, savings.saved_share) == (0, 0.0)


def test_a_session_takes_less_than_10_kb() -> None:
    definitions = [ToolDefinition(f"tool_{i:03}", f"Do thing {i % 15} for mail") for i in range(300)]
    engine = engine_of(catalog=Catalog(definitions), budget=Budget(max_tools=None, max_tokens=None))
    for number in range(15):  # so that the engine keeps at hand what these searches ask for
        engine.session("first").search(f"mail thing {number}", limit=20)

    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(50):
            engine.session(f"user-{number}").search(f"mail thing {number % 15}", limit=20)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert all(len(engine.session(f"user-{number}").discovered) == 20 for number in range(50))
    assert (after - before) / 50 < 10_000
