"""Chat Completions on the wire, OpenAI's and those of endpoints that say more than OpenAI does."""

from typing import Any

import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests.kit.chat_models import ADD, PIXEL, QUESTION, answered, pieces, prompt, text_result
from tests.kit.loopback import Call, LoopbackApi, Raw, Reply
from toolsearch.chat.client import ChatClient
from toolsearch.chat.memory import MemoryAdvisor, MessageWindowMemory
from toolsearch.chat.model import ChatOptions
from toolsearch.chat.models.openai_chat import OpenAIChatModel
from toolsearch.chat.models.openai_responses import OpenAIResponsesModel
from toolsearch.errors import ChatModelError
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.definition import Tool, ToolDefinition
from toolsearch.wire import openai_chat
from toolsearch.wire.answers import ChatResponse, aggregate
from toolsearch.wire.messages import AssistantMessage, ToolMessage, UserMessage
from toolsearch.wire.openai_chat.answers import StreamedAnswer, read_answer


@pytest.fixture
def model(api: LoopbackApi) -> OpenAIChatModel:
    return OpenAIChatModel("m", base_url=api.openai_url, api_key="k")


async def test_calls_and_results_on_the_wire(model: OpenAIChatModel, api: LoopbackApi) -> None:
    said = AssistantMessage("", (ToolCall("1", "add", {"a": 1}), ToolCall("2", "now", "{}")))
    results = (text_result("1", "add", "3"), text_result("2", "now", "no clock", is_error=True))
    api.script(Reply("3"))

    await model.call(prompt(QUESTION, said, ToolMessage(results)))

    _, calls, *answers = api.bodies[0]["messages"]
    assert [call["function"]["arguments"] for call in calls["tool_calls"]] == ['{"a": 1}', "{}"]
    assert answers == [
        {"role": "tool", "tool_call_id": "1", "content": "3"},
        {"role": "tool", "tool_call_id": "2", "content": "Error: no clock"},
    ]


async def test_images_are_data_urls(model: OpenAIChatModel, api: LoopbackApi) -> None:
    api.script(Reply("A pixel."))

    await model.call(prompt(UserMessage("?", (PIXEL,))))

    text, image = api.bodies[0]["messages"][0]["content"]
    assert text == {"type": "text", "text": "?"}
    assert image["image_url"] == {"url": f"data:image/png;base64,{PIXEL['data']}"}


async def test_equal_options_give_equal_bytes(model: OpenAIChatModel, api: LoopbackApi) -> None:
    api.script(Reply("3"), Reply("3"))

    for _ in range(2):
        await model.call(prompt(options=ChatOptions(tools=(ADD,))))

    assert str(api.bodies[0]) == str(api.bodies[1])


async def test_an_older_endpoint_is_asked_in_its_words(api: LoopbackApi) -> None:
    model = OpenAIChatModel(
        "m", base_url=api.openai_url, api_key="k", max_tokens_field="max_tokens", stream_usage=False
    )
    api.script(Reply("3"))

    await pieces(model, prompt(options=ChatOptions(max_tokens=9)))

    assert api.bodies[0]["max_tokens"] == 9
    assert "stream_options" not in api.bodies[0]


async def test_a_client_that_was_given_is_used_and_left_open(api: LoopbackApi) -> None:
    async with AsyncOpenAI(base_url=api.openai_url, api_key="k", default_headers={"x-team": "seven"}) as client:
        model = OpenAIChatModel("m", client=client)
        api.script(Reply("3"))
        await model.call(prompt())
        await model.close()

        assert not client.is_closed()
    assert api.requests[0].headers["x-team"] == "seven"


THOUGHTFUL = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{
        "index": 0,
        "finish_reason": "stop",
        "message": {
            "role": "assistant", "content": None, "refusal": None, "reasoning_content": "What time?",
            "tool_calls": [{
                "id": "1", "type": "function", "function": {"name": "now", "arguments": ""},
                "extra_content": {"google": {"thought_signature": "abc"}},
            }],
        },
    }],
}  # fmt: skip


def test_what_an_endpoint_adds_to_a_message_goes_back_to_it() -> None:
    """It also says "stop" although it wants a tool called, and leaves usage out."""
    response = read_answer(ChatCompletion.model_validate(THOUGHTFUL))

    assert response.finish_reason == "tool_calls"
    [back] = openai_chat.write_messages([response.message])["messages"]
    assert back["reasoning_content"] == "What time?"
    assert back["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "abc"}}
    assert "refusal" not in back


def test_what_an_endpoint_adds_to_a_stream_goes_back_to_it() -> None:
    call: Any = THOUGHTFUL["choices"][0]["message"]["tool_calls"][0]
    deltas: list[dict[str, Any]] = [
        {"reasoning_content": "What "},
        {"reasoning_content": "time?"},
        {"tool_calls": [call | {"index": 0}]},
    ]
    said = StreamedAnswer()
    for delta in deltas:
        said.add(_chunk(delta, None))
    said.add(_chunk({}, "stop"))

    last = said.answer()

    assert last.finish_reason == "tool_calls"
    [back] = openai_chat.write_messages([last.message])["messages"]
    assert back["reasoning_content"] == "What time?"
    assert back["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "abc"}}


def _chunk(delta: dict[str, Any], finish_reason: str | None) -> ChatCompletionChunk:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return ChatCompletionChunk.model_validate(head | {"choices": [choice]})


def test_an_answer_without_a_choice_is_an_error() -> None:
    with pytest.raises(ChatModelError, match="no choice"):
        read_answer(ChatCompletion.model_validate(THOUGHTFUL | {"choices": []}))


async def test_broken_arguments_come_through_for_the_tool_to_refuse(model: OpenAIChatModel, api: LoopbackApi) -> None:
    broken = Reply(calls=[Call("add", '{"a": 1,')])
    api.script(broken, broken, Reply("Sorry."))

    response = await model.call(prompt(QUESTION))

    assert response.message.tool_calls[0].arguments == '{"a": 1,'
    streamed = aggregate(await pieces(model, prompt(QUESTION)))
    assert streamed.message.tool_calls[0].arguments == '{"a": 1,'
    await model.call(prompt(QUESTION, *answered(response, "no")))
    assert api.refusals == []


OPTIONAL = Tool(
    ToolDefinition(
        "book",
        input_schema={
            "type": "object",
            "properties": {"day": {"type": "string"}, "room": {"type": "string"}},
            "required": ["day"],
            "additionalProperties": False,
        },
    )
)
ANY_KEYS = Tool(
    ToolDefinition("tag", input_schema={"type": "object", "additionalProperties": {"type": "string"}, "properties": {}})
)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("adapter", [OpenAIChatModel, OpenAIResponsesModel])
async def test_strict_tools_take_nulls_and_give_none_on(api: LoopbackApi, adapter: Any, streamed: bool) -> None:
    """A schema that strict mode cannot say is sent as it is; the conversation goes back as the model wrote it."""
    model = adapter("m", base_url=api.openai_url, api_key="k", strict=True)
    options = ChatOptions(tools=(OPTIONAL, ANY_KEYS))
    api.script(Reply(calls=[Call("book", {"day": "Monday", "room": None})]), Reply("Done."))

    asked = prompt(QUESTION, options=options)
    response = aggregate(await pieces(model, asked)) if streamed else await model.call(asked)
    await model.call(prompt(QUESTION, *answered(response, "booked"), options=options))

    assert response.message.tool_calls[0].arguments == '{"day": "Monday"}'
    assert api.refusals == []
    functions = [tool.get("function", tool) for tool in api.bodies[0]["tools"]]
    assert [bool(function.get("strict")) for function in functions] == [True, False]
    assert functions[0]["parameters"]["required"] == ["day", "room"]


@pytest.mark.parametrize("adapter", [OpenAIChatModel, OpenAIResponsesModel])
async def test_strict_tools_are_sent_and_called_by_names_that_the_api_takes(api: LoopbackApi, adapter: Any) -> None:
    properties = {"the day": {"type": "string"}, "room": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": ["the day"]}
    tools = (Tool(ToolDefinition("book", "Book a room.", schema)),)
    api.script(Reply(calls=[Call("book", {"the_day": "Monday", "room": None})]))
    model = adapter("m", base_url=api.openai_url, api_key="k", strict=True)

    response = await model.call(prompt(QUESTION, options=ChatOptions(tools=tools)))

    (sent,) = api.bodies[0]["tools"]
    function = sent.get("function", sent)
    assert function["strict"] is True
    assert function["parameters"]["required"] == ["the_day", "room"]
    assert response.message.tool_calls[0].arguments == '{"the_day": "Monday"}'


@pytest.mark.parametrize("streamed", [False, True])
async def test_of_several_choices_the_answer_is_the_first_with_calls_else_the_first(
    model: OpenAIChatModel, api: LoopbackApi, streamed: bool
) -> None:
    """Their pieces come mixed; there are endpoints that put the text into one choice and the calls into the next."""
    texts = Reply("One, two.", others=[Reply("Three, four.")])
    calls = Reply("Let me see.", others=[Reply(calls=[Call("add", {"a": 1})]), Reply(calls=[Call("now")])])
    api.script(texts, calls)

    async def ask() -> ChatResponse:
        asked = prompt(QUESTION, options=ChatOptions(extra={"n": 2}))
        return aggregate(await pieces(model, asked)) if streamed else await model.call(asked)

    said, called = await ask(), await ask()

    assert (said.text, said.finish_reason) == ("One, two.", "stop")
    assert [message.text for message in said.metadata["other_choices"]] == ["Three, four."]
    assert ([call.name for call in called.message.tool_calls], called.finish_reason) == (["add"], "tool_calls")
    assert [message.text for message in called.metadata["other_choices"]] == ["Let me see.", ""]


async def test_a_reader_of_a_stream_sees_the_first_choice_alone(model: OpenAIChatModel, api: LoopbackApi) -> None:
    api.script(Reply("One, two.", others=[Reply("Three, four.")]))

    chunks = await pieces(model, prompt(QUESTION))

    assert "".join(chunk.text for chunk in chunks) == "One, two."


async def test_one_unfinished_choice_of_a_stream_is_no_half_answer(model: OpenAIChatModel, api: LoopbackApi) -> None:
    api.script(Reply("One.", others=[Reply("Two, and", ended=None)]))

    with pytest.raises(ChatModelError, match="in the midst"):
        await pieces(model, prompt(QUESTION))


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("said", "finish_reason", "sent"),
    [({}, "stop", ""), ({}, "length", ""), ({"refusal": "I cannot."}, "stop", "I cannot.")],
    ids=["empty", "cut off", "refused"],
)
async def test_a_memory_goes_on_after_an_answer_without_text(
    api: LoopbackApi, said: Any, finish_reason: str, sent: str, streamed: bool
) -> None:
    """The API writes null as its content, and does not take that back."""
    choice = {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": None, **said}}
    events = [{"choices": [{"index": 0, "delta": said, "finish_reason": finish_reason}]}]
    whole = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    api.script(Raw(whole, events=events), Reply("Hello."))
    model = OpenAIChatModel("m", base_url=api.openai_url, api_key="k")
    client = ChatClient(model, advisors=[MemoryAdvisor(MessageWindowMemory())])
    spec = client.prompt("Hi.").context(conversation_id="a")
    answer = aggregate([chunk async for chunk in spec.stream()]) if streamed else await spec.call()

    response = await client.prompt("Hello?").context(conversation_id="a").call()

    assert (answer.text, response.text, api.refusals) == (sent, "Hello.", [])
    assert api.bodies[1]["messages"][1] == {"role": "assistant", "content": sent}
