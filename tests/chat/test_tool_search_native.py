"""Tool search on the wire, through the official SDKs: tools that a provider defers and loads, or that are appended."""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.kit.examples import EXAMPLES, run_example
from tests.kit.loopback import Call, LoopbackApi, Reply
from tests.kit.scripted_model import ScriptedModel, calls, says
from toolsearch import Catalog, PassThrough, SessionOptions, Tool, ToolDefinition, ToolSearch, tool
from toolsearch.chat.advisor import ChatRequest, chain_of
from toolsearch.chat.memory import MemoryAdvisor, MessageWindowMemory
from toolsearch.chat.model import ChatModel, ChatOptions, Prompt
from toolsearch.chat.models.anthropic_messages import AnthropicModel
from toolsearch.chat.models.openai_chat import OpenAIChatModel
from toolsearch.chat.models.openai_responses import OpenAIResponsesModel
from toolsearch.chat.tool_search import ToolSearchAdvisor
from toolsearch.chat.tool_search_turn import SearchTurn, TurnSession
from toolsearch.errors import BadSettingError
from toolsearch.tools.function_tools import tool_from_function
from toolsearch.wire.answers import ChatResponse
from toolsearch.wire.capabilities import Endpoint
from toolsearch.wire.messages import Message, UserMessage

SEARCH = "toolSearchTool"
CALL = "callTool"
OPTIONS = SessionOptions(pass_through=PassThrough(max_tools=0))
QUESTION = UserMessage("Please help.")


def add_numbers(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def convert_time(hour: int) -> int:
    """Convert an hour from one time zone to another."""
    return hour + 1


def send_mail(to: str) -> str:
    """Send an email message."""
    return f"sent to {to}"


TOOLS = tuple(tool_from_function(function) for function in (send_mail, convert_time, add_numbers))
NAMES = sorted(each.name for each in TOOLS)


@pytest.fixture
async def anthropic(api: LoopbackApi) -> AsyncIterator[ChatModel]:
    model = AnthropicModel("claude-test", native_tool_search=True, base_url=api.url, api_key="k")
    yield model
    await model.close()


@pytest.fixture
async def responses(api: LoopbackApi) -> AsyncIterator[ChatModel]:
    model = OpenAIResponsesModel("gpt-5.4", native_tool_search=True, base_url=api.openai_url, api_key="k")
    yield model
    await model.close()


@pytest.fixture
async def chat(api: LoopbackApi) -> AsyncIterator[ChatModel]:
    model = OpenAIChatModel("gpt-5.4", base_url=api.openai_url, api_key="k")
    yield model
    await model.close()


@pytest.fixture
async def messages(api: LoopbackApi) -> AsyncIterator[ChatModel]:
    model = AnthropicModel("claude-fable-5-1", cloud="", base_url=api.url, api_key="k")
    yield model
    await model.close()


@pytest.fixture
def models(anthropic: ChatModel, responses: ChatModel, chat: ChatModel, messages: ChatModel) -> dict[str, ChatModel]:
    return {"anthropic": anthropic, "responses": responses, "chat": chat, "messages": messages}


@pytest.fixture
def run(run: Any) -> Any:
    async def ask(advisor: ToolSearchAdvisor, model: ChatModel, *messages: Message, **options: Any) -> ChatResponse:
        return await run(advisor, model, asked(*messages, **options))

    return ask


def asked(*messages: Message, tools: tuple[Tool, ...] = TOOLS, **options: Any) -> ChatRequest:
    return ChatRequest(Prompt(messages or (QUESTION,), ChatOptions(tools=tools, **options)), {"conversation_id": "a"})


def search(*queries: str) -> list[Call]:
    return [Call(SEARCH, {"query": query}) for query in queries]


def searcher(**options: Any) -> ToolSearchAdvisor:
    return ToolSearchAdvisor(**{"options": OPTIONS, "encoder": None, **options})


def tool_bytes(api: LoopbackApi) -> set[str]:
    """The different lists of tools on the wire."""
    return {json.dumps(body["tools"]) for body in api.bodies}


# Anthropic


async def test_anthropic_is_told_of_all_tools_as_deferred_and_loads_them_by_reference(
    api: LoopbackApi, anthropic: ChatModel, run: Any
) -> None:
    found = Reply(calls=[*search("time zones", "select:send_mail,add_numbers"), Call(SEARCH, {"query": ""})])
    api.script(Reply(calls=search("time zones")), found, Reply(calls=[Call("convert_time", {"hour": 7})]), Reply("8"))

    response = await run(searcher(pins=("add_numbers",)), anthropic)

    assert (response.text, api.refusals) == ("8", [])
    assert len(tool_bytes(api)) == 1  # so that the prompt cache holds
    tools = api.bodies[0]["tools"]
    assert [(each["name"], each.get("defer_loading", False)) for each in tools] == [
        (SEARCH, False), (CALL, False), ("add_numbers", False), ("convert_time", True), ("send_mail", True)
    ]  # fmt: skip
    [one] = api.bodies[1]["messages"][-1]["content"]
    assert one["content"] == [{"type": "tool_reference", "tool_name": "convert_time"}]
    again, several, failed = api.bodies[2]["messages"][-1]["content"]
    assert again["content"] == one["content"]
    assert several["content"] == [{"type": "tool_reference", "tool_name": "send_mail"}]  # the pin is loaded anyway
    assert (failed["is_error"], failed["content"][0]["type"]) == (True, "text")
    assert api.bodies[3]["messages"][-1]["content"][0]["content"] == [{"type": "text", "text": "8"}]


async def test_what_takes_long_with_many_deferred_tools_holds_up_nobody_and_is_done_once(
    api: LoopbackApi, anthropic: ChatModel, monkeypatch: pytest.MonkeyPatch, run: Any
) -> None:
    work = {(SearchTurn, "options"), (AnthropicModel, "_request"), (TurnSession, "shown_tools")}
    done: list[tuple[str, bool]] = []

    def noted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def note(*args: Any) -> Any:
            done.append((name, threading.current_thread() is threading.main_thread()))
            return function(*args)

        return note

    for owner, name in work:
        monkeypatch.setattr(owner, name, noted(name, getattr(owner, name)))
    api.script(Reply(calls=search("add numbers")), Reply(calls=search("send mail")), Reply("Done."))

    await run(searcher(), anthropic)

    assert Counter(done) == {("shown_tools", False): 1, ("options", False): 3, ("_request", False): 3}


async def test_anthropic_gets_the_same_tools_in_the_next_turn_if_the_history_holds_the_references(
    api: LoopbackApi, anthropic: ChatModel, run: Any
) -> None:
    api.script(Reply(calls=search("time zones")), Reply("Found."), Reply("Again."))
    advisor = searcher()

    first = await run(advisor, anthropic)
    await run(advisor, anthropic, QUESTION, *first.steps, first.message, UserMessage("And now?"))

    assert (len(tool_bytes(api)), api.refusals) == (1, [])
    reference = {"type": "tool_reference", "tool_name": "convert_time"}
    assert api.bodies[2]["messages"][2]["content"][0]["content"] == [reference]


async def test_tools_whose_references_a_memory_forgot_are_shown_in_the_next_turn(
    api: LoopbackApi, anthropic: ChatModel, responses: ChatModel, run: Any
) -> None:
    for model in (anthropic, responses):
        api.script(Reply(calls=search("time zones")), Reply("Found."), Reply(calls=search("email")), Reply("Done."))
        advisor = searcher()
        await run(advisor, model)
        await run(advisor, model)

    assert api.refusals == []
    shown = [
        [each.get("name") for each in body["tools"] if each["type"] != "tool_search" and "defer_loading" not in each]
        if "input" in body
        else [each["name"] for each in body["tools"] if "defer_loading" not in each]
        for body in api.bodies
    ]
    assert shown[:4] == [[SEARCH, CALL]] * 2 + [[SEARCH, CALL, "convert_time"]] * 2
    assert shown[4:] == [[CALL]] * 2 + [[CALL, "convert_time"]] * 2


async def test_a_forced_choice_of_a_deferred_tool_is_shown(api: LoopbackApi, anthropic: ChatModel) -> None:
    api.script(Reply("Done."))
    await chain_of([searcher()], anthropic).call(asked(tool_choice="send_mail"))
    shown = [each["name"] for each in api.bodies[0]["tools"] if "defer_loading" not in each]
    assert (shown, api.refusals) == ([SEARCH, CALL, "send_mail"], [])


async def test_a_deferred_list_does_not_depend_on_the_order_of_the_tools(
    api: LoopbackApi, anthropic: ChatModel
) -> None:
    api.script(Reply("1"), Reply("2"))
    for tools in (TOOLS, TOOLS[::-1]):
        await chain_of([searcher()], anthropic).call(asked(tools=tools))
    assert (len(tool_bytes(api)), api.tools[0]) == (1, [SEARCH, CALL, *NAMES])


async def test_in_append_mode_anthropic_gets_definitions_and_text(
    api: LoopbackApi, anthropic: ChatModel, run: Any
) -> None:
    api.script(Reply(calls=search("time zones")), Reply(calls=[Call("convert_time", {"hour": 7})]), Reply("8"))

    await run(searcher(mode="append"), anthropic)

    assert api.refusals == []
    assert api.tools == [[SEARCH], [SEARCH, "convert_time"], [SEARCH, "convert_time"]]
    assert not any("defer_loading" in each for body in api.bodies for each in body["tools"])
    [result] = api.bodies[1]["messages"][-1]["content"]
    assert "- convert_time(hour*) [likely, loaded]" in result["content"][0]["text"]


# OpenAI Responses


async def test_responses_search_natively_and_get_whole_definitions_in_the_output(
    api: LoopbackApi, responses: ChatModel, run: Any
) -> None:
    api.script(
        Reply(calls=search("time zones", "zygote"), thinking="Hm."),
        Reply(calls=[Call("convert_time", {"hour": 7})]),
        Reply("8"),
    )

    response = await run(searcher(), responses)

    assert (response.text, api.refusals) == ("8", [])
    assert (api.tools[0], len(tool_bytes(api))) == (["tool_search", CALL], 1)
    assert api.bodies[0]["tools"][0]["execution"] == "client"
    found, nothing, *_ = [item for item in api.bodies[1]["input"] if item["type"] == "tool_search_output"]
    assert [each["name"] for each in found["tools"]] == ["convert_time"]
    assert found["tools"][0]["parameters"]["required"] == ["hour"]
    assert nothing["tools"] == []
    assert api.bodies[2]["input"][-1]["output"] == "8"


# Overlaps and changes


@pytest.mark.parametrize("provider", ["anthropic", "responses"])
async def test_what_was_loaded_stays_for_the_turn_though_the_catalog_drops_and_changes_it(
    api: LoopbackApi, provider: str, run: Any, models: dict[str, ChatModel]
) -> None:
    """The conversation refers to it, and history that changes is refused."""
    catalog = Catalog(TOOLS)

    def deploy() -> str:
        """Deploy another version."""
        catalog.remove("send_mail")
        catalog.replace(ToolDefinition("convert_time", "Convert anything."))
        catalog.add(ToolDefinition("book_flight", "Book a flight."))
        return "deployed"

    api.script(
        Reply(calls=search("select:send_mail,convert_time")),
        Reply(calls=[Call("deploy")]),
        Reply(calls=[Call("send_mail", {"to": "Ann"}), *search("flight")]),
        Reply("Done."),
    )
    advisor = ToolSearchAdvisor(ToolSearch(catalog, encoder=None, options=OPTIONS))

    response = await run(advisor, models[provider], tools=(tool_from_function(deploy),))

    gone, found = response.steps[-1].results
    assert (response.text, api.refusals) == ("Done.", [])
    assert (gone.error_code, found.structured) == ("tool_gone", {"tools": ["book_flight"]})


@pytest.mark.parametrize("provider", ["anthropic", "responses"])
async def test_an_eviction_in_the_middle_of_a_turn_does_not_show_on_the_wire(
    api: LoopbackApi, provider: str, run: Any, models: dict[str, ChatModel]
) -> None:
    def evict() -> str:
        """Evict the session."""
        return str(advisor.evict_session("a"))

    advisor = searcher()
    api.script(
        Reply(calls=search("time zones", "select:evict")),
        Reply(calls=[Call("evict"), *search("email")]),
        Reply(calls=[Call("convert_time", {"hour": 7}), Call("send_mail", {"to": "Ann"})]),
        Reply("Done."),
    )

    response = await run(advisor, models[provider], tools=(*TOOLS, tool_from_function(evict)))

    assert [result.text for result in response.steps[-1].results] == ["8", "sent to Ann"]
    assert (len(tool_bytes(api)), api.refusals) == (1, [])


@pytest.mark.parametrize("provider", ["anthropic", "responses"])
@pytest.mark.parametrize("order", [200, 400], ids=["memory-outside", "memory-inside"])
@pytest.mark.parametrize("remembers_tools", [True, False], ids=["whole", "words-only"])
async def test_discovered_tools_outlive_the_turn_in_any_layout_of_memory(
    api: LoopbackApi, provider: str, order: int, remembers_tools: bool, models: dict[str, ChatModel]
) -> None:
    """A memory that keeps the answers of searches keeps the list of tools the same, too."""
    memory = MemoryAdvisor(MessageWindowMemory(), order=order, tool_messages=remembers_tools)
    advisor = searcher(conversation_history=order < 300)
    api.script(
        Reply(calls=search("time zones")),
        Reply("Found."),
        Reply(calls=[Call("convert_time", {"hour": 7}), *search("email")]),
        Reply("8"),
    )

    for text in ("Find.", "Call."):
        response = await chain_of([advisor, memory], models[provider]).call(asked(UserMessage(text)))

    assert (response.steps[1].results[0].text, response.text) == ("8", "8")
    assert api.refusals == []
    assert len(tool_bytes(api)) == (1 if remembers_tools else 2)
    assert ("convert_time" in json.dumps(api.bodies[2])) is True
    shown = [each.get("name") for each in api.bodies[2]["tools"] if not each.get("defer_loading")]
    assert ("convert_time" in shown) is not remembers_tools


@pytest.mark.parametrize("provider", ["anthropic", "responses", "chat", "messages"])
async def test_requests_of_one_session_at_once_each_keep_their_own_conversation(
    api: LoopbackApi, provider: str, run: Any, models: dict[str, ChatModel]
) -> None:
    def answer(body: dict[str, Any]) -> Reply:
        said = json.dumps(body)
        name = next(name for name in NAMES if f"Use {name}." in said)
        has_searched = any(key in said for key in ("tool_use_id", "tool_call_id", "call_id"))
        return Reply(f"Found {name}.") if has_searched else Reply(thinking="Hm.", calls=search(f"select:{name}"))

    api.answer = answer
    advisor, model = searcher(), models[provider]

    told = await asyncio.gather(*(run(advisor, model, UserMessage(f"Use {name}.")) for name in NAMES * 3))

    assert [response.text for response in told] == [f"Found {name}." for name in NAMES * 3]
    assert api.refusals == []


# Where it is not native


async def test_chat_completions_get_what_was_found_appended(api: LoopbackApi, chat: ChatModel, run: Any) -> None:
    api.script(
        Reply(calls=search("select:send_mail", "time zones")),
        Reply(calls=[Call("convert_time", {"hour": 7}), Call("frobnicate"), *search("add numbers")]),
        Reply("8"),
    )

    response = await run(searcher(), chat)

    assert (response.text, api.refusals) == ("8", [])
    assert api.tools == [
        [SEARCH], [SEARCH, "send_mail", "convert_time"], [SEARCH, "send_mail", "convert_time", "add_numbers"]
    ]  # fmt: skip
    told, unknown, _ = [message["content"] for message in api.bodies[2]["messages"][-3:]]
    assert told == "8"
    assert unknown.startswith("Error: no tool named 'frobnicate'")


async def test_a_mode_that_the_model_does_not_take_is_refused_before_it_is_asked(
    api: LoopbackApi, chat: ChatModel
) -> None:
    with pytest.raises(BadSettingError, match="does not take the exposure 'deferred'; use one of append, fixed"):
        await chain_of([searcher(mode="deferred")], chat).call(asked())
    assert api.requests == []


async def test_of_a_catalog_too_large_to_be_deferred_the_rest_is_run_by_the_call_tool_and_a_note_says_so() -> None:
    class Native(ScriptedModel):
        endpoint = Endpoint("anthropic", "claude-haiku-4-5")
        native_tool_search = True

    @tool
    def tool_10000() -> str:
        """Say what number this is."""
        return "10000"

    tools = [*(ToolDefinition(f"tool_{number:05}") for number in range(10_000)), tool_from_function(tool_10000)]
    advisor = ToolSearchAdvisor(ToolSearch(Catalog(tools), strategy="keyword"))
    call = {"name": "tool_10000", "arguments": {}}
    model = Native(calls((SEARCH, '{"query": "select:tool_10000"}')), calls((CALL, json.dumps(call))), says("Done."))

    response = await chain_of([advisor], model).call(asked(tools=()))

    assert [[tool.name for tool in prompt.options.tools] for prompt in model.prompts] == [[SEARCH, CALL]] * 3
    assert {len(prompt.options.deferred_tools) for prompt in model.prompts} == {10_000}
    assert [(result.name, result.text) for result in response.steps[-1].results] == [("tool_10000", "10000")]
    assert len(advisor.notes) == 1
    assert "10,000 deferred tools" in advisor.notes[0]


async def test_a_small_catalog_is_sent_whole_to_every_provider(
    api: LoopbackApi, anthropic: ChatModel, responses: ChatModel, chat: ChatModel, run: Callable[..., Any]
) -> None:
    """Where the list must not change, the search tool and the call tool are there for tools that come later."""
    for model in (anthropic, responses, chat):
        api.script(Reply("Hello."))
        await run(ToolSearchAdvisor(), model)
    own = [SEARCH, CALL]
    assert (api.tools, api.refusals) == ([[*own, *NAMES], [*own, *NAMES], NAMES], [])


# The example with 28 tools


@pytest.mark.usefixtures("processes")
def test_the_weather_example_answers_with_three_tools_found_and_under_half_of_the_tokens() -> None:
    lines = run_example(str(EXAMPLES / "weather_28_tools.py"), OPENAI_API_KEY="", ANTHROPIC_API_KEY="").splitlines()

    shown, searched = ([int(figure.replace(",", "")) for figure in line.split()[3:]] for line in lines[3:5])
    assert (shown[0], searched[0]) == (3, 4)  # requests: the search is one more
    assert (shown[3], searched[3]) == (shown[1] + shown[2], searched[1] + searched[2])
    assert searched[3] < shown[3] / 2
    assert lines[-1].endswith("is open now.")


def test_the_weather_example_asks_a_real_model_where_there_is_a_key(api: LoopbackApi) -> None:
    api.script(Reply("A raincoat."), Reply(calls=search("current weather")), Reply("A raincoat."))

    said = run_example(
        str(EXAMPLES / "weather_28_tools.py"), OPENAI_API_KEY="k", OPENAI_BASE_URL=api.openai_url, OPENAI_MODEL="m"
    )

    assert said.endswith("A raincoat.\n")
    assert (len(api.tools[0]), api.tools[1], api.tools[2][:2]) == (28, [SEARCH], [SEARCH, "weather"])
    assert api.refusals == []
