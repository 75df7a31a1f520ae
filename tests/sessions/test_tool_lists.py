"""What a model is sent of tools: by mode, when lists begin anew, and what is counted for it."""

import asyncio
import json
from typing import Any

import pytest

from tests.kit.clock import Clock
from tests.kit.session_tools import ALWAYS_SEARCH, SEARCH, names_in
from toolsearch import Budget, Catalog, PassThrough, Session, SessionOptions, SessionStore, ToolDefinition, ToolSearch
from toolsearch.discovery.exposure import SESSION_EXPOSURES
from toolsearch.errors import BadSettingError
from toolsearch.session import ToolDelta
from toolsearch.storage.memory import InMemorySessionPersistence
from toolsearch.wire.capabilities import Endpoint

NAMES = ["mail", "bill", "trip", "song"]
CALL = "callTool"
MESSAGES, DEFERRED, FIXED = "claude-opus-5", "claude-sonnet-4-5", ""
CACHE_S = 300


class TenEach:
    """Every text counts ten tokens."""

    estimate = False

    def count(self, text: str) -> int:
        return 10 if text else 0


def engine_of(clock: Clock, kept: InMemorySessionPersistence | None = None, **options: Any) -> ToolSearch:
    chosen = SessionOptions(**{"pass_through": ALWAYS_SEARCH, "cache_ttl_s": CACHE_S, **options})
    return ToolSearch(
        Catalog([ToolDefinition(name, f"Does {name}") for name in NAMES]),
        encoder=None,
        sessions=SessionStore(persistence=kept, budget=chosen.budget, clock=clock),
        options=chosen,
        counter=TenEach(),
        clock=clock,
    )


def claude(name: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    block = {"type": "tool_use", "id": "1", "name": name, "input": arguments}
    return {"role": "assistant", "content": [block], "stop_reason": "tool_use", **more}


def find_by(wire_format: str, session: Session, *names: str) -> list[dict[str, Any]]:
    arguments = json.dumps({"query": f"select:{','.join(names)}"})
    if wire_format == "openai-responses":
        return session.execute_sync([{"type": "function_call", "call_id": "1", "name": SEARCH, "arguments": arguments}])
    call = {"id": "1", "type": "function", "function": {"name": SEARCH, "arguments": arguments}}
    return session.execute_sync({"role": "assistant", "tool_calls": [call]})


def find(session: Session, *names: str) -> list[dict[str, Any]]:
    return session.execute_sync(claude(SEARCH, {"query": f"select:{','.join(names)}"}))


def sent_to(session: Session, model: str) -> list[str]:
    return names_in(session.request("anthropic", model=model)["tools"])


def openai_list(session: Session) -> list[str]:
    return names_in(session.tools("openai"))


# Modes


@pytest.mark.parametrize(
    ("exposure", "wire_format", "model", "names"),
    [
        ("auto", "openai", "", [SEARCH, "mail"]),
        ("fixed", "openai", "", [SEARCH, CALL, "mail"]),
        ("auto", "anthropic", FIXED, [SEARCH, CALL, "mail"]),
        ("append", "anthropic", FIXED, [SEARCH, "mail"]),
        ("auto", "anthropic", MESSAGES, [SEARCH, "mail"]),
        ("deferred", "anthropic", MESSAGES, [SEARCH, CALL, "mail", "bill", "song", "trip"]),
        ("auto", "anthropic", DEFERRED, [SEARCH, CALL, "mail", "bill", "song", "trip"]),
    ],
)
def test_a_list_begins_with_what_is_discovered_in_the_way_that_the_session_asks_for(
    clock: Clock, exposure: Any, wire_format: Any, model: str, names: list[str]
) -> None:
    session = engine_of(clock).session("a", exposure=exposure)
    session.search("select:mail")
    assert names_in(session.request(wire_format, model=model)["tools"]) == names


def test_an_exposure_that_is_unknown_or_that_the_model_does_not_take_is_an_error(clock: Clock) -> None:
    engine = engine_of(clock)
    with pytest.raises(BadSettingError, match="unknown exposure 'native'; use one of auto, messages"):
        engine.session("a", exposure="native")  # type: ignore[arg-type]
    with pytest.raises(BadSettingError, match="does not take the exposure 'messages'; use one of append, fixed"):
        engine.session("a", exposure="messages").tools("openai")


def test_a_session_keeps_its_exposure(clock: Clock) -> None:
    kept = InMemorySessionPersistence()
    engine_of(clock, kept).session("a", exposure="fixed")
    assert openai_list(engine_of(clock, kept).session("a")) == [SEARCH, CALL]


@pytest.mark.parametrize("mode", ["fixed", "append"])
async def test_an_answer_says_how_found_tools_are_called_by_the_list_that_the_model_has(
    clock: Clock, mode: Any
) -> None:
    session = engine_of(clock).session("a", exposure=mode)
    openai_list(session)
    async with session.conversation() as conversation:
        assert conversation.exposure == SESSION_EXPOSURES[mode]


async def test_a_tool_that_was_found_with_one_model_is_in_the_list_of_the_next_one(clock: Clock) -> None:
    session = engine_of(clock).session("a")
    session.request("openai-responses", model="o1")
    await session.execute(
        [{"type": "function_call", "call_id": "1", "name": SEARCH, "arguments": '{"query": "select:mail"}'}]
    )
    assert names_in(session.request("openai-responses", model="gpt-5.4")["tools"]) == [SEARCH, "mail"]


def test_a_change_that_a_reply_in_another_format_cannot_carry_is_said_with_the_next_one(clock: Clock) -> None:
    session = engine_of(clock).session("a")
    sent_to(session, MESSAGES)
    session.execute_sync([{"name": SEARCH, "arguments": {"query": "select:mail"}}])  # calls that tell no format
    assert changes(find(session, "bill")) == (["mail", "bill"], [])


# When a list changes


def test_a_list_that_is_appended_to_shrinks_only_once_the_cache_is_cold(clock: Clock) -> None:
    session = engine_of(clock, budget=Budget(max_tools=2, low_water=0.5)).session("a")
    for name in ("mail", "bill", "trip"):
        session.search(f"select:{name}")
        session.end_turn()
        openai_list(session)
    assert session.discovered == ["trip"]

    clock.now_s += CACHE_S - 1
    assert openai_list(session) == [SEARCH, "mail", "bill", "trip"]
    clock.now_s += CACHE_S
    assert openai_list(session) == [SEARCH, "trip"]
    assert session.savings().cache_breaks == 2


@pytest.mark.parametrize(
    ("given_s", "after_s", "is_cold"),
    [(None, 3_599, False), (None, 3_600, True), (60, 60, True), (None, -60, False), (None, -172_800, True)],
)
def test_how_long_a_cache_lasts_is_known_by_model_or_set(
    clock: Clock, given_s: float | None, after_s: float, is_cold: bool
) -> None:
    session = engine_of(clock, cache_ttl_s=given_s).session("a")
    session.search("select:mail")
    openai_list(session)
    session.state.discovered.drop(["mail"])
    clock.now_s += after_s
    assert (openai_list(session) == [SEARCH]) is is_cold


def test_a_cache_lifetime_below_zero_is_refused() -> None:
    with pytest.raises(BadSettingError, match="cache_ttl_s must be 0 or more"):
        SessionOptions(cache_ttl_s=-1)


@pytest.mark.parametrize("model", [MESSAGES, FIXED])
def test_after_a_compaction_the_list_begins_anew_and_no_cache_counts_as_broken(clock: Clock, model: str) -> None:
    session = engine_of(clock).session("a", pins=["song"])
    first = sent_to(session, model)
    find(session, "mail")
    assert sent_to(session, model) == first

    session.compacted()

    assert sent_to(session, model) == [*first, "mail"]
    assert (session.savings().cache_breaks, session.state.counters.history_tokens) == (0, 0)


def test_a_changed_definition_is_followed_in_a_growing_list_and_is_a_break(clock: Clock) -> None:
    engine = engine_of(clock)
    session = engine.session("a")
    session.search("select:mail")
    openai_list(session)
    engine.catalog.put(ToolDefinition("mail", "Sends parcels now"))

    assert session.tools()[1]["function"]["description"] == "Sends parcels now"
    assert session.savings().cache_breaks == 1


def test_a_changed_definition_is_withdrawn_by_a_message_and_comes_back_with_the_next(clock: Clock) -> None:
    engine = engine_of(clock)
    session = engine.session("a")
    sent_to(session, MESSAGES)
    find(session, "mail")
    engine.catalog.put(ToolDefinition("mail", "Sends parcels now"))

    assert changes(find(session, "mail")) == ([], ["mail"])
    assert changes(find(session, "mail")) == (["mail"], [])
    assert session.savings().cache_breaks == 0


def test_the_text_of_the_search_tool_stays_although_servers_come(clock: Clock) -> None:
    engine = engine_of(clock)
    session = engine.session("a")
    first = json.dumps(session.tools())
    engine.catalog.add(ToolDefinition("git__log", "Shows the log", server="git"))
    assert json.dumps(session.tools()) == first
    assert session.savings().cache_breaks == 0


def test_a_catalog_that_outgrows_its_pass_through_gets_a_search_tool_and_that_is_a_break(clock: Clock) -> None:
    engine = engine_of(clock, pass_through=PassThrough(max_tools=4))
    session = engine.session("a")
    whole = openai_list(session)
    engine.catalog.add(ToolDefinition("fifth", "Does more"))

    assert openai_list(session) == [*whole, SEARCH]
    assert session.savings().cache_breaks == 1
    clock.now_s += CACHE_S
    assert openai_list(session) == [SEARCH]


def test_another_exposure_of_the_same_model_begins_a_list_and_is_a_break(clock: Clock) -> None:
    engine = engine_of(clock)
    openai_list(engine.session("a"))
    assert openai_list(engine.session("a", exposure="fixed")) == [SEARCH, CALL]
    assert engine.session("a").savings().cache_breaks == 1


# Limits of what is sent


def test_over_the_hard_limit_a_growing_list_begins_anew_with_what_is_in_use(clock: Clock) -> None:
    session = engine_of(clock, budget=Budget(max_tools=2, low_water=0.5, max_sent_tools=3)).session("a")
    for name in ("mail", "bill", "trip"):
        session.search(f"select:{name}")
        openai_list(session)
        session.end_turn()
    session.search("select:song")

    assert openai_list(session) == [SEARCH, "trip", "song"]
    assert session.savings().cache_breaks == 3


@pytest.mark.parametrize("bound", [100, None, 1_000])
@pytest.mark.parametrize(("wire_format", "model"), [("openai", "gpt-5"), ("openai-responses", "gpt-5")])
def test_openai_is_never_sent_more_functions_than_it_takes(wire_format: Any, model: str, bound: int | None) -> None:
    """The search tool, the call tool and what messages add count as well."""
    catalog = Catalog([ToolDefinition(f"t{number}", f"Does {number}") for number in range(160)])
    budget = Budget(max_tools=None, max_tokens=None, max_sent_tools=bound, max_sent_tokens=None)
    session = ToolSearch(catalog, encoder=None, options=SessionOptions(budget=budget)).session("a")
    most, added = 0, 0
    for first in range(0, 160, 8):
        most = max(most, added + len(session.request(wire_format, model=model)["tools"]))
        written = find_by(wire_format, session, *(f"t{number}" for number in range(first, first + 8)))
        added += sum(len(item["tools"]) for item in written if item.get("type") == "additional_tools")

    assert min(bound or 128, 126) - 8 < most <= 128


def test_a_catalog_that_openai_does_not_take_whole_is_refused_in_words() -> None:
    catalog = Catalog([ToolDefinition(f"t{number}", f"Does {number}") for number in range(129)])
    options = SessionOptions(pass_through=PassThrough(max_tools=500, max_tokens=100_000))
    session = ToolSearch(catalog, encoder=None, options=options).session("a")

    assert len(session.request("anthropic", model="claude-opus-5")["tools"]) == 129
    with pytest.raises(BadSettingError, match=r"all 129 tools .* takes 128"):
        session.request("openai", model="gpt-5")


def test_over_the_hard_limit_nothing_more_is_loaded_and_the_call_tool_runs_it(clock: Clock) -> None:
    engine = engine_of(clock, budget=Budget(max_sent_tools=1))
    session = engine.session("a")
    sent_to(session, DEFERRED)
    with session.conversation() as conversation:
        assert conversation.loadable(["bill", "mail"]) == ["bill"]
    find(session, "bill")
    with session.conversation() as conversation:
        assert conversation.loadable(["mail", "bill"]) == ["bill"]
    (message,) = find(session, "mail")

    assert "tool_reference" not in json.dumps(message)
    assert list(session.state.sent.now.visible) == [SEARCH, CALL, "bill"]


async def test_where_nothing_can_be_withdrawn_the_call_tool_is_added_at_the_hard_limit(clock: Clock) -> None:
    session = engine_of(clock, budget=Budget(max_sent_tools=1)).session("a")
    session.request("openai-responses", model="gpt-5")

    async def added(name: str) -> list[str]:
        text = json.dumps({"query": f"select:{name}"})
        written = await session.execute([{"type": "function_call", "call_id": "1", "name": SEARCH, "arguments": text}])
        return [tool["name"] for item in written if item["type"] == "additional_tools" for tool in item["tools"]]

    assert [await added("mail"), await added("bill"), await added("trip")] == [["mail"], [CALL], []]


def test_what_was_evicted_is_withdrawn_by_a_message_and_the_next_answer_can_name_it(clock: Clock) -> None:
    session = engine_of(clock, budget=Budget(max_tools=1, low_water=0)).session("a")
    sent_to(session, MESSAGES)
    find(session, "mail")
    session.end_turn()
    find(session, "bill")
    assert session.end_turn() == ["mail"]

    assert changes(find(session, "song")) == (["song"], ["mail"])
    with session.conversation() as conversation:
        assert [conversation.take_left(), conversation.take_left()] == [["mail"], []]
    assert asyncio.run(session.call("mail")).error_code == "tool_failed"  # it is there, and has nothing to run it


def test_what_messages_told_another_model_does_not_count_for_a_list_that_begins(clock: Clock) -> None:
    session = engine_of(clock, budget=Budget(max_tools=1, low_water=0)).session("a")
    sent_to(session, MESSAGES)
    find(session, "mail")
    session.end_turn()
    find(session, "bill")
    assert session.end_turn() == ["mail"]  # and no message has withdrawn it yet
    assert openai_list(session) == [SEARCH, "bill"]

    assert sent_to(session, MESSAGES) == [SEARCH, "bill"]
    assert changes(find(session, "mail")) == (["mail"], [])


def test_what_messages_have_withdrawn_is_there_again_in_a_list_that_begins_with_it(clock: Clock) -> None:
    session = engine_of(clock, budget=Budget(max_tools=1, low_water=0)).session("a")
    sent_to(session, MESSAGES)
    find(session, "mail")
    session.end_turn()
    find(session, "bill")
    session.end_turn()
    assert changes(find(session, "song")) == (["song"], ["mail"])
    openai_list(session)
    session.search("select:mail")

    assert "mail" in sent_to(session, MESSAGES)
    assert changes(find(session, "trip"))[0] == ["trip"]


# Figures


def test_what_messages_add_is_counted_until_the_history_is_compacted_and_breaks_nothing(clock: Clock) -> None:
    """[search] 10; then [search], the added tool 10, and the search with its answer 20: 40; and as much again."""
    session = engine_of(clock).session("a")
    sent_to(session, MESSAGES)
    find(session, "mail")
    sent_to(session, MESSAGES)
    sent_to(session, MESSAGES)
    assert (session.savings().sent_tokens, session.savings().cache_breaks) == (90, 0)

    session.compacted()
    sent_to(session, MESSAGES)
    assert session.savings().sent_tokens == 90 + 20


def test_what_answers_load_is_counted_in_place_of_their_text_and_in_every_request_after(clock: Clock) -> None:
    """[search, call] 20; then that, the query 10 and the loaded tool 10: 40; and as much again, whatever is evicted."""
    session = engine_of(clock, budget=Budget(max_tools=1, low_water=0)).session("a")
    sent_to(session, DEFERRED)
    find(session, "mail")
    sent_to(session, DEFERRED)
    session.state.discovered.drop(["mail"])
    sent_to(session, DEFERRED)
    assert (session.savings().sent_tokens, session.savings().cache_breaks) == (100, 0)


@pytest.mark.parametrize(
    ("usage", "price"),
    [
        ({}, 10),
        ({"usage": {"prompt_tokens": 5_000, "prompt_tokens_details": {"cached_tokens": 4_000}}}, 5_000),
        ({"usage": {"input_tokens": 100, "cache_read_input_tokens": 4_000, "cache_creation_input_tokens": 900}}, 5_000),
    ],
)
def test_a_break_costs_what_the_provider_says_that_the_last_prompt_took(
    clock: Clock, usage: dict[str, Any], price: int
) -> None:
    session = engine_of(clock).session("a")
    session.tools()
    function = {"name": SEARCH, "arguments": '{"query": "select:mail"}'}
    session.execute_sync({"tool_calls": [{"id": "1", "type": "function", "function": function}], **usage})
    session.tools()
    assert (session.savings().cache_breaks, session.savings().break_tokens) == (1, price)


# What history refers to


def test_a_loaded_tool_keeps_its_definition_when_it_is_gone_also_after_a_restart(clock: Clock) -> None:
    kept = InMemorySessionPersistence()
    engine = engine_of(clock, kept)
    session = engine.session("a")
    before = session.request("anthropic", model=DEFERRED)["tools"]
    find(session, "mail")
    engine.catalog.remove("mail")
    assert session.request("anthropic", model=DEFERRED)["tools"] == before
    session.end_turn()

    restarted = engine_of(clock, kept)
    restarted.catalog.remove("mail")
    assert json.dumps(restarted.session("a").request("anthropic", model=DEFERRED)["tools"]) == json.dumps(before)


# Adapters


def test_a_delta_is_what_came_and_what_went_since_the_last_one(clock: Clock) -> None:
    engine = engine_of(clock)
    session = engine.session("a")
    first = session.delta()
    assert ([each.name for each in first.added], first.removed) == ([SEARCH], ())

    session.search("select:mail,bill")
    assert [each.name for each in session.delta().added] == ["mail", "bill"]
    session.state.discovered.drop(["mail"])
    assert session.delta() == ToolDelta()  # the provider may have the list in its cache
    clock.now_s += CACHE_S
    assert session.delta() == ToolDelta(removed=("mail",))
    assert session.savings().requests == 4


@pytest.mark.parametrize("model", [MESSAGES, DEFERRED])
def test_a_delta_follows_the_messages_and_answers_of_the_other_modes(clock: Clock, model: str) -> None:
    session = engine_of(clock).session("a")
    session.delta("anthropic", model=model)
    asyncio.run(session.call(SEARCH, {"query": "select:mail"}))
    assert [each.name for each in session.delta("anthropic", model=model).added] == ["mail"]
    assert session.state.sent.now.endpoint == Endpoint("anthropic", model)


def changes(messages: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """The names that the written messages add and withdraw."""
    blocks = [block for message in messages if message["role"] == "system" for block in message["content"]]
    return (
        [block["tool"]["definition"]["name"] for block in blocks if block["type"] == "tool_addition"],
        [block["tool"]["name"] for block in blocks if block["type"] == "tool_removal"],
    )
