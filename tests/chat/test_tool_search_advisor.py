"""Tool search in the chat loop: what is found is shown and can be called, round after round."""

import json
from dataclasses import replace
from typing import Any

import pytest

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
    CallLimits,
    Catalog,
    SessionStore,
    Tool,
    ToolCallingManager,
    ToolDefinition,
    ToolSearch,
    tool,
)
from toolsearch.chat.client import ChatClient
from toolsearch.chat.tool_calling import ToolCallingAdvisor
from toolsearch.chat.tool_search import DEFAULT_SYSTEM_SUFFIX, ToolSearchAdvisor
from toolsearch.errors import BadSettingError, BadToolError, DuplicateToolError, UnknownToolError
from toolsearch.tools.function_tools import tool_from_function
from toolsearch.wire.formats import render_definition
from toolsearch.wire.messages import SystemMessage

# Finding and calling


async def test_what_a_search_finds_is_shown_in_the_next_request_and_can_be_called(run: Any) -> None:
    model = ScriptedModel(search("convert time zones", limit=1), calls(("convert_time", '{"hour": 7}')), says("8"))

    response = await run(searcher(), model, asked())

    assert response.text == "8"
    assert names(model) == [[SEARCH], [SEARCH, "convert_time"], [SEARCH, "convert_time"]]
    assert "- convert_time(hour*) [fits, loaded]" in results(model, 1)[0].text
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


@pytest.mark.parametrize(("model_limit", "found"), [(None, 2), (1, 1), (4, 4), (99, 10)])
async def test_the_models_limit_goes_before_the_advisors_and_is_clamped(model_limit: int | None, found: int) -> None:
    tools = tuple(Tool(ToolDefinition(f"email_{number:02}", "Send an email message.")) for number in range(12))
    model = ScriptedModel(search("email", **({"limit": model_limit} if model_limit else {})), says("Done."))

    await ask(searcher(limit=2), model, asked(tools=tools))

    assert results(model, 1)[0].text.count("\n- email_") == found
    assert len(names(model)[1]) == 1 + min(found, 3)


async def test_a_higher_limit_of_the_advisor_raises_the_bound_too() -> None:
    tools = tuple(Tool(ToolDefinition(f"email_{number:02}", "Send an email message.")) for number in range(14))
    model = ScriptedModel(search("email"), says("Done."))

    await ask(searcher(limit=12), model, asked(tools=tools))

    assert results(model, 1)[0].text.count("\n- email_") == 12


# The prompt


async def test_the_suffix_is_appended_to_the_system_message_once_a_turn(run: Any) -> None:
    model = ScriptedModel(search("email"), says("Done."))

    await run(searcher(system_suffix="Search."), model, asked(SystemMessage("Be brief."), QUESTION))

    assert [prompt.messages[:2] for prompt in model.prompts] == [(SystemMessage("Be brief.\n\nSearch."), QUESTION)] * 2


async def test_without_a_system_message_the_suffix_becomes_one() -> None:
    model = ScriptedModel(says("Done."))
    await ask(searcher(), model, asked())
    assert model.sent == [[SystemMessage(DEFAULT_SYSTEM_SUFFIX), QUESTION]]


async def test_a_system_message_in_the_midst_of_a_conversation_is_left_as_it_was_sent() -> None:
    later = (QUESTION, SystemMessage("It is Monday."), QUESTION)
    model = ScriptedModel(says("1"), says("2"))
    advisor = searcher(system_suffix="Search.")
    await ask(advisor, model, asked(QUESTION))
    await ask(advisor, model, asked(*later))
    assert model.sent == [[SystemMessage("Search."), QUESTION], [SystemMessage("Search."), *later]]


async def test_an_empty_suffix_leaves_the_messages_as_they_are() -> None:
    model = ScriptedModel(says("Done."))
    await ask(searcher(system_suffix=""), model, asked())
    assert model.sent == [[QUESTION]]


async def test_a_small_catalog_is_shown_whole_by_name_and_without_a_suffix(run: Any) -> None:
    model = ScriptedModel(calls(("list_events", "{}")), says("Lunch."))

    await run(ToolSearchAdvisor(), model, asked())

    by_name = tuple(sorted(TOOLS, key=lambda tool: tool.name))
    assert [prompt.options.tools for prompt in model.prompts] == [by_name] * 2
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
        ({"mode": "magic"}, "'magic'; use one of auto, messages, deferred, fixed, append"),
        ({"mode": "native"}, "'native' is 'messages' or 'deferred' now"),
        ({"limit": 0}, "limit must be 1 or more"),
        ({"session_id_key": " "}, "session_id_key"),
        ({"engine": ToolSearch(Catalog()), "strategy": "regex"}, "options of the engine"),
        ({"engine": ToolSearch(Catalog()), "reader": None}, "options of the engine"),
        ({"engine": ToolSearch(Catalog()), "requests": False}, "options of the engine"),
        ({"engine": ToolSearch(Catalog()), "sessions": SessionStore()}, "options of the engine"),
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
