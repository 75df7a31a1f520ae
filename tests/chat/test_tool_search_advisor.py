"""Tool search in the chat loop: what a model is shown from round to round and turn to turn, and what it can call."""

import asyncio
import gc
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.kit.scripted_model import ScriptedModel, calls, says
from toolsearch import (
    AlwaysEvictStrategy,
    Budget,
    CallLimits,
    Catalog,
    LruEvictionStrategy,
    PassThrough,
    SessionOptions,
    SessionStore,
    SqliteSessionPersistence,
    Tool,
    ToolCallingManager,
    ToolDefinition,
    ToolSearch,
    tool,
)
from toolsearch.chat.advisor import ChatRequest, chain_of
from toolsearch.chat.client import ChatClient
from toolsearch.chat.model import ChatOptions, Prompt
from toolsearch.chat.tool_calling import ToolCallingAdvisor
from toolsearch.chat.tool_search import ToolSearchAdvisor
from toolsearch.chat.tool_search_prompt import DEFAULT_SYSTEM_SUFFIX
from toolsearch.discovery.discovered import DiscoveredTools
from toolsearch.errors import BadSettingError, BadToolError, DuplicateToolError, UnknownToolError
from toolsearch.tools.decorator import tool_from_function
from toolsearch.wire.answers import ChatResponse
from toolsearch.wire.formats import render_definition
from toolsearch.wire.messages import SystemMessage, ToolMessage, UserMessage
from toolsearch_indexes.encoders.hashing import HashingEncoder
from toolsearch_indexes.semantic import FIELDS

SEARCH = "toolSearchTool"
ALWAYS_SEARCH = PassThrough(max_tools=0)
OPTIONS = SessionOptions(pass_through=ALWAYS_SEARCH)
QUESTION = UserMessage("Please help.")


def send_mail(to: str, text: str = "") -> str:
    """Send an email message."""
    return f"sent {text!r} to {to}"


def list_events(day: str = "today") -> str:
    """List the events of a calendar on a day."""
    return f"{day}: lunch"


async def convert_time(hour: int) -> int:
    """Convert an hour from one time zone to another."""
    return hour + 1


def pay_bill(amount: float = 0) -> str:
    """Pay a bill with money."""
    raise RuntimeError("no money left")


FUNCTIONS = (send_mail, list_events, convert_time, pay_bill)
TOOLS = tuple(tool_from_function(function) for function in FUNCTIONS)


def asked(
    *messages: Any, tools: tuple[Tool, ...] = TOOLS, conversation: str | None = "a", **options: Any
) -> ChatRequest:
    context = {} if conversation is None else {"conversation_id": conversation}
    return ChatRequest(Prompt(messages or (QUESTION,), ChatOptions(tools=tools, **options)), context)


def search(*queries: str, **more: Any) -> ChatResponse:
    return calls(*((SEARCH, json.dumps({"query": query, **more})) for query in queries))


def searcher(**options: Any) -> ToolSearchAdvisor:
    """Search the request's own tools, however few they are."""
    return ToolSearchAdvisor(**{"options": OPTIONS, "encoder": None, **options})


def names(model: ScriptedModel) -> list[list[str]]:
    """The tools that each request showed."""
    return [[each.name for each in prompt.options.tools] for prompt in model.prompts]


def results(model: ScriptedModel, number: int) -> list[Any]:
    """The results that request *number* ended with."""
    message = model.prompts[number].messages[-1]
    assert isinstance(message, ToolMessage)
    return list(message.results)


async def ask(advisor: ToolSearchAdvisor, model: ScriptedModel, request: ChatRequest) -> ChatResponse:
    return await chain_of([advisor], model).call(request)


# Finding and calling


async def test_what_a_search_finds_is_shown_in_the_next_request_and_can_be_called(run: Any) -> None:
    model = ScriptedModel(search("convert time zones", limit=1), calls(("convert_time", '{"hour": 7}')), says("8"))

    response = await run(searcher(), model, asked())

    assert response.text == "8"
    assert names(model) == [[SEARCH], [SEARCH, "convert_time"], [SEARCH, "convert_time"]]
    assert "- convert_time: Convert an hour" in results(model, 1)[0].text
    assert results(model, 1)[0].structured == {"tools": ["convert_time"]}
    assert results(model, 2)[0].text == "8"


async def test_the_catalog_of_an_engine_is_searched_and_the_requests_own_tools_are_always_shown(run: Any) -> None:
    engine = ToolSearch(Catalog.from_functions(FUNCTIONS[1:]), options=OPTIONS)
    model = ScriptedModel(search("select:convert_time"), calls(("send_mail", '{"to": "Ann"}')), says("Done."))

    await run(ToolSearchAdvisor(engine), model, asked(tools=TOOLS[:1]))

    assert names(model) == [[SEARCH, "send_mail"]] + [[SEARCH, "send_mail", "convert_time"]] * 2
    assert results(model, 2)[0].text == "sent '' to Ann"


async def test_parallel_searches_of_one_reply_all_count_in_the_order_of_the_calls(run: Any) -> None:
    model = ScriptedModel(search("select:pay_bill", "email", "calendar events"), says("Done."))

    await run(searcher(), model, asked())

    assert names(model)[1] == [SEARCH, "pay_bill", "send_mail", "list_events"]
    assert [result.is_error for result in results(model, 1)] == [False] * 3


async def test_a_tool_that_fails_costs_the_searches_and_calls_beside_it_nothing(run: Any) -> None:
    reply = calls(("pay_bill", "{}"), (SEARCH, '{"query": ""}'), (SEARCH, '{"query": "email"}'), ("list_events", "{}"))
    model = ScriptedModel(search("select:pay_bill,list_events"), reply, says("Sorry."))

    response = await run(searcher(), model, asked())

    assert response.text == "Sorry."
    texts = [(result.is_error, result.text) for result in results(model, 2)]
    assert [is_error for is_error, _ in texts] == [True, True, False, False]
    assert "no money left" in texts[0][1]
    assert texts[3][1] == "today: lunch"
    assert names(model)[2] == [SEARCH, "pay_bill", "list_events", "send_mail"]


async def test_a_hallucinated_name_is_answered_with_near_names_and_the_turn_goes_on(run: Any) -> None:
    model = ScriptedModel(calls(("send_email", "{}"), ("frobnicate", "{}")), says("Hm."))

    response = await run(searcher(), model, asked())

    assert response.text == "Hm."
    assert [result.error_code for result in results(model, 1)] == ["unknown_tool"] * 2
    assert "did you mean send_mail" in results(model, 1)[0].text
    assert names(model) == [[SEARCH]] * 2


async def test_a_tool_in_reach_that_was_not_searched_for_is_expanded_and_run(run: Any) -> None:
    model = ScriptedModel(calls(("list_events", "{}")), says("Lunch."))

    await run(searcher(), model, asked())

    assert results(model, 1)[0].text == "today: lunch"
    assert names(model)[1] == [SEARCH, "list_events"]


async def test_a_setting_refuses_what_was_not_searched_for(run: Any) -> None:
    model = ScriptedModel(calls(("list_events", "{}")), says("Hm."))

    await run(searcher(options=replace(OPTIONS, expand_undiscovered=False)), model, asked())

    assert results(model, 1)[0].error_code == "undiscovered_tool"
    assert names(model)[1] == [SEARCH]


async def test_a_tool_choice_that_is_not_shown_yet_is_shown() -> None:
    model = ScriptedModel(says("Done."))

    await ask(searcher(), model, asked(tool_choice="pay_bill"))

    assert names(model) == [[SEARCH, "pay_bill"]]


async def test_every_request_runs_its_own_tools_though_the_index_is_shared() -> None:
    """Two users whose tools differ in nothing but whose account they work on."""

    def tools_of(user: str) -> tuple[Tool, ...]:
        def read_inbox() -> str:
            """Read the inbox."""
            return f"mail of {user}"

        return (tool_from_function(read_inbox),)

    advisor = searcher()
    for user in ("ann", "bob"):
        model = ScriptedModel(calls(("read_inbox", "{}")), says("Read."))
        await ask(advisor, model, asked(tools=tools_of(user), conversation=user))
        assert results(model, 1)[0].text == f"mail of {user}"


# Limits of a search


@pytest.mark.parametrize(("model_limit", "found"), [(None, 2), (1, 1), (3, 3), (99, 10)])
async def test_the_models_limit_goes_before_the_advisors_and_is_clamped(model_limit: int | None, found: int) -> None:
    tools = tuple(Tool(ToolDefinition(f"email_{number:02}", "Send an email message.")) for number in range(12))
    model = ScriptedModel(search("email", **({"limit": model_limit} if model_limit else {})), says("Done."))

    await ask(searcher(limit=2), model, asked(tools=tools))

    assert len(names(model)[1]) == 1 + found


async def test_a_higher_limit_of_the_advisor_raises_the_bound_too() -> None:
    tools = tuple(Tool(ToolDefinition(f"email_{number:02}", "Send an email message.")) for number in range(14))
    model = ScriptedModel(search("email"), says("Done."))

    await ask(searcher(limit=12), model, asked(tools=tools))

    assert len(names(model)[1]) == 1 + 12


# The prompt


async def test_the_suffix_is_appended_to_the_system_message_once_a_turn(run: Any) -> None:
    model = ScriptedModel(search("email"), says("Done."))

    await run(searcher(system_suffix="Search."), model, asked(SystemMessage("Be brief."), QUESTION))

    assert [prompt.messages[:2] for prompt in model.prompts] == [(SystemMessage("Be brief.\n\nSearch."), QUESTION)] * 2


async def test_without_a_system_message_the_suffix_becomes_one() -> None:
    model = ScriptedModel(says("Done."))
    await ask(searcher(), model, asked())
    assert model.sent == [[SystemMessage(DEFAULT_SYSTEM_SUFFIX), QUESTION]]


async def test_an_empty_suffix_leaves_the_messages_as_they_are() -> None:
    model = ScriptedModel(says("Done."))
    await ask(searcher(system_suffix=""), model, asked())
    assert model.sent == [[QUESTION]]


async def test_a_small_catalog_is_shown_whole_in_its_own_order_and_without_a_suffix(run: Any) -> None:
    model = ScriptedModel(calls(("list_events", "{}")), says("Lunch."))

    await run(ToolSearchAdvisor(), model, asked())

    assert [prompt.options.tools for prompt in model.prompts] == [TOOLS] * 2
    assert model.sent[0] == [QUESTION]
    assert results(model, 1)[0].text == "today: lunch"


async def test_tool_lists_are_byte_identical_from_turn_to_turn_when_nothing_was_found(run: Any) -> None:
    advisor = searcher()
    model = ScriptedModel(search("select:pay_bill,send_mail"), says("1"), search("zygote"), says("2"), says("3"))
    for _ in range(3):
        await run(advisor, model, asked())

    wire = [
        json.dumps([render_definition(each.definition, "openai") for each in prompt.options.tools])
        for prompt in model.prompts
    ]
    assert names(model)[1] == [SEARCH, "pay_bill", "send_mail"]
    assert len(set(wire[1:])) == 1
    assert wire[1].startswith(wire[0][:-1])  # found tools are appended, so that the cached prefix stays


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


async def test_between_turns_a_session_is_brought_back_to_its_budget() -> None:
    advisor = searcher(budget=Budget(max_tools=2, low_water=0.5))
    model = ScriptedModel(search("select:send_mail,list_events,pay_bill"), says("1"), says("2"), says("3"))
    for _ in range(3):
        await ask(advisor, model, asked())

    assert [len(tools) - 1 for tools in names(model)] == [0, 3, 3, 1]  # what this turn found, it may use in the next


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


# Changes of what is searched


@pytest.fixture
def indexed(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The names of the tools in each engine that was made."""
    made: list[list[str]] = []

    def init(self: ToolSearch, catalog: Catalog, **more: Any) -> None:
        made.append(catalog.names())
        original(self, catalog, **more)

    original = ToolSearch.__init__
    monkeypatch.setattr(ToolSearch, "__init__", init)
    return made


async def test_the_same_tools_are_indexed_once_for_all_sessions_in_any_order(indexed: list[list[str]]) -> None:
    advisor, model = searcher(), ScriptedModel(*[says("Done.")] * 3)

    await ask(advisor, model, asked(conversation="a"))
    await ask(advisor, model, asked(conversation="b"))
    await ask(advisor, model, asked(conversation="a", tools=TOOLS[::-1]))

    assert len(indexed) == 1


async def test_concurrent_first_requests_index_once(indexed: list[list[str]]) -> None:
    advisor = searcher()
    requests = [asked(conversation=f"c{number}") for number in range(8)]

    await asyncio.gather(*(ask(advisor, ScriptedModel(says("Done.")), request) for request in requests))

    assert len(indexed) == 1


async def test_changed_tools_of_a_lone_session_update_its_index(indexed: list[list[str]]) -> None:
    renamed = Tool(replace(TOOLS[0].definition, description="Post a parcel."), TOOLS[0].callback)
    added = Tool(ToolDefinition("book_flight", "Book a flight."))
    advisor = searcher()
    model = ScriptedModel(
        search("email", "events"), says("1"), search("parcel", "flight", "calendar events"), says("2")
    )

    await ask(advisor, model, asked())
    gc.collect()  # the first turn is over once nobody holds it
    await ask(advisor, model, asked(tools=(renamed, *TOOLS[2:], added)))

    assert len(indexed) == 1
    assert names(model)[2:] == [[SEARCH, "send_mail"], [SEARCH, "send_mail", "book_flight"]]
    assert model.prompts[2].options.tools[1] is renamed


async def test_changed_tools_of_one_session_leave_the_index_of_the_others_alone(indexed: list[list[str]]) -> None:
    advisor = searcher()
    model = ScriptedModel(says("1"), says("2"), says("3"), search("email"), says("4"))

    await ask(advisor, model, asked(conversation="a"))
    await ask(advisor, model, asked(conversation="b"))
    await ask(advisor, model, asked(conversation="a", tools=TOOLS[1:]))
    await ask(advisor, model, asked(conversation="b"))

    assert list(map(len, indexed)) == [4, 3]
    assert names(model)[-1] == [SEARCH, "send_mail"]


async def test_tools_that_change_during_a_turn_of_the_same_session_leave_that_turn_alone() -> None:
    advisor = searcher()

    async def meddle() -> str:
        """Ask with fewer tools, in the same session."""
        await ask(advisor, ScriptedModel(says("Hi.")), asked(tools=TOOLS[1:]))
        return "done"

    model = ScriptedModel(calls(("meddle", "{}")), search("email"), calls(("meddle", "{}")), says("1"))
    await ask(advisor, model, asked(tools=(*TOOLS, tool_from_function(meddle))))

    assert names(model)[2] == [SEARCH, "send_mail"]  # which the other request did not bring along
    assert results(model, 3)[0].text == "done"


async def test_equal_texts_of_different_sets_of_tools_are_embedded_once() -> None:
    class Counting(HashingEncoder):
        embedded = 0

        def encode_documents(self, texts: Any) -> Any:
            Counting.embedded += len(texts)
            return super().encode_documents(texts)

    advisor, model = searcher(encoder=Counting()), ScriptedModel(says("1"), says("2"))

    await ask(advisor, model, asked(conversation="a"))
    await ask(advisor, model, asked(conversation="b", tools=TOOLS[1:]))

    assert Counting.embedded == FIELDS * len(TOOLS)  # no two of the fields are equal


async def test_a_catalog_that_changes_in_the_middle_of_a_turn_is_followed(run: Any) -> None:
    catalog = Catalog.from_functions(FUNCTIONS)

    def deploy() -> str:
        """Deploy another version."""
        catalog.remove("send_mail")
        catalog.replace(ToolDefinition("list_events", "List meetings."))
        catalog.add(ToolDefinition("book_flight", "Book a flight."))
        return "deployed"

    advisor = ToolSearchAdvisor(ToolSearch(catalog, encoder=None, options=OPTIONS))
    model = ScriptedModel(
        search("select:send_mail,list_events"),
        calls(("deploy", "{}")),
        calls(("send_mail", '{"to": "Ann"}'), (SEARCH, '{"query": "flight"}')),
        says("Done."),
    )

    await run(advisor, model, asked(tools=(tool_from_function(deploy),)))

    assert names(model)[1:] == [
        [SEARCH, "deploy", "send_mail", "list_events"],
        [SEARCH, "deploy", "list_events"],
        [SEARCH, "deploy", "list_events", "book_flight"],
    ]
    assert model.prompts[2].options.tools[2].definition.description == "List meetings."
    assert [result.is_error for result in results(model, 3)] == [True, False]


# Accumulation and pins


async def test_without_accumulation_only_the_finds_of_the_last_searches_stay(run: Any) -> None:
    model = ScriptedModel(
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

    last = [SEARCH, "pay_bill", "list_events"]
    assert names(model) == [
        [SEARCH, "pay_bill"], [SEARCH, "pay_bill", "send_mail"], last, last, last, [SEARCH, "pay_bill", "convert_time"]
    ]  # fmt: skip


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


# What is refused


async def test_a_pin_that_is_no_tool_is_refused() -> None:
    with pytest.raises(UnknownToolError, match="pay_bil'; did you mean pay_bill"):
        await ask(searcher(pins=("pay_bil",)), ScriptedModel(), asked())


async def test_a_tool_of_the_search_tools_name_is_refused_wherever_it_comes_from() -> None:
    clash = Tool(ToolDefinition(SEARCH), source="function mine.search")
    with pytest.raises(DuplicateToolError, match=r"tool search itself, one from function mine\.search"):
        await ask(searcher(), ScriptedModel(), asked(tools=(clash,)))
    with pytest.raises(BadToolError, match=SEARCH):
        Catalog([clash])


async def test_a_tool_of_the_request_and_another_of_the_catalog_cannot_share_a_name() -> None:
    advisor = ToolSearchAdvisor(ToolSearch(Catalog(TOOLS), encoder=None, options=OPTIONS))
    other = Tool(ToolDefinition("send_mail", "Post a letter."), source="the post")

    with pytest.raises(DuplicateToolError, match=r"'send_mail': one from .*, one from the post"):
        await ask(advisor, ScriptedModel(), asked(tools=(other,)))

    model = ScriptedModel(search("email"), says("Done."))
    await ask(advisor, model, asked(tools=TOOLS[:1]))
    assert names(model) == [[SEARCH, "send_mail"]] * 2  # the same tool twice is no clash


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "magic"}, "'magic'; use one of auto, native, append"),
        ({"limit": 0}, "limit must be 1 or more"),
        ({"session_id_key": " "}, "session_id_key"),
        ({"engine": ToolSearch(Catalog()), "strategy": "regex"}, "the engine's"),
        ({"engine": ToolSearch(Catalog()), "sessions": SessionStore()}, "the engine's"),
    ],
)
def test_options_that_cannot_be_used_are_refused_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadSettingError, match=message):
        ToolSearchAdvisor(**options)


def test_by_default_it_stands_where_the_plain_advisor_does() -> None:
    assert ToolSearchAdvisor().order == ToolCallingAdvisor().order == 300


# Beside the rest of the loop


async def test_a_direct_return_among_discovered_tools_ends_the_turn(run: Any) -> None:
    @tool(return_direct=True)
    def ticket() -> str:
        """Open a support ticket."""
        return "Ticket 7"

    model = ScriptedModel(search("ticket"), calls(("ticket", "{}")))

    response = await run(searcher(), model, asked(tools=(*TOOLS, tool_from_function(ticket))))

    assert (response.text, response.finish_reason) == ("Ticket 7", "return_direct")


async def test_searches_count_towards_the_limits_of_a_turn(run: Any) -> None:
    model = ScriptedModel(search("email", "calendar"), says("Done."))

    await run(searcher(manager=ToolCallingManager(limits=CallLimits(per_tool=1))), model, asked())

    assert [result.error_code for result in results(model, 1)] == [None, "call_limit"]
    assert names(model)[1] == [SEARCH, "send_mail"]


async def test_without_execution_a_search_is_the_callers_to_run(run: Any) -> None:
    model = ScriptedModel(search("email"))

    response = await run(searcher(eligibility=lambda _: False), model, asked())

    assert [call.name for call in response.message.tool_calls] == [SEARCH]
    assert len(model.prompts) == 1


async def test_a_session_tells_what_the_search_saved() -> None:
    engine = ToolSearch(Catalog(TOOLS), options=OPTIONS)
    model = ScriptedModel(search("email"), calls(("send_mail", '{"to": "Ann"}')), says("Done."))

    await ask(ToolSearchAdvisor(engine), model, asked(tools=()))

    session = engine.session("a")
    assert (session.savings().requests, session.savings().search_rounds) == (3, 1)
    assert (session.state.counters.calls, session.state.counters.failed_calls) == (1, 0)


def test_a_client_takes_it_in_place_of_its_own_tool_loop_also_without_an_event_loop() -> None:
    """Each synchronous request runs on an event loop of its own; what was discovered stays."""
    model = ScriptedModel(search("email"), calls(("send_mail", '{"to": "Ann"}')), says("Done."), says("Yes."))
    client = ChatClient(model, tools=FUNCTIONS, advisors=[searcher()]).prompt("Write to Ann.")

    assert client.context(conversation_id="a").call_sync().text == "Done."
    assert client.context(conversation_id="a").call_sync().text == "Yes."

    assert results(model, 2)[0].text == "sent '' to Ann"
    assert names(model)[-1] == [SEARCH, "send_mail"]
