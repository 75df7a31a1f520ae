"""A session: the tools it shows, in which order, within which reach, what it remembers and what it has saved."""

import asyncio
import json
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolsearch import (
    Budget,
    CallLimits,
    Catalog,
    LruEvictionStrategy,
    PassThrough,
    Reach,
    Session,
    SessionOptions,
    SessionStore,
    SqliteSessionPersistence,
    ToolCallingManager,
    ToolDefinition,
    ToolSearch,
    TurnCounter,
    tool,
)
from toolsearch.errors import BadQueryError, BadSettingError, UnknownSessionError, UnknownToolError
from toolsearch_indexes.encoders.hashing import HashingEncoder

FORMATS = ("openai", "openai-responses", "anthropic", "mcp")
SEARCH = "toolSearchTool"
ALWAYS_SEARCH = PassThrough(max_tools=0)


def send_mail(to: str, text: str) -> str:
    """Send an email message."""
    return f"sent {text!r} to {to}"


def list_events(day: str) -> list[str]:
    """List the events of a calendar on a day."""
    return [f"{day}: lunch"]


async def convert_time(hour: int) -> int:
    """Convert an hour from one time zone to another."""
    return hour + 1


@tool(tags=("write",))
def pay_bill(amount: float) -> str:
    """Pay a bill with money."""
    raise RuntimeError("no money left")


FUNCTIONS: list[Callable[..., Any]] = [send_mail, list_events, convert_time, pay_bill]


def engine_of(*, sessions: SessionStore | None = None, catalog: Catalog | None = None, **options: Any) -> ToolSearch:
    chosen = SessionOptions(**{"pass_through": ALWAYS_SEARCH, **options})
    catalog = catalog or Catalog.from_functions(FUNCTIONS)
    return ToolSearch(catalog, encoder=None, sessions=sessions, options=chosen)


def names_in(tools: list[dict[str, Any]]) -> list[str]:
    return [entry["function"]["name"] if "function" in entry else entry["name"] for entry in tools]


def test_the_readme_in_one_piece_in_every_format() -> None:
    async def converse(wire_format: str) -> None:
        session = engine_of().session("user-42")
        assert names_in(session.tools(format=wire_format)) == [SEARCH]

        found = await session.call(SEARCH, {"query": "convert time zones", "limit": 1})
        assert "- convert_time: Convert an hour" in found.text
        assert names_in(session.tools(format=wire_format)) == [SEARCH, "convert_time"]

        result = await session.call("convert_time", {"hour": 7})
        assert (result.text, result.is_error) == ("8", False)

    for wire_format in FORMATS:
        asyncio.run(converse(wire_format))


def test_an_unknown_format_is_an_error_that_names_the_known() -> None:
    with pytest.raises(BadSettingError, match="'openai', 'openai-responses', 'anthropic', 'mcp'"):
        engine_of().session("a").tools(format="yaml")


@pytest.mark.parametrize("wire_format", FORMATS)
def test_lists_only_grow_at_their_end_byte_for_byte(wire_format: str) -> None:
    session = engine_of().session("a")
    texts = [json.dumps(session.tools(format=wire_format))]
    for query in ("email", "calendar", "email calendar bill", "nothing of the kind", "select:convert_time"):
        session.search(query)
        session.end_turn()
        texts.append(json.dumps(session.tools(format=wire_format)))

    assert all(after.startswith(before[:-1]) for before, after in pairwise(texts))
    assert session.discovered == ["send_mail", "list_events", "pay_bill", "convert_time"]
    assert session.savings().cache_breaks == 0


def test_a_catalog_of_a_few_tools_is_shown_whole_without_a_search_tool() -> None:
    engine = engine_of(pass_through=PassThrough(max_tools=4))
    session = engine.session("a")
    assert names_in(session.tools()) == ["convert_time", "list_events", "pay_bill", "send_mail"]
    assert asyncio.run(session.call("convert_time", {"hour": 1})).text == "2"

    engine.catalog.add(ToolDefinition("fifth"))
    assert names_in(session.tools()) == [SEARCH]
    assert len(names_in(engine.session("b", deny=["fifth"]).tools())) == 4  # it is the reach that counts


def test_what_passes_through_is_bounded_in_tokens_too() -> None:
    session = engine_of(pass_through=PassThrough(max_tools=4, max_tokens=50)).session("a")
    assert names_in(session.tools()) == [SEARCH]


# The search tool


def test_the_answer_names_what_is_new_and_what_was_there() -> None:
    session = engine_of().session("a")
    session.search("email")
    text = asyncio.run(session.call(SEARCH, {"query": "email calendar"})).text
    assert text.startswith("2 tools found, 1 of them new. They are in your tool list from now on; call them by name.")
    assert "- send_mail (was loaded already): Send an email message." in text


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"query": ""}, "query must be a text"),
        ({}, "query"),
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
    assert result.text.startswith("1 tool found")


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
    assert result.text.startswith("No tool found. Try other words")
    assert not result.is_error


def test_limits_are_clamped_for_the_model_and_checked_for_the_caller() -> None:
    session = engine_of(max_limit=2).session("a")
    text = asyncio.run(session.call(SEARCH, {"query": "email calendar bill hour", "limit": 99})).text
    assert "The limit 99 is out of range; 2 was used (1-2)." in text
    assert len(session.discovered) == 2
    with pytest.raises(BadQueryError, match="at least 1, not 0"):
        session.search("email", limit=0)


# Calls


def test_an_undiscovered_call_is_expanded_and_run() -> None:
    session = engine_of().session("a")
    assert asyncio.run(session.call("list_events", {"day": "Monday"})).text == '["Monday: lunch"]'
    assert session.discovered == ["list_events"]


def test_an_undiscovered_call_is_refused_if_so_set_and_says_what_to_do() -> None:
    session = engine_of(expand_undiscovered=False).session("a")
    result = asyncio.run(session.call("list_events", {"day": "Monday"}))
    assert (result.error_code, session.discovered) == ("undiscovered_tool", [])
    assert "call toolSearchTool with the query 'select:list_events' first" in result.text

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


# Reach and pins


def test_a_session_finds_shows_and_runs_only_what_is_in_reach() -> None:
    session = engine_of().session("a", allow=["*_mail", "convert_time"], deny=["tag:write"])
    assert [found.name for found in session.search("email calendar bill hour")] == ["send_mail", "convert_time"]
    assert asyncio.run(session.call("pay_bill", {"amount": 1.0})).error_code == "unknown_tool"


def test_the_search_tool_names_the_servers_in_reach_and_no_others() -> None:
    servers = ("bank", "mail", "secret")
    catalog = Catalog([ToolDefinition(f"{server}__list", f"List the {server}", server=server) for server in servers])
    session = engine_of(catalog=catalog).session("a", deny=["server:secret"])
    for definition in (session.shown()[0].definition, session.resolve(SEARCH).definition):
        assert (
            definition.input_schema["properties"]["server"]["description"] == "Only tools of this server: bank, mail."
        )


def test_a_reach_that_changes_on_reopening_drops_what_left_it() -> None:
    engine = engine_of()
    session = engine.session("a")
    session.search("email calendar bill hour")
    before = session.discovered

    assert engine.session("a") is session
    assert session.discovered == before  # no reach given, none changed
    engine.session("a", deny=["pay_bill", "list_events"])
    assert session.discovered == [name for name in before if name in ("convert_time", "send_mail")]
    assert session.savings().cache_breaks == 1
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


def test_a_tool_that_was_removed_leaves_the_list() -> None:
    engine = engine_of()
    session = engine.session("a")
    session.search("email calendar")
    engine.catalog.remove("send_mail")
    assert names_in(session.tools()) == [SEARCH, "list_events"]
    assert session.discovered == ["list_events"]
    assert session.savings().cache_breaks == 1


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
    assert (savings.cache_breaks, savings.is_estimate) == (0, False)


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
    engine.session("first").search("mail", limit=20)

    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(200):
            engine.session(f"user-{number}").search(f"mail thing {number % 15}", limit=20)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert all(len(engine.session(f"user-{number}").discovered) == 20 for number in range(200))
    assert (after - before) / 200 < 10_000


# Properties

WORDS = ("mail", "event", "bill", "hour", "list", "send")
NAMES = tuple(f"{word}_{i}" for word in WORDS[:4] for i in range(3))
definitions = st.builds(
    lambda name, words: ToolDefinition(name, " ".join(words), server=name[:4], tags=(name[-1],)),
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(WORDS), max_size=3),
)
rules = st.lists(
    st.sampled_from([*NAMES[:6], "*_1", "mail*", "server:bill", "server:e*", "tag:0", "tag:2"]), max_size=3
)
queries = st.one_of(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(lambda names: f"select:{','.join(names)}"),
    st.sampled_from(["/a|e/", "/_1$/", "mial", "sennd", "mai", "mcp__x__mail_1"]),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(definitions, min_size=1, max_size=10, unique_by=lambda each: each.name), rules, rules, queries)
def test_nothing_that_a_model_reads_names_a_tool_out_of_reach(
    tools: list[ToolDefinition], allow: list[str], deny: list[str], query: str
) -> None:
    """Neither answers, nor errors with near names, nor the tool lists. What the model itself wrote is no news to it."""
    engine = ToolSearch(Catalog(tools), encoder=HashingEncoder(16), options=SessionOptions(pass_through=ALWAYS_SEARCH))
    session = engine.session("a", allow=allow, deny=deny)
    reach = session.state.reach
    hidden = [each.name for each in tools if not reach.allows(each)]

    async def read() -> list[str]:
        texts = [(await session.call(SEARCH, {"query": query, "strategy": s})).text for s in engine.strategies]
        texts += [(await session.call(name + tail)).text.replace(name, "") for name in hidden for tail in ("", "x")]
        texts += [(await session.call(SEARCH, {"query": query, "server": "none"})).text, json.dumps(session.tools())]
        return texts

    read_by_model = "\n".join(asyncio.run(read()))
    assert [name for name in hidden if name in read_by_model] == []
    assert {name for name in session.discovered if name in hidden} == set()


steps = st.one_of(
    st.tuples(st.just("search"), queries),
    st.tuples(st.just("call"), st.sampled_from(NAMES)),
    st.tuples(st.just("end turn"), st.none()),
    st.tuples(st.just("put"), definitions),
    st.tuples(st.just("remove"), st.sampled_from(NAMES)),
    st.tuples(st.just("tools"), st.none()),
)


def take(engine: ToolSearch, step: tuple[str, Any]) -> set[str]:
    """Take one step of a session's life; return the tools that may be missing for it."""
    session, (kind, what) = engine.session("a"), step
    if kind == "search":
        session.search(what, limit=3)
    elif kind == "call":
        asyncio.run(session.call(what))
    elif kind == "put":
        engine.catalog.put(what)
    elif kind == "remove" and what in engine.catalog:
        engine.catalog.remove(what)
    elif kind == "tools":
        session.tools()
    elif kind == "end turn":
        return set(session.end_turn())
    return set()


@settings(max_examples=40, deadline=None)
@given(st.lists(definitions, max_size=8, unique_by=lambda each: each.name), st.lists(steps, max_size=25))
def test_the_discovered_keep_their_order_and_go_only_by_eviction_or_removal(
    tools: list[ToolDefinition], life: list[tuple[str, Any]]
) -> None:
    engine = engine_of(catalog=Catalog(tools), budget=Budget(max_tools=4))
    before = engine.session("a").discovered
    for step in life:
        evicted = take(engine, step)
        after = engine.session("a").discovered
        stayed = [name for name in before if name in after]
        assert after[: len(stayed)] == stayed
        assert all(name in evicted or name not in engine.catalog for name in before if name not in after)
        before = after


def test_what_went_cold_while_the_user_was_away_is_not_sent_again():
    now = [0.0]
    options = SessionOptions(budget=Budget(ttl_s=60), pass_through=PassThrough(max_tools=0))
    engine = ToolSearch(Catalog([ToolDefinition("send_mail", "Send a letter.")]), options=options, clock=lambda: now[0])
    session = engine.session("s")
    session.search("letter")
    session.end_turn()

    now[0] = 59.0
    assert (session.begin_turn(), session.discovered) == ([], ["send_mail"])
    now[0] = 60.0
    assert (session.begin_turn(), session.discovered) == (["send_mail"], [])
