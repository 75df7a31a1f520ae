"""The client: what a request is made of, the tool loop that is there by itself, and the caller's own loop."""

import asyncio
import contextlib
from typing import Any

import pytest

from tests.kit.scripted_model import ScriptedModel, calls, says
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.calling.resolvers import AttachedTools, StaticToolCallbackResolver
from toolsearch.chat import AnthropicModel, OpenAIChatModel, OpenAIResponsesModel
from toolsearch.chat import ScriptedModel as OwnScriptedModel
from toolsearch.chat.advisor import ChatRequest
from toolsearch.chat.client import ChatClient, PromptSpec, chat_tool
from toolsearch.chat.model import ChatOptions, Prompt
from toolsearch.chat.telemetry_model import TelemetryModel
from toolsearch.chat.tool_calling import ToolCallingAdvisor
from toolsearch.errors import BadSettingError, BadToolError, ChatModelError, DuplicateToolError, UnknownToolError
from toolsearch.telemetry import Telemetry
from toolsearch.tools.definition import Tool, ToolContext
from toolsearch.tools.function_tools import tool, tool_from_function
from toolsearch.wire.answers import ChatResponse, Usage, aggregate
from toolsearch.wire.messages import AssistantMessage, SystemMessage, ToolMessage, UserMessage

ADDS = calls(("add", '{"a": 2, "b": 3}'))


def add(a: int, b: int) -> int:
    return a + b


def subtract(a: int, b: int) -> int:
    return a - b


async def whole(spec: PromptSpec) -> ChatResponse:
    return await spec.call()


async def streamed(spec: PromptSpec) -> ChatResponse:
    return aggregate([chunk async for chunk in spec.stream()])


either_way = pytest.mark.parametrize("run", [whole, streamed])


def names(prompt: Prompt) -> list[str]:
    return [tool.name for tool in prompt.options.tools]


# Messages


async def test_a_text_is_what_the_user_says_and_content_is_what_the_model_says() -> None:
    model = ScriptedModel(says("Hello."))

    assert await ChatClient(model).prompt("Hi").content() == "Hello."
    assert model.sent == [[UserMessage("Hi")]]


async def test_a_conversation_goes_on_from_its_messages() -> None:
    past = [UserMessage("Hi"), AssistantMessage("Hello."), UserMessage("Bye")]
    model = ScriptedModel(says("Bye."))

    await ChatClient(model).prompt(past).call()

    assert model.sent == [past]


async def test_an_answers_steps_and_message_continue_the_conversation() -> None:
    model = ScriptedModel(ADDS, says("5"), says("Yes."))
    client = ChatClient(model, tools=[add])

    response = await client.prompt("2 + 3?").call()
    await client.prompt([UserMessage("2 + 3?"), *response.steps, response.message, UserMessage("Sure?")]).call()

    assert model.sent[2] == [*model.sent[1], AssistantMessage("5"), UserMessage("Sure?")]


@pytest.mark.parametrize(
    ("system", "messages", "sent"),
    [
        (None, [UserMessage("Hi")], ["default"]),
        ("request", [UserMessage("Hi")], ["request"]),
        (None, [SystemMessage("own"), UserMessage("Hi")], ["own"]),
    ],
)
async def test_the_nearest_system_message_counts(system: str | None, messages: Any, sent: list[str]) -> None:
    model = ScriptedModel(says("Hello."))
    spec = ChatClient(model, system="default").prompt(messages)

    await (spec.system(system) if system else spec).call()

    assert [message.text for message in model.sent[0] if isinstance(message, SystemMessage)] == sent


async def test_a_request_with_nothing_to_answer_is_refused() -> None:
    with pytest.raises(BadSettingError, match="nothing to answer"):
        await ChatClient(ScriptedModel(), system="Be brief.").prompt().call()


# Tools


async def test_a_requests_tools_are_offered_beside_the_clients_own_in_a_stable_order() -> None:
    model = ScriptedModel(says("a"), says("b"))
    client = ChatClient(model, tools=[add])

    await client.prompt("x").tools(subtract, add).call()
    await client.prompt("x").call()

    assert [names(prompt) for prompt in model.prompts] == [["add", "subtract"], ["add"]]


async def test_two_tools_of_one_name_are_an_error_that_names_both_owners() -> None:
    @tool(name="add")
    def other() -> None: ...

    with pytest.raises(DuplicateToolError) as raised:
        await ChatClient(ScriptedModel(), tools=[add]).prompt("x").tools(other).call()

    assert raised.value.first.endswith(".add")
    assert raised.value.second.endswith("other")


async def test_tools_in_the_options_are_offered_too() -> None:
    model = ScriptedModel(says("a"))
    options = ChatOptions(tools=(tool_from_function(subtract),))

    await ChatClient(model, tools=[add], options=options).prompt("x").call()

    assert names(model.prompts[0]) == ["subtract", "add"]


async def test_providers_are_asked_when_a_request_is_made_and_not_before() -> None:
    class Provider:
        asked = 0

        def tools(self) -> list[Tool]:
            self.asked += 1
            return [tool_from_function(add if self.asked == 1 else subtract)]

    provider, model = Provider(), ScriptedModel(says("a"), says("b"))
    client = ChatClient(model, tools=[provider])
    spec = client.prompt("x")
    assert provider.asked == 0

    await spec.call()
    await spec.call()

    assert [names(prompt) for prompt in model.prompts] == [["add"], ["subtract"]]


async def test_tools_are_looked_up_by_name() -> None:
    resolver = StaticToolCallbackResolver([tool_from_function(add), tool_from_function(subtract)])
    model = ScriptedModel(ADDS, says("5"))

    response = await ChatClient(model, resolver=resolver, tool_names=["add"]).prompt("x").call()

    assert names(model.prompts[0]) == ["add"]
    assert response.steps[1].results[0].text == "5"


async def test_a_tool_name_that_nobody_knows_is_an_error_before_the_model_is_asked() -> None:
    model = ScriptedModel()
    for client in (ChatClient(model), ChatClient(model, resolver=StaticToolCallbackResolver([]))):
        with pytest.raises(UnknownToolError, match="'nope'"):
            await client.prompt("x").tool_names("nope").call()

    assert model.prompts == []


async def test_tool_contexts_merge_and_the_requests_goes_first() -> None:
    seen: list[dict[str, Any]] = []

    def look(context: ToolContext) -> None:
        seen.append(dict(context))

    client = ChatClient(
        ScriptedModel(calls(("look", "{}")), says("ok")),
        tools=[look],
        tool_context={"user": "ada", "tenant": "a"},
        options=ChatOptions(tool_context={"region": "eu"}),
    )

    await client.prompt("x").tool_context(user="bob").call()

    assert seen == [{"region": "eu", "tenant": "a", "user": "bob"}]


# Options


async def test_what_a_request_leaves_open_is_as_the_client_says_and_nothing_else_changes() -> None:
    model = ScriptedModel(says("a"), says("b"))
    client = ChatClient(model, options=ChatOptions(model="small", temperature=0.5, extra={"seed": 1}))

    await client.prompt("x").options(ChatOptions(temperature=0.0, max_tokens=9, extra={"user": "u"})).call()
    await client.prompt("x").call()

    first, second = (prompt.options for prompt in model.prompts)
    assert (first.model, first.temperature, first.max_tokens) == ("small", 0.0, 9)
    assert first.extra == {"seed": 1, "user": "u"}
    assert second == ChatOptions(model="small", temperature=0.5, extra={"seed": 1})


async def test_building_a_request_changes_neither_the_client_nor_the_request_it_came_from() -> None:
    model = ScriptedModel(says("a"))
    spec = ChatClient(model).prompt("x")

    spec.tools(add).system("s").context(a=1).tool_context(b=2).execute_tools(False)
    await spec.call()

    assert model.prompts[0] == Prompt((UserMessage("x"),))


# The tool loop that is there by itself


@either_way
async def test_tools_are_run_without_any_advisor_being_named(run: Any) -> None:
    response = await run(ChatClient(ScriptedModel(ADDS, says("5")), tools=[add]).prompt("2 + 3?"))

    assert (response.text, response.usage) == ("5", Usage(20, 2))


class AddsTool:
    """Stands before the tool loop and attaches a tool that nobody else knows of."""

    order = 100

    def _with_tool(self, request: ChatRequest) -> ChatRequest:
        options = ChatOptions(tools=(tool_from_function(add),))
        return ChatRequest(Prompt(request.prompt.messages, options), request.context)

    async def call(self, request: ChatRequest, chain: Any) -> ChatResponse:
        return await chain.call(self._with_tool(request))

    def stream(self, request: ChatRequest, chain: Any) -> Any:
        return chain.stream(self._with_tool(request))


@either_way
async def test_tools_that_only_an_advisor_adds_are_run_too(run: Any) -> None:
    response = await run(ChatClient(ScriptedModel(ADDS, says("5")), advisors=[AddsTool()]).prompt("2 + 3?"))

    assert response.text == "5"


@either_way
async def test_a_client_without_tools_answers_a_made_up_call(run: Any) -> None:
    model = ScriptedModel(ADDS, says("sorry"))

    await run(ChatClient(model).prompt("x"))

    assert model.sent[1][-1].results[0].error_code == "unknown_tool"


@either_way
async def test_an_explicit_tool_advisor_takes_the_place_of_the_one_that_is_there_by_itself(run: Any) -> None:
    model = ScriptedModel(lambda _: ADDS)

    response = await run(ChatClient(model, tools=[add]).prompt("x").advisors(ToolCallingAdvisor(max_rounds=2)))

    assert (response.finish_reason, len(model.prompts)) == ("call_limit", 2)


@either_way
async def test_two_tool_advisors_in_one_chain_are_an_error(run: Any) -> None:
    client = ChatClient(ScriptedModel(), advisors=[ToolCallingAdvisor()])

    with pytest.raises(BadSettingError, match="one tool-calling advisor, not 2"):
        await run(client.prompt("x").advisors(ToolCallingAdvisor()))


async def test_the_clients_manager_runs_the_calls() -> None:
    class Counting(ToolCallingManager):
        batches = 0

        async def execute(self, *args: Any, **kwargs: Any) -> Any:
            self.batches += 1
            return await super().execute(*args, **kwargs)

    manager = Counting()

    await ChatClient(ScriptedModel(ADDS, says("5")), tools=[add], manager=manager).prompt("x").call()

    assert manager.batches == 1


async def test_requests_of_one_client_run_at_the_same_time() -> None:
    def reply(prompt: Prompt) -> ChatResponse:
        last = prompt.messages[-1]
        if isinstance(last, ToolMessage):
            return says(last.results[0].text)
        return calls(("add", f'{{"a": {last.text}, "b": 1}}'))

    client = ChatClient(ScriptedModel(reply), tools=[add])

    texts = await asyncio.gather(*(client.prompt(str(number)).content() for number in range(20)))

    assert texts == [str(number + 1) for number in range(20)]


# The caller's own loop


@either_way
@pytest.mark.parametrize("at", ["client", "request"])
async def test_the_caller_can_run_the_calls(run: Any, at: str) -> None:
    model = ScriptedModel(ADDS, says("5"))
    client = ChatClient(model, tools=[add], execute_tools=at != "client")
    manager, messages = ToolCallingManager(), [UserMessage("2 + 3?")]

    def asked() -> PromptSpec:
        spec = client.prompt(messages)
        return spec if at == "client" else spec.execute_tools(False)

    response = await run(asked())
    while response.message.tool_calls:
        results = await manager.execute(response.message.tool_calls, AttachedTools([tool_from_function(add)]))
        messages += [response.message, ToolMessage(tuple(results))]
        response = await run(asked())

    assert response.text == "5"
    assert messages[1:] == [ADDS.message, ToolMessage(tuple(results))]


async def test_without_a_client_a_model_only_says_which_calls_it_wants() -> None:
    model = ScriptedModel(ADDS)

    response = await model.call(Prompt((UserMessage("x"),), ChatOptions(tools=(tool_from_function(add),))))

    assert response.message.tool_calls[0].name == "add"


# Streams, errors, and callers without an event loop


async def test_leaving_a_stream_early_ends_the_models_stream() -> None:
    model = ScriptedModel(says("a long answer"))
    stream = ChatClient(model).prompt("x").stream()

    await anext(stream)
    await stream.aclose()

    assert model.closed_streams == 1


@either_way
async def test_what_the_model_raises_reaches_the_caller(run: Any) -> None:
    with pytest.raises(ChatModelError, match="no such model"):
        await run(ChatClient(ScriptedModel(ChatModelError("no such model"))).prompt("x"))


def test_a_caller_without_an_event_loop_just_waits_and_all_calls_share_one_loop() -> None:
    loops: list[object] = []

    async def look() -> str:
        loops.append(asyncio.get_running_loop())
        return "seen"

    model = ScriptedModel(calls(("look", "{}")), says("one"), calls(("look", "{}")), says("two"))
    client = ChatClient(model, tools=[look])

    assert client.prompt("x").call_sync().text == "one"
    assert client.prompt("x").content_sync() == "two"
    assert loops[0] is loops[1]


def test_a_caller_without_an_event_loop_reads_a_stream_and_may_leave_it() -> None:
    def look() -> str:
        return "seen"

    model = ScriptedModel(calls(("look", "{}")), says("one two"), says("three four"))
    client = ChatClient(model, tools=[look])

    response = aggregate(client.prompt("x").stream_sync())
    assert (response.text, response.finish_reason) == ("one two", "stop")
    with contextlib.closing(client.prompt("x").stream_sync()) as chunks:
        assert next(chunks).text == "three"
    assert model.closed_streams == 3


async def test_waiting_is_refused_where_an_event_loop_runs() -> None:
    with pytest.raises(RuntimeError, match=r"stream\(\)'"):
        ChatClient(ScriptedModel()).prompt("x").stream_sync()
    with pytest.raises(RuntimeError, match=r"use 'await content\(\)'"):
        ChatClient(ScriptedModel()).prompt("x").content_sync()


def test_what_is_raised_reaches_a_caller_that_waits() -> None:
    with pytest.raises(ChatModelError, match="down"):
        ChatClient(ScriptedModel(ChatModelError("down"))).prompt("x").call_sync()


# Options of the model's own


class Equipped(ScriptedModel):
    """A model that brings tools and options for every client."""

    default_options = ChatOptions(
        temperature=0.5, max_tokens=100, tools=(tool_from_function(add),), tool_context={"user": "Ada", "room": 1}
    )


@either_way
async def test_the_tools_of_a_model_are_offered_and_run_for_every_client(run: Any) -> None:
    model = Equipped(ADDS, says("5."))

    response = await run(ChatClient(model, tools=[subtract]).prompt("2 + 3?"))

    assert response.text == "5."
    assert names(model.prompts[0]) == ["add", "subtract"]
    assert model.prompts[1].messages[-1].results[0].text == "5"


async def test_what_a_client_and_a_request_say_goes_before_the_options_of_the_model() -> None:
    model = Equipped(says("1"), says("2"))
    client = ChatClient(
        TelemetryModel(model, Telemetry()), options=ChatOptions(temperature=0.1), tool_context={"room": 2}
    )

    await client.prompt("x").options(ChatOptions(max_tokens=7)).call()
    await client.prompt("x").call()

    asked = [prompt.options for prompt in model.prompts]
    assert [(each.temperature, each.max_tokens) for each in asked] == [(0.1, 7), (0.1, 100)]
    assert dict(asked[0].tool_context) == {"user": "Ada", "room": 2}


@pytest.mark.parametrize("kind", [AnthropicModel, OpenAIChatModel, OpenAIResponsesModel])
async def test_each_model_takes_options_for_every_client(kind: Any) -> None:
    model = kind("m", api_key="k", default_options=Equipped.default_options)
    asked = ChatClient(model).prompt("x").request().prompt
    await model.close()

    assert names(asked) == ["add"]
    assert names(ChatClient(OwnScriptedModel("x", default_options=asked.options)).prompt("x").request().prompt) == [
        "add"
    ]


async def test_two_tools_of_one_name_of_model_and_client_are_an_error() -> None:
    @tool(name="add")
    def another(a: int) -> int:
        return a

    with pytest.raises(DuplicateToolError):
        await ChatClient(Equipped(), tools=[another]).prompt("x").call()


# Agents as tools


async def test_an_agent_is_a_tool_for_another() -> None:
    def whoami(context: ToolContext) -> str:
        return context["user"]

    inner = ScriptedModel(calls(("whoami", "{}")), says("It is ada."))
    clerk = chat_tool(ChatClient(inner, tools=[whoami]), name="clerk", description="Knows who is who.")
    outer = ScriptedModel(calls(("clerk", '{"request": "Who is it?"}')), says("Ada."))

    answer = await ChatClient(outer, tools=[clerk]).prompt("Who am I?").tool_context(user="ada").content()

    assert answer == "Ada."
    assert inner.sent[0] == [UserMessage("Who is it?")]
    assert outer.sent[1][-1].results[0].text == "It is ada."


async def test_an_agent_that_fails_is_a_failed_call() -> None:
    clerk = chat_tool(ChatClient(ScriptedModel(ChatModelError("down"))), name="clerk", description="")
    outer = ScriptedModel(calls(("clerk", '{"request": "x"}')), says("The clerk is out."))

    assert await ChatClient(outer, tools=[clerk]).prompt("x").content() == "The clerk is out."
    assert outer.sent[1][-1].results[0].is_error


def test_an_agent_needs_a_name_that_models_take() -> None:
    with pytest.raises(BadToolError):
        chat_tool(ChatClient(ScriptedModel()), name="my clerk", description="")
