"""A reply that ends in the middle of a tool call: nothing of it is run, on any wire, and the model is told."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.kit.loopback import Call, LoopbackApi, Raw, Reply
from toolsearch import ToolSearch
from toolsearch.calling.manager import ToolCallingManager
from toolsearch.calling.resolvers import AttachedTools
from toolsearch.catalog.catalog import Catalog
from toolsearch.chat.client import ChatClient, PromptSpec
from toolsearch.chat.memory import MemoryAdvisor, MessageWindowMemory, message_from_text, message_to_text
from toolsearch.chat.model import ChatModel
from toolsearch.chat.models.anthropic_messages import AnthropicModel
from toolsearch.chat.models.openai_chat import OpenAIChatModel
from toolsearch.chat.models.openai_responses import OpenAIResponsesModel
from toolsearch.chat.models.scripted import ScriptedModel
from toolsearch.chat.tool_search import ToolSearchAdvisor
from toolsearch.errors import ChatModelError
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.function_tools import tool, tool_from_function
from toolsearch.tools.providers import as_tools
from toolsearch.wire.answers import ChatChunk, ChatResponse, aggregate
from toolsearch.wire.messages import AssistantMessage, ToolMessage
from toolsearch.wire.replies import parse_tool_calls

MODELS: dict[str, Any] = {
    "openai": OpenAIChatModel,
    "openai-responses": OpenAIResponsesModel,
    "anthropic": AnthropicModel,
}
WHOLE = {"path": "/data", "older_than_days": 30}
CUT = len('{"path": "/data", "older_than_days": 3')  # which an SDK completes to 3 days
TOLD = "did not finish"


class Disk:
    """What would be gone."""

    def __init__(self) -> None:
        self.deleted: list[tuple[str, int]] = []
        self.listed = 0

    @tool
    def delete_files(self, path: str, older_than_days: int = 0) -> str:
        """Delete files for good."""
        self.deleted.append((path, older_than_days))
        return "deleted"

    @tool(return_direct=True)
    def list_files(self) -> str:
        """List files."""
        self.listed += 1
        return "a.txt"


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, api: LoopbackApi) -> ChatModel:
    url = api.url if request.param == "anthropic" else api.openai_url
    return MODELS[request.param]("m", base_url=url, api_key="k")


def half_call(**more: Any) -> Reply:
    return Reply("Let me clean up.", calls=[Call("delete_files", WHOLE)], cut=CUT, **more)


async def asked(spec: PromptSpec, *, streamed: bool) -> ChatResponse:
    return aggregate([chunk async for chunk in spec.stream()]) if streamed else await spec.call()


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "how", [{"stop": "length"}, {"stop": "content_filter"}, {"ended": "incomplete"}, {"ended": "x"}]
)
async def test_half_a_call_is_not_run_and_the_model_reads_why(
    model: ChatModel, api: LoopbackApi, disk: Disk, streamed: bool, how: Any
) -> None:
    api.script(half_call(**how), Reply("It was too long."))

    response = await asked(ChatClient(model, tools=[disk]).prompt("Clean up."), streamed=streamed)

    assert disk.deleted == []
    assert (response.text, response.finish_reason) == ("It was too long.", "stop")
    assert TOLD in json.dumps(api.bodies[1])
    assert api.refusals == []  # each call has its result


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_model_reads_the_providers_own_reason(api: LoopbackApi, disk: Disk, streamed: bool) -> None:
    api.script(half_call(ended="eos_token"), Reply("Sorry."))
    model = OpenAIChatModel("m", base_url=api.openai_url, api_key="k")

    await asked(ChatClient(model, tools=[disk]).prompt("Clean up."), streamed=streamed)

    assert "(eos_token)" in json.dumps(api.bodies[1])


async def test_a_stream_that_refuses_in_words_has_not_asked_for_its_calls(api: LoopbackApi) -> None:
    deltas = [{"refusal": "I cannot."}, {"tool_calls": [CHAT_CALL | {"index": 0}]}]
    pieces = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    api.script(Raw(events=[*pieces, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]))
    model = OpenAIChatModel("m", base_url=api.openai_url, api_key="k")

    response = await asked(ChatClient(model, execute_tools=False).prompt("Clean up."), streamed=True)

    assert (response.finish_reason, response.message.tool_calls[0].unfinished) == ("other", "refusal")


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_reply_without_a_finish_reason_runs_nothing(
    model: ChatModel, api: LoopbackApi, disk: Disk, streamed: bool
) -> None:
    """A stream of Chat Completions that gives none has been cut off, which is an error."""
    api.script(half_call(ended=None), Reply("Sorry."))
    spec = ChatClient(model, tools=[disk]).prompt("Clean up.")

    if streamed and model.provider == "openai":
        with pytest.raises(ChatModelError, match="in the midst"):
            await asked(spec, streamed=True)
    else:
        assert (await asked(spec, streamed=streamed)).text == "Sorry."
        assert TOLD in json.dumps(api.bodies[1])
    assert disk.deleted == []


@pytest.mark.parametrize("streamed", [False, True])
async def test_whole_calls_before_the_cut_are_not_run_either_nor_returned_directly(
    model: ChatModel, api: LoopbackApi, disk: Disk, streamed: bool
) -> None:
    api.script(Reply(calls=[Call("list_files"), Call("delete_files", WHOLE)], cut=CUT, stop="length"), Reply("Sorry."))

    response = await asked(ChatClient(model, tools=[disk]).prompt("Clean up."), streamed=streamed)

    assert (disk.listed, disk.deleted) == (0, [])
    assert (response.text, response.finish_reason) == ("Sorry.", "stop")
    [_, results] = response.steps
    assert isinstance(results, ToolMessage)
    assert [result.error_code for result in results.results] == ["unfinished_call"] * 2


@pytest.mark.parametrize("streamed", [False, True])
async def test_three_unfinished_replies_in_a_row_end_the_turn(
    model: ChatModel, api: LoopbackApi, disk: Disk, streamed: bool
) -> None:
    whole = Reply(calls=[Call("delete_files", WHOLE)])
    api.script(*[half_call(stop="length")] * 2, whole, *[half_call(stop="length")] * 3, Reply("never"))

    response = await asked(ChatClient(model, tools=[disk]).prompt("Clean up."), streamed=streamed)

    assert len(api.requests) == 6
    assert disk.deleted == [("/data", 30)]
    assert response.finish_reason == "call_limit"
    assert "3 replies" in response.text
    assert "max_tokens" in response.text
    assert api.refusals == []


@pytest.mark.parametrize("streamed", [False, True])
async def test_calls_that_the_application_runs_itself_are_marked(
    model: ChatModel, api: LoopbackApi, disk: Disk, streamed: bool
) -> None:
    api.script(half_call(stop="length"))

    response = await asked(ChatClient(model, tools=[disk], execute_tools=False).prompt("Clean up."), streamed=streamed)
    results = await ToolCallingManager().execute(response.message.tool_calls, AttachedTools(as_tools(disk)))

    assert response.finish_reason == "length"
    assert [result.error_code for result in results] == ["unfinished_call"]
    assert disk.deleted == []


async def test_a_memory_keeps_the_marks_and_the_conversation_goes_on(
    model: ChatModel, api: LoopbackApi, disk: Disk
) -> None:
    memory = MessageWindowMemory()
    api.script(half_call(stop="length"), Reply("Sorry."), Reply("Fine."))
    client = ChatClient(model, tools=[disk], advisors=[MemoryAdvisor(memory)])

    await client.prompt("Clean up.").context(conversation_id="c").call()
    await client.prompt("Leave it.").context(conversation_id="c").call()

    _, said, results, *_ = memory.get("c")
    assert isinstance(said, AssistantMessage)
    assert said.tool_calls[0].unfinished
    assert message_from_text(message_to_text(said)) == said
    assert isinstance(results, ToolMessage)
    assert api.refusals == []


@pytest.mark.parametrize("provider", ["openai-responses", "anthropic"])
@pytest.mark.parametrize("streamed", [False, True])
async def test_half_a_native_search_is_answered_and_loads_nothing(
    api: LoopbackApi, disk: Disk, provider: str, streamed: bool
) -> None:
    url = api.url if provider == "anthropic" else api.openai_url
    model = MODELS[provider]("m", base_url=url, api_key="k", native_tool_search=True)
    search = Call("toolSearchTool", {"query": "delete files"})
    others = [tool_from_function(_named(f"tool_{number}")) for number in range(30)]
    api.script(Reply(calls=[search], cut=len('{"query": "del'), stop="length"), Reply("Sorry."))

    client = ChatClient(model, tools=[disk, *others], advisors=[ToolSearchAdvisor()])
    response = await asked(client.prompt("Clean up.").context(conversation_id="c"), streamed=streamed)

    assert response.text == "Sorry."
    assert TOLD in json.dumps(api.bodies[1])
    assert '"tool_reference"' not in json.dumps(api.bodies[1])
    assert api.refusals == []


def _named(name: str) -> Any:
    def f() -> str:
        """Do something else."""
        return ""

    f.__name__ = name
    return f


# Any other model


@pytest.mark.parametrize("reason", ["length", "content_filter", "other"])
@pytest.mark.parametrize("streamed", [False, True])
async def test_the_loop_trusts_no_model_to_mark_its_calls(disk: Disk, reason: Any, streamed: bool) -> None:
    call = ToolCall("1", "delete_files", WHOLE)
    model = ScriptedModel(ChatResponse(AssistantMessage("", (call,)), reason), "Sorry.")

    response = await asked(ChatClient(model, tools=[disk]).prompt("Clean up."), streamed=streamed)

    assert disk.deleted == []
    assert response.text == "Sorry."


async def test_a_stream_that_says_only_in_pieces_that_it_was_cut_off_is_marked(disk: Disk) -> None:
    call = ToolCall("1", "delete_files", WHOLE)

    class Streaming(ScriptedModel):
        async def stream(self, prompt: Any) -> AsyncIterator[ChatChunk]:  # noqa: ARG002
            yield ChatChunk(message=AssistantMessage("", (call,)))

    response = await asked(
        ChatClient(Streaming(), tools=[disk], execute_tools=False).prompt("Clean up."), streamed=True
    )

    assert (response.finish_reason, response.message.tool_calls[0].unfinished) == ("other", "other")


# Sessions, with replies of the SDKs


async def _reply(api: LoopbackApi, provider: str, *, streamed: bool) -> Any:
    question: Any = [{"role": "user", "content": "Clean up."}]
    openai, anthropic = AsyncOpenAI(api_key="k", base_url=api.openai_url), AsyncAnthropic(api_key="k", base_url=api.url)
    async with openai, anthropic:
        if provider == "openai":
            return await openai.chat.completions.create(model="m", messages=question)
        if provider == "openai-responses" and streamed:
            events = await openai.responses.create(model="m", input=question, stream=True)
            return [event async for event in events][-1].response
        if provider == "openai-responses":
            return await openai.responses.create(model="m", input=question)
        if streamed:
            async with anthropic.messages.stream(model="m", max_tokens=9, messages=question) as events:
                return await events.get_final_message()
        return await anthropic.messages.create(model="m", max_tokens=9, messages=question)


@pytest.mark.parametrize("stop", ["length", "content_filter"])
@pytest.mark.parametrize(
    ("provider", "streamed"),
    [
        ("openai", False),
        ("openai-responses", False),
        ("openai-responses", True),
        ("anthropic", False),
        ("anthropic", True),
    ],
)
async def test_a_session_runs_nothing_of_an_unfinished_reply(
    api: LoopbackApi, disk: Disk, provider: str, streamed: bool, stop: Any
) -> None:
    api.script(half_call(stop=stop))
    session = ToolSearch(Catalog(as_tools(disk)), encoder=None).session("s")

    reply = await _reply(api, provider, streamed=streamed)
    [message] = await session.execute(reply)
    [as_dict] = await session.execute(reply.to_dict())

    assert disk.deleted == []
    assert TOLD in json.dumps(message)
    assert as_dict == message


# Which replies have finished

CHAT_CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ITEM = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}
BLOCK = {"type": "tool_use", "id": "1", "name": "f", "input": {}}


def chat(reason: object) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "tool_calls": [CHAT_CALL]}, "finish_reason": reason}]}


def response(told: object, reason: object = None, **item: Any) -> dict[str, Any]:
    return {"status": told, "incomplete_details": {"reason": reason}, "output": [ITEM | item]}


def message(reason: object) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [BLOCK], "stop_reason": reason}


@pytest.mark.parametrize(
    ("reply", "unfinished"),
    [
        *[(chat(reason), "") for reason in ("stop", "tool_calls", "function_call")],
        *[(chat(reason), reason) for reason in ("length", "content_filter", "error", "eos")],
        *[(chat(reason), "no finish reason") for reason in (None, "", 1)],
        (chat("x" * 1_000), "x" * 60),
        (response("completed"), ""),
        (response("completed", status="completed"), ""),
        (response("completed", status="incomplete"), "incomplete"),
        (response("completed", status="in_progress"), "in_progress"),
        (response("incomplete", "max_output_tokens"), "max_output_tokens"),
        (response("incomplete", status="completed"), "incomplete"),
        *[(response(status), status) for status in ("in_progress", "queued", "cancelled", "failed")],
        (response(None), "no finish reason"),
        *[(message(reason), "") for reason in ("tool_use", "end_turn")],
        *[
            (message(reason), reason)
            for reason in (
                "max_tokens",
                "refusal",
                "pause_turn",
                "stop_sequence",
                "model_context_window_exceeded",
                "new",
            )
        ],
        (message(None), "no finish reason"),
    ],
)
def test_what_each_wire_says_of_the_end_of_a_reply(reply: dict[str, Any], unfinished: str) -> None:
    _, [call] = parse_tool_calls(reply)

    assert call.unfinished == unfinished


def test_a_reply_that_leaves_the_end_out_has_not_finished() -> None:
    for whole, key in (
        (chat("stop"), "finish_reason"),
        (response("completed"), "status"),
        (message("tool_use"), "stop_reason"),
    ):
        (whole["choices"][0] if "choices" in whole else whole).pop(key)
        _, [call] = parse_tool_calls(whole)
        assert call.unfinished == "no finish reason"


def test_one_choice_can_be_passed_alone_with_its_end() -> None:
    [choice] = chat("length")["choices"]

    assert parse_tool_calls(choice)[1][0].unfinished == "length"


def test_a_model_that_refuses_in_words_has_not_asked_for_its_calls() -> None:
    refused = chat("stop")
    refused["choices"][0]["message"]["refusal"] = "I cannot."
    words = {"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]}
    responses = response("completed")
    responses["output"].append(words)

    assert parse_tool_calls(refused)[1][0].unfinished == "refusal"
    assert parse_tool_calls(responses)[1][0].unfinished == "refusal"


def test_an_incomplete_item_does_not_hold_back_the_others_of_a_whole_response() -> None:
    reply = response("completed", status="incomplete")
    reply["output"].append(ITEM | {"call_id": "2"})

    assert [call.unfinished for call in parse_tool_calls(reply)[1]] == ["incomplete", ""]


def test_parts_of_a_reply_are_the_callers_word() -> None:
    for part in (
        chat("length")["choices"][0]["message"],
        [CHAT_CALL],
        [ITEM],
        [BLOCK],
        {"role": "assistant", "content": [BLOCK]},
    ):
        assert parse_tool_calls(part)[1][0].unfinished == ""
    assert parse_tool_calls([ITEM | {"status": "incomplete"}])[1][0].unfinished == "incomplete"
    assert parse_tool_calls([ToolCall("1", "f", "", "length")])[1][0].unfinished == "length"
