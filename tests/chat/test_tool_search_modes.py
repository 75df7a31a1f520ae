"""Each way in which found tools reach a model, through the official SDKs, against APIs that are as strict as theirs."""

import json
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.kit.loopback import Call, LoopbackApi, Reply, available_tools
from tests.kit.tool_search import OPTIONS, TOOLS
from toolsearch import Catalog, ToolDefinition, ToolSearch
from toolsearch.chat import (
    AnthropicModel,
    AssistantMessage,
    ChatClient,
    ChatModel,
    ChatOptions,
    ChatResponse,
    MemoryAdvisor,
    MessageWindowMemory,
    OpenAIChatModel,
    OpenAIResponsesModel,
    ToolChangeMessage,
    ToolMessage,
    ToolSearchAdvisor,
    UserMessage,
)

SEARCH, CALL = "toolSearchTool", "callTool"

# The model, the mode, and whether the list of tools stays as it is.
ROWS = [
    ("claude-fable-5-1", "messages", True),
    ("claude-fable-5-1", "deferred", True),
    ("claude-fable-5-1", "fixed", True),
    ("claude-haiku-4-5", "deferred", True),
    ("claude-haiku-4-5", "append", False),
    ("claude-unknown", "fixed", True),
    ("gpt-5.4", "messages", True),
    ("gpt-5.4", "deferred", True),
    ("gpt-5.4", "fixed", True),
    ("gpt-5.4", "append", False),
    ("chat:gpt-4.1", "fixed", True),
    ("chat:gpt-4.1", "append", False),
]


@pytest.fixture
async def open_model(api: LoopbackApi) -> AsyncIterator[Callable[[str], ChatModel]]:
    opened: list[Any] = []

    def model(name: str) -> ChatModel:
        """At the provider's own address, as far as the model knows."""
        if name.startswith("chat:"):
            opened.append(OpenAIChatModel(name[5:], base_url=api.openai_url, api_key="k", cloud=""))
        elif name.startswith("claude"):
            opened.append(AnthropicModel(name, base_url=api.url, api_key="k", cloud=""))
        else:
            opened.append(OpenAIResponsesModel(name, base_url=api.openai_url, api_key="k", cloud=""))
        return opened[-1]  # type: ignore[no-any-return]

    yield model
    for each in opened:
        await each.close()


def searcher(mode: Any = "auto", **options: Any) -> ToolSearchAdvisor:
    return ToolSearchAdvisor(**{"options": OPTIONS, "encoder": None, "mode": mode, **options})


def client_of(model: ChatModel, advisor: ToolSearchAdvisor, **memory: Any) -> ChatClient:
    remembering = MemoryAdvisor(MessageWindowMemory(max_messages=memory.pop("max_messages", 100)), **memory)
    return ChatClient(model, tools=TOOLS, advisors=[advisor, remembering], system="Be brief.")


async def say(client: ChatClient, text: str, **context: Any) -> ChatResponse:
    return await client.prompt(text).context({"conversation_id": "a", **context}).call()


def search(query: str) -> Call:
    return Call(SEARCH, {"query": query})


def run(api: LoopbackApi, name: str, arguments: dict[str, Any]) -> Call:
    """A call of the tool, by its name if the model was sent that."""
    if name in available_tools(api.requests[-1]):
        return Call(name, arguments)
    return Call(CALL, {"name": name, "arguments": arguments})


def two_turns(api: LoopbackApi) -> Callable[[dict[str, Any]], Reply]:
    """Find and call one tool, and in the next turn another, and the first one again."""

    def replies() -> Any:
        yield Reply(thinking="I need mail.", calls=[search("email message")])
        yield Reply(thinking="Found.", calls=[run(api, "send_mail", {"to": "Ann"})])
        yield Reply("Sent.")
        yield Reply(thinking="And now?", calls=[search("calendar events")])
        yield Reply(calls=[run(api, "list_events", {}), run(api, "send_mail", {"to": "Bob"})])
        yield Reply("Lunch.")

    script = replies()
    return lambda _: next(script)


@pytest.mark.parametrize(
    ("name", "mode", "is_constant", "streamed"),
    [*((*row, False) for row in ROWS), *((*row, True) for row in ROWS if row[1] in ("messages", "fixed"))],
)
async def test_two_turns_find_and_call_tools_and_nothing_that_was_sent_changes(
    api: LoopbackApi, open_model: Callable[[str], ChatModel], name: str, mode: str, is_constant: bool, streamed: bool
) -> None:
    """The API refuses changed history, and thinking whose tools, system text or earlier messages have changed."""
    client = client_of(open_model(name), searcher(mode))
    api.answer = two_turns(api)
    steps = []
    for text in ("Write to Ann.", "What is on today? Tell Bob."):
        request = client.prompt(text).context(conversation_id="a")
        last = [chunk async for chunk in request.stream()][-1] if streamed else await request.call()
        steps += last.steps

    results = [result for step in steps for result in getattr(step, "results", ())]
    assert api.refusals == []
    assert [result.name for result in results] == [SEARCH, "send_mail", SEARCH, "list_events", "send_mail"]
    assert [result.text for result in results if result.name != SEARCH] == [
        "sent '' to Ann", "today: lunch", "sent '' to Bob"
    ]  # fmt: skip
    assert (len({json.dumps(body["tools"]) for body in api.bodies}) == 1) is is_constant
    assert len({json.dumps(_system(body)) for body in api.bodies}) == 1


def _system(body: dict[str, Any]) -> Any:
    return body.get("system") or (body.get("messages") or body["input"])[0]


# Memories that forget


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("claude-opus-4-8", "messages"),
        ("claude-opus-4-8", "deferred"),
        ("gpt-5.4", "messages"),
        ("gpt-5.4", "deferred"),
    ],
)
@pytest.mark.parametrize(
    "memory", [{"max_messages": 5}, {"tool_messages": False}, {"tool_messages": False, "order": 400}], ids=str
)
async def test_what_a_memory_dropped_is_listed_again_and_the_list_changes_for_nothing_else(
    api: LoopbackApi, open_model: Callable[[str], ChatModel], name: str, mode: str, memory: dict[str, Any]
) -> None:
    api.remembers = False
    client = client_of(open_model(name), searcher(mode, conversation_history="order" not in memory), **memory)
    api.script(Reply(calls=[search("email message")]), Reply("Found."), Reply("I see."))
    api.script(Reply(calls=[Call("send_mail", {"to": "Ann"}), search("email message")]), Reply("Sent."), Reply("Bye."))

    turns = [await say(client, text) for text in ("Find.", "Wait.", "Write.", "Good.")]

    assert api.refusals == []
    [sent, _] = [result for step in turns[2].steps for result in getattr(step, "results", ())]
    assert sent.text == "sent '' to Ann"
    lists = [json.dumps(body["tools"]) for body in api.bodies]
    changed = [number for number in range(1, 6) if lists[number] != lists[number - 1]]
    assert changed == ([3] if "max_messages" in memory else [2])


@pytest.mark.parametrize("mode", ["messages", "deferred", "fixed"])
@pytest.mark.parametrize("memory", [{"max_messages": 12}, {"tool_messages": False}], ids=str)
async def test_thinking_that_is_bound_to_what_a_memory_dropped_is_dropped_too(
    api: LoopbackApi,
    open_model: Callable[[str], ChatModel],
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    memory: dict[str, Any],
) -> None:
    """Within a turn, and as long as nothing is dropped, it goes back as it came."""
    client = client_of(open_model("claude-fable-5-1"), searcher(mode), **memory)
    monkeypatch.setattr(api.memory, "check", lambda *_: None)  # history is cut, and only thinking must not notice
    for query in ("email message", "calendar events", "pay bill", "time zone", "email"):
        api.script(Reply(thinking="Hm.", calls=[search(query)]), Reply("Found.", thinking="I see."))
        await say(client, f"Find {query}.")

    assert api.refusals == []
    thoughts = [json.dumps(body["messages"]).count('"signature":') for body in api.bodies]
    if "tool_messages" in memory:
        assert thoughts == [0, 1] * 5
    else:  # an exchange is of four messages, of five with a change of tools
        assert thoughts == [0, 1, 2, 3, 4, 5, *([0, 1, 0, 1] if mode == "messages" else [6, 7, 0, 1])]


async def test_a_tool_that_is_not_needed_any_more_is_not_listed_again(
    api: LoopbackApi, open_model: Callable[[str], ChatModel]
) -> None:
    api.remembers = False
    advisor = searcher("messages")
    client = client_of(open_model("gpt-5.4"), advisor, tool_messages=False)
    api.script(Reply(calls=[search("email message")]), Reply("Found."), Reply("I see."))

    await say(client, "Find.")
    advisor.sessions.get("a").discovered.drop(["send_mail"])
    await say(client, "Forget it.")

    assert (api.refusals, api.tools) == ([], [[SEARCH]] * 3)


# Models that change in a conversation


KINDS = [
    ("claude-unknown", "fixed"),
    ("gpt-4o", "append"),
    ("gpt-5.4", "deferred"),
    ("claude-fable-5-1", "messages"),
    ("gpt-5.4", "messages"),
    ("chat:gpt-4.1", "append"),
    ("claude-haiku-4-5", "deferred"),
    ("chat:gpt-4.1", "fixed"),
]


PAIRS = [*pairwise(KINDS), *pairwise(KINDS[::-1]), (KINDS[0], KINDS[0])]


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=" ".join)
async def test_a_tool_that_one_model_found_can_be_called_by_the_next(
    api: LoopbackApi, open_model: Callable[[str], ChatModel], first: tuple[str, str], second: tuple[str, str]
) -> None:
    api.remembers = False
    memory, told = MessageWindowMemory(max_messages=100), []
    engine = ToolSearch(Catalog(TOOLS), encoder=None, options=OPTIONS)
    api.script(Reply(calls=[search("email message")]), Reply("Found."))
    api.script(Reply(calls=[Call("send_mail", {"to": "Ann"})]), Reply("Sent."))
    for name, mode in (first, second):
        client = ChatClient(open_model(name), advisors=[ToolSearchAdvisor(engine, mode=mode), MemoryAdvisor(memory)])
        told.append(await say(client, "Go on."))

    assert api.refusals == []
    if first != second:  # in "fixed" the same model goes on with the definition that it was answered
        assert "send_mail" in available_tools(api.requests[2])
    assert told[1].steps[-1].results[0].text == "sent '' to Ann"


# A search before the model is asked


@pytest.mark.parametrize(("name", "mode", "is_constant"), ROWS)
async def test_what_the_user_says_is_searched_for_before_the_model_is_asked(
    api: LoopbackApi, open_model: Callable[[str], ChatModel], name: str, mode: str, is_constant: bool
) -> None:
    """By a message that goes with the user's, and where there is none, by the list that begins or in words."""
    engine = ToolSearch(Catalog(TOOLS), encoder=None, options=OPTIONS)
    advisor = ToolSearchAdvisor(engine, mode=mode, search_first=True)  # type: ignore[arg-type]
    client = ChatClient(
        open_model(name), advisors=[advisor, MemoryAdvisor(MessageWindowMemory(max_messages=100))], system="Be brief."
    )

    def replies() -> Any:
        yield Reply(thinking="Easy.", calls=[run(api, "send_mail", {"to": "Ann"})])
        yield Reply("Sent.")
        yield Reply(calls=[run(api, "list_events", {})] if mode != "append" else [search("calendar events")])
        yield Reply("Done.")

    script = replies()
    api.answer = lambda _: next(script)
    first = await say(client, "Send an email message to Ann.")
    second = await say(client, "List the events of my calendar.")

    assert api.refusals == []
    [sent] = [result.text for step in first.steps for result in getattr(step, "results", ())]
    assert sent == "sent '' to Ann"
    last = [result for step in second.steps for result in getattr(step, "results", ())]
    assert [result.name for result in last] == [SEARCH if mode == "append" else "list_events"]
    assert (len({json.dumps(body["tools"]) for body in api.bodies}) == 1) is is_constant
    if mode == "messages":
        assert [type(step) for step in first.steps[:2]] == [ToolChangeMessage, AssistantMessage]
    savings = engine.session("a").savings()
    assert (savings.requests, engine.session("a").state.counters.searches) == (4, 2)


@pytest.mark.parametrize(("name", "mode"), [row[:2] for row in ROWS])
async def test_a_tool_that_the_users_words_surely_ask_for_needs_no_search(
    api: LoopbackApi, open_model: Callable[[str], ChatModel], name: str, mode: str
) -> None:
    """Where a message can add it, in each turn; where only the list can, in the first one; else never."""
    engine = ToolSearch(Catalog(TOOLS), encoder=None, options=OPTIONS)
    advisor = ToolSearchAdvisor(engine, mode=mode)  # type: ignore[arg-type]
    client = ChatClient(
        open_model(name), advisors=[advisor, MemoryAdvisor(MessageWindowMemory(max_messages=100))], system="Be brief."
    )
    known: list[bool] = []
    api.script(Reply("1"), Reply("2"))

    for said, tool in (("Send an email message.", "send_mail"), ("List the events of my calendar.", "list_events")):
        await say(client, said)
        known.append(tool in available_tools(api.requests[-1]))

    assert api.refusals == []
    assert known == {"messages": [True, True], "append": [True, False]}.get(mode, [False, False])
    assert len({json.dumps(body["tools"]) for body in api.bodies}) == 1
    assert engine.session("a").savings().anticipated == sum(known)


async def test_without_a_word_of_the_user_or_with_a_broken_pattern_nothing_is_searched_for(
    api: LoopbackApi, open_model: Callable[[str], ChatModel]
) -> None:
    client = client_of(open_model("gpt-5.4"), searcher("messages", search_first=True))
    api.script(Reply("1"), Reply("2"), Reply("3"))

    for text in ("/(/", "zygote", "x" * 5_000):
        response = await say(client, text)
        assert response.steps == ()

    assert (api.refusals, api.tools) == ([], [[SEARCH]] * 3)


async def test_what_was_found_beforehand_is_not_remembered_as_the_users_words(
    api: LoopbackApi, open_model: Callable[[str], ChatModel]
) -> None:
    memory = MessageWindowMemory(max_messages=100)
    advisors = [searcher("fixed", search_first=True), MemoryAdvisor(memory, tool_messages=False)]
    client = ChatClient(open_model("claude-unknown"), tools=TOOLS, advisors=advisors)
    api.script(Reply("I could."))

    await say(client, "Send an email message.")

    assert "send_mail" in json.dumps(api.bodies[0]["messages"])
    asked, answered = memory.get("a")
    assert (asked, answered.text) == (UserMessage("Send an email message."), "I could.")  # type: ignore[union-attr]


# What the user forces, and what must not change


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("claude-opus-4-8", "messages"),
        ("claude-haiku-4-5", "deferred"),
        ("claude-unknown", "fixed"),
        ("gpt-5.4", "messages"),
        ("gpt-5.4", "deferred"),
        ("chat:gpt-4.1", "append"),
    ],
)
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "later"])
async def test_a_tool_that_the_model_is_made_to_call_is_listed_and_stays_there(
    api: LoopbackApi, open_model: Callable[[str], ChatModel], name: str, mode: str, is_first: bool
) -> None:
    engine = ToolSearch(Catalog(TOOLS), encoder=None, options=OPTIONS)
    memory = MemoryAdvisor(MessageWindowMemory(max_messages=100))
    client = ChatClient(
        open_model(name),
        advisors=[ToolSearchAdvisor(engine, mode=mode), memory],
        system="Be brief.",  # type: ignore[arg-type]
    )
    if not is_first:
        api.script(Reply("Hello."))
        await say(client, "Hello.")
    api.script(Reply(calls=[Call("send_mail", {"to": "Ann"})]), Reply("Sent."), Reply("Bye."))

    forced = client.prompt("Write.").options(ChatOptions(tool_choice="send_mail")).context(conversation_id="a")
    response = await forced.call()
    await say(client, "Bye.")

    assert (response.text, api.refusals) == ("Sent.", [])
    assert "send_mail" in json.dumps(api.bodies[-3]["tool_choice"])
    assert len({json.dumps(body["tools"]) for body in api.bodies[-3:]}) == 1
    assert engine.session("a").savings().cache_breaks == (0 if is_first else 1)


@pytest.mark.parametrize("mode", ["messages", "deferred", "fixed"])
@pytest.mark.parametrize("name", ["claude-fable-5-1", "claude-haiku-5-5"])
async def test_a_choice_leaves_a_list_alone_to_which_thinking_is_bound_and_the_tool_comes_in_a_message(
    api: LoopbackApi, open_model: Callable[[str], ChatModel], name: str, mode: str
) -> None:
    engine = ToolSearch(Catalog(TOOLS), encoder=None, options=OPTIONS)
    memory = MemoryAdvisor(MessageWindowMemory(max_messages=100))
    client = ChatClient(open_model(name), advisors=[ToolSearchAdvisor(engine, mode=mode), memory])  # type: ignore[arg-type]
    api.answer = lambda _: next(script)

    def replies() -> Any:
        yield Reply("Hello.", thinking="A greeting.")
        yield Reply(calls=[run(api, "send_mail", {"to": "Ann"})], thinking="A letter.")
        yield Reply("Sent.", thinking="Done.")
        yield Reply("Bye.")

    script = replies()
    await say(client, "Hello.")
    forced = client.prompt("Write.").options(ChatOptions(tool_choice="send_mail")).context(conversation_id="a")
    response = await forced.call()
    await say(client, "Bye.")

    assert (response.text, api.refusals) == ("Sent.", [])
    assert len({json.dumps(body["tools"]) for body in api.bodies}) == 1
    assert engine.session("a").savings().cache_breaks == 0
    assert api.bodies[1]["tool_choice"] == {"type": "auto"}
    told = json.dumps(api.bodies[1]["messages"])
    assert "Send an email" in told or "send_mail" in available_tools(api.requests[1])
    [wanted] = [step for step in response.steps if isinstance(step, ToolMessage)]
    assert [(result.name, result.is_error) for result in wanted.results] == [("send_mail", False)]


@pytest.mark.parametrize(
    ("name", "mode"), [("claude-fable-5-1", "messages"), ("claude-unknown", "fixed"), ("gpt-5.4", "messages")]
)
async def test_a_catalog_that_outgrows_being_listed_changes_neither_the_list_nor_the_system_text(
    api: LoopbackApi, open_model: Callable[[str], ChatModel], name: str, mode: str
) -> None:
    catalog = Catalog(TOOLS)
    advisor = ToolSearchAdvisor(ToolSearch(catalog, encoder=None), mode=mode)  # type: ignore[arg-type]
    memory = MemoryAdvisor(MessageWindowMemory(max_messages=100))
    client = ChatClient(open_model(name), advisors=[advisor, memory], system="Be brief.")
    api.answer = lambda _: next(script)

    def replies() -> Any:
        yield Reply("Hello.", thinking="A greeting.")
        yield Reply(calls=[search("select:tool_7")])
        yield Reply(calls=[run(api, "tool_7", {})])
        yield Reply("Done.")

    script = replies()
    await say(client, "Hello.")
    catalog.add(*(ToolDefinition(f"tool_{number}", f"Does the job {number}.") for number in range(40)))
    response = await say(client, "Do the job 7.")

    assert (response.text, api.refusals) == ("Done.", [])
    assert len({json.dumps(body["tools"]) for body in api.bodies}) == 1
    assert len({json.dumps(_system(body)) for body in api.bodies}) == 1
