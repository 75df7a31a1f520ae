"""Tool search from turn to turn: what a session keeps, when it is evicted, and what is pinned."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.kit.clock import Clock
from tests.kit.scripted_model import ScriptedModel, calls, says
from tests.kit.tool_search import (
    FUNCTIONS,
    OPTIONS,
    QUESTION,
    SEARCH,
    TOOLS,
    ask,
    asked,
    names,
    results,
    search,
    searcher,
)
from toolsearch import (
    AlwaysEvictStrategy,
    Budget,
    Catalog,
    LruEvictionStrategy,
    SessionStore,
    SqliteSessionPersistence,
    ToolSearch,
)
from toolsearch.chat.advisor import chain_of
from toolsearch.chat.model import Prompt
from toolsearch.chat.tool_search import ToolSearchAdvisor
from toolsearch.discovery.discovered_tools import DiscoveredTools
from toolsearch.errors import BadSettingError
from toolsearch.tools.function_tools import tool_from_function
from toolsearch.wire import Endpoint
from toolsearch.wire.answers import ChatResponse
from toolsearch.wire.messages import SystemMessage, ToolMessage, UserMessage

# Sessions


async def test_discovered_tools_survive_turns_though_no_message_tells_of_them(run: Any) -> None:
    advisor, model = searcher(), ScriptedModel(search("email"), says("1"), says("2"))

    await run(advisor, model, asked())
    await run(advisor, model, asked(UserMessage("And now?")))

    assert names(model) == [[SEARCH], [SEARCH, "send_mail"], [SEARCH, "send_mail"]]


async def test_discovered_tools_survive_a_memory_inside_the_loop(run: Any) -> None:
    """With the history off, a request of the loop holds the newest results only; the rest is the memory's."""
    model = ScriptedModel(search("email"), search("calendar"), calls(("send_mail", '{"to": "Ann"}')), says("Done."))

    await run(searcher(conversation_history=False), model, asked())

    assert names(model)[-1] == [SEARCH, "send_mail", "list_events"]
    assert [type(message) for message in model.sent[-1]] == [SystemMessage, ToolMessage]
    assert results(model, 3)[0].text == "sent '' to Ann"


async def test_sessions_do_not_see_what_others_discovered() -> None:
    advisor, model = searcher(), ScriptedModel(search("email"), says("1"), says("2"))

    await ask(advisor, model, asked(conversation="a"))
    await ask(advisor, model, asked(conversation="b"))

    assert names(model)[-1] == [SEARCH]


async def test_the_session_id_is_read_under_the_given_key() -> None:
    advisor, model = searcher(session_id_key="thread"), ScriptedModel(says("1"))

    await ask(advisor, model, replace(asked(conversation=None), context={"thread": "t-1"}))

    assert advisor.sessions.ids() == ["t-1"]


@pytest.mark.parametrize("context", [{}, {"conversation_id": None}, {"conversation_id": " "}, {"conversation_id": 7}])
async def test_without_a_session_id_a_request_with_tools_is_refused(context: dict[str, Any]) -> None:
    with pytest.raises(BadSettingError, match="the request's context as 'conversation_id'"):
        await ask(searcher(), ScriptedModel(), replace(asked(), context=context))


async def test_a_request_without_tools_needs_no_session_id_and_is_sent_as_it_is(run: Any) -> None:
    model = ScriptedModel(says("Hello."))

    response = await run(searcher(), model, asked(tools=(), conversation=None))

    assert response.text == "Hello."
    assert model.prompts == [Prompt((QUESTION,))]


async def test_two_requests_of_one_session_at_once_share_what_they_find_and_lose_nothing() -> None:
    """The first turn ends while the second is running, which must not evict what the second has just found."""
    advisor = searcher(budget=Budget(max_tools=1, low_water=0))
    found, ended = asyncio.Event(), asyncio.Event()

    class Waiting(ScriptedModel):
        async def call(self, prompt: Prompt) -> ChatResponse:
            if len(self.prompts) == 1:
                found.set()
                await ended.wait()
            return await super().call(prompt)

    slow = Waiting(search("select:send_mail,list_events"), calls(("send_mail", '{"to": "Ann"}')), says("Done."))
    running = asyncio.create_task(ask(advisor, slow, asked()))
    await found.wait()
    fast = ScriptedModel(search("select:convert_time"), says("Done."))
    await ask(advisor, fast, asked())
    ended.set()
    await running

    assert names(fast) == [[SEARCH, "send_mail", "list_events"], [SEARCH, "send_mail", "list_events", "convert_time"]]
    assert names(slow)[2] == [SEARCH, "send_mail", "list_events", "convert_time"]
    assert results(slow, 2)[0].text == "sent '' to Ann"


async def test_many_requests_of_one_session_at_once_each_get_their_answers() -> None:
    advisor = searcher()

    async def one(function: Callable[..., Any]) -> list[str]:
        model = ScriptedModel(search(f"select:{function.__name__}"), says("Done."))
        await ask(advisor, model, asked())
        return names(model)[-1]

    shown = await asyncio.gather(*(one(function) for function in FUNCTIONS * 5))

    for function, tools in zip(FUNCTIONS * 5, shown, strict=True):
        assert function.__name__ in tools
        assert len(tools) == len(set(tools)) <= 5


async def test_between_turns_a_session_is_brought_back_to_its_budget_and_its_list_once_no_cache_is_lost_by_it() -> None:
    clock = Clock()
    options = replace(OPTIONS, budget=Budget(max_tools=2, low_water=0.5))
    engine = ToolSearch(Catalog(TOOLS), encoder=None, options=options, clock=clock)
    model = ScriptedModel(search("select:send_mail,list_events,pay_bill"), *[says("Done.")] * 4)
    kept = []
    for _ in range(3):
        await ask(ToolSearchAdvisor(engine), model, asked(tools=()))
        kept.append(len(engine.session("a").discovered))
    clock.now_s += 86_400
    await ask(ToolSearchAdvisor(engine), model, asked(tools=()))

    assert kept == [3, 1, 1]  # what this turn found, it may use in the next
    assert [len(tools) - 1 for tools in names(model)] == [0, 3, 3, 3, 1]


async def test_tools_that_were_idle_for_their_ttl_go_when_the_user_speaks_again() -> None:
    clock = Clock()
    options = replace(OPTIONS, budget=Budget(ttl_s=60))
    engine = ToolSearch(Catalog(TOOLS), encoder=None, options=options, clock=clock)
    advisor, session = ToolSearchAdvisor(engine), engine.session("a")
    model = ScriptedModel(search("email"), says("1"), lambda _: says(str(session.discovered)))
    await ask(advisor, model, asked(tools=()))
    clock.now_s += 60

    response = await ask(advisor, model, asked(tools=()))

    assert response.text == "[]"


async def test_a_turn_that_fails_is_ended_too() -> None:
    advisor = searcher()
    with pytest.raises(RuntimeError, match="no network"):
        await ask(advisor, ScriptedModel(RuntimeError("no network")), asked())
    assert not advisor._running


async def test_a_stream_that_is_left_early_is_ended_too() -> None:
    advisor = searcher()
    chunks = chain_of([advisor], ScriptedModel(says("A long answer."))).stream(asked())
    async for _ in chunks:
        break
    await chunks.aclose()
    assert not advisor._running


# Eviction


async def test_another_session_evicts_the_one_used_least_recently() -> None:
    advisor = searcher(sessions=SessionStore(LruEvictionStrategy(1)))
    model = ScriptedModel(search("email"), says("1"), says("2"), says("3"))

    await ask(advisor, model, asked(conversation="a"))
    await ask(advisor, model, asked(conversation="b"))
    assert advisor.sessions.ids() == ["b"]
    await ask(advisor, model, asked(conversation="a"))

    assert names(model)[1:] == [[SEARCH, "send_mail"], [SEARCH], [SEARCH]]


async def test_an_evicted_session_starts_anew_and_can_search_again() -> None:
    advisor = searcher()
    model = ScriptedModel(search("email"), says("1"), search("email"), says("2"))

    await ask(advisor, model, asked())
    assert advisor.evict_session("a")
    assert not advisor.evict_session("a")
    await ask(advisor, model, asked())

    assert names(model) == [[SEARCH], [SEARCH, "send_mail"]] * 2


async def test_a_strategy_that_always_evicts_gives_each_turn_a_fresh_session_and_lets_it_finish() -> None:
    advisor = searcher(sessions=SessionStore(AlwaysEvictStrategy()))
    model = ScriptedModel(search("email"), says("1"), search("email"), says("2"))

    await ask(advisor, model, asked())
    await ask(advisor, model, asked())

    assert names(model) == [[SEARCH], [SEARCH, "send_mail"]] * 2


async def test_an_eviction_in_the_middle_of_a_turn_leaves_the_turn_what_it_found(run: Any) -> None:
    advisor = searcher()

    def evict() -> str:
        """Evict the session."""
        return str(advisor.evict_session("a"))

    reply = calls(("evict", "{}"), (SEARCH, '{"query": "calendar"}'))
    model = ScriptedModel(search("email", "select:evict"), reply, calls(("list_events", "{}")), says("1"), says("2"))
    request = asked(tools=(*TOOLS, tool_from_function(evict)))

    await run(advisor, model, request)
    assert [result.text for result in results(model, 3)] == ["today: lunch"]
    assert names(model)[3] == [SEARCH, "send_mail", "evict", "list_events"]

    await run(advisor, model, request)
    assert names(model)[4] == [SEARCH]


async def test_a_session_that_was_opened_anew_in_the_middle_of_a_turn_gets_what_the_turn_found() -> None:
    advisor = searcher()

    async def meddle() -> str:
        """Evict the session, and open it in another request."""
        advisor.evict_session("a")
        await ask(advisor, ScriptedModel(search("calendar"), says("Hi.")), request)
        return "done"

    request = asked(tools=(*TOOLS, tool_from_function(meddle)))
    model = ScriptedModel(search("email"), calls(("meddle", "{}")), says("1"), says("2"))

    await ask(advisor, model, request)
    await ask(advisor, model, request)

    assert names(model)[2:] == [[SEARCH, "list_events", "send_mail", "meddle"]] * 2


async def test_a_session_that_is_kept_on_disk_outlives_its_eviction_from_memory(tmp_path: Any) -> None:
    with SqliteSessionPersistence(tmp_path / "sessions.db") as persistence:
        advisor = searcher(sessions=SessionStore(LruEvictionStrategy(1), persistence))
        model = ScriptedModel(search("email"), says("1"), says("2"), says("3"))

        for conversation in ("a", "b", "a"):
            await ask(advisor, model, asked(conversation=conversation))

    assert names(model)[-1] == [SEARCH, "send_mail"]


# Accumulation and pins


async def test_without_accumulation_only_the_finds_of_the_last_searches_stay(run: Any) -> None:
    """The list becomes shorter with it, whatever that costs; a search that finds nothing takes nothing back."""
    kept: list[list[str]] = []

    class Noting(ScriptedModel):
        def _next(self, prompt: Prompt) -> Any:
            kept.append(list(advisor.sessions.get("a").discovered.tools))
            return super()._next(prompt)

    model = Noting(
        search("email"),
        search("select:list_events", "select:pay_bill"),
        search("zygote"),
        says("1"),
        search("select:convert_time"),
        says("2"),
    )
    advisor = searcher(accumulate=False, pins=("pay_bill",))
    for _ in range(2):
        await run(advisor, model, asked())

    last = ["pay_bill", "list_events"]
    assert kept == [["pay_bill"], ["pay_bill", "send_mail"], last, last, last, ["pay_bill", "convert_time"]]
    assert names(model) == [[SEARCH, *each] for each in kept]
    assert advisor.sessions.get("a").sent.now.breaks == 3


async def test_without_accumulation_a_tool_of_before_runs_all_the_same_by_its_name() -> None:
    """As any tool in reach does; what it is called for is lost again with the next search."""
    model = ScriptedModel(
        search("select:send_mail"), search("select:list_events"), calls(("send_mail", '{"to": "Ann"}')), says("Done.")
    )

    await ask(searcher(accumulate=False), model, asked())

    assert results(model, 3)[0].text == "sent '' to Ann"
    assert names(model) == [
        [SEARCH],
        [SEARCH, "send_mail"],
        [SEARCH, "list_events"],
        [SEARCH, "list_events", "send_mail"],
    ]


@pytest.mark.parametrize(
    ("endpoint", "mode", "instead"),
    [
        (Endpoint("openai", "gpt-5"), "fixed", "'append'"),
        (Endpoint("anthropic", "claude-sonnet-4-6"), "deferred", "'append'"),
        (Endpoint("openai-responses", "gpt-5.4"), "messages", "'append'"),
        (Endpoint("anthropic", "claude-opus-5-5", "azure"), "auto", "accumulate=True"),
    ],
)
async def test_without_accumulation_a_mode_that_cannot_take_tools_back_is_refused(
    endpoint: Endpoint, mode: str, instead: str
) -> None:
    model = ScriptedModel(says("never"))
    model.endpoint = endpoint

    with pytest.raises(BadSettingError, match=f"accumulate=False .* the mode .* use {instead}"):
        await ask(searcher(accumulate=False, mode=mode), model, asked())


def test_what_is_not_retained_is_forgotten_but_for_pins_and_running_calls() -> None:
    tools = DiscoveredTools(Budget(), clock=lambda: 0.0, pins=("pinned",))
    tools.add(dict.fromkeys(("pinned", "running", "old", "new"), 10))
    tools.begin_call("running")

    assert tools.retain({"new"}) == ("old",)
    assert list(tools.tools) == ["pinned", "running", "new"]


async def test_pins_are_shown_from_the_start() -> None:
    model = ScriptedModel(search("email"), says("Done."))

    await ask(searcher(pins=("pay_bill", "convert_time")), model, asked())

    assert names(model) == [[SEARCH, "convert_time", "pay_bill"], [SEARCH, "convert_time", "pay_bill", "send_mail"]]
