"""What every adapter owes, through the official SDKs, over HTTP, to APIs that check what they are sent."""

import asyncio
import builtins
from dataclasses import replace
from typing import Any

import pytest

from tests.kit.chat_models import ADD, NATIVE, PIXEL, QUESTION, SYSTEM, answered, pieces, prompt, text_result
from tests.kit.loopback import Call, Failure, LoopbackApi, Reply, TokenCounts
from toolsearch.chat.model import ChatModel, ChatOptions
from toolsearch.chat.models.anthropic_messages import AnthropicModel
from toolsearch.chat.models.openai_chat import OpenAIChatModel
from toolsearch.chat.models.openai_responses import OpenAIResponsesModel
from toolsearch.errors import BadSettingError, ChatModelError, MissingExtraError
from toolsearch.tools.calls import ToolCall
from toolsearch.wire.answers import Usage, aggregate
from toolsearch.wire.messages import AssistantMessage, ProviderItems, ToolMessage, UserMessage

KEY = "sk-secret-0123456789"
CALLS = Reply("Let me see.", calls=[Call("add", {"b": 2, "a": 1}), Call("now")], thinking="Hm, a sum.")
MODELS: dict[str, Any] = {
    "openai": OpenAIChatModel,
    "openai-responses": OpenAIResponsesModel,
    "anthropic": AnthropicModel,
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, api: LoopbackApi) -> ChatModel:
    url = api.url if request.param == "anthropic" else api.openai_url
    return MODELS[request.param]("m", base_url=url, api_key=KEY)


async def test_a_call_gives_text_parallel_calls_and_usage(model: ChatModel, api: LoopbackApi) -> None:
    api.script(Reply("See.", calls=CALLS.calls, usage=TokenCounts(input=100, output=7, cached=60, cache_write=30)))

    response = await model.call(prompt())

    assert response.text == "See."
    assert [call.name for call in response.message.tool_calls] == ["add", "now"]
    assert [_arguments(call) for call in response.message.tool_calls] == [{"a": 1, "b": 2}, {}]
    assert response.finish_reason == "tool_calls"
    assert response.usage == Usage(input_tokens=100, output_tokens=7, cached_tokens=60, cache_write_tokens=30)
    assert api.refusals == []
    assert api.tools == [["add", "now"]]


def _arguments(call: ToolCall) -> Any:
    import json

    return json.loads(call.arguments) if isinstance(call.arguments, str) else call.arguments


async def test_a_stream_gives_the_same_answer_in_pieces(model: ChatModel, api: LoopbackApi) -> None:
    api.script(CALLS, CALLS)
    whole = await model.call(prompt())

    chunks = await pieces(model, prompt())

    assert "".join(chunk.text for chunk in chunks) == "Let me see."
    assert len([chunk for chunk in chunks if chunk.text]) > 1
    put_together = aggregate([replace(chunk, message=None) for chunk in chunks])
    for response in (aggregate(chunks), put_together):
        assert [call.name for call in response.message.tool_calls] == ["add", "now"]
        assert [_arguments(call) for call in response.message.tool_calls] == [{"a": 1, "b": 2}, {}]
    streamed = aggregate(chunks)
    assert (streamed.text, streamed.finish_reason, streamed.usage) == (whole.text, whole.finish_reason, whole.usage)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_conversation_goes_back_as_it_was_said(model: ChatModel, api: LoopbackApi, streamed: bool) -> None:
    """The API remembers what it said, thoughts and signatures included, and refuses anything else."""
    api.script(CALLS, Reply(calls=[Call("now")], thinking="Again."), Reply("3, at noon."))
    messages: list[Any] = [SYSTEM, QUESTION]
    texts = iter([("3", "noon"), ("noon",), ()])

    for said in texts:
        asked = prompt(*messages)
        response = aggregate(await pieces(model, asked)) if streamed else await model.call(asked)
        messages += answered(response, *said)

    assert response.text == "3, at noon."
    assert response.finish_reason == "stop"
    assert api.refusals == []


async def test_what_another_provider_said_goes_as_text_and_calls(model: ChatModel, api: LoopbackApi) -> None:
    foreign = ProviderItems("elsewhere", ({"type": "secret_thoughts"},))
    said = AssistantMessage("Let me see.", (ToolCall("1", "add", '{"a": 1, "b": 2}'),), foreign)
    result = text_result("1", "add", "3")
    api.script(Reply("3"))

    await model.call(prompt(QUESTION, said, ToolMessage((result,))))

    assert api.refusals == []
    assert "secret_thoughts" not in str(api.bodies[0])
    assert "Let me see." in str(api.bodies[0])


async def test_images_of_users_are_sent(model: ChatModel, api: LoopbackApi) -> None:
    audio = {"type": "audio", "mimeType": "audio/wav", "data": "UklGRg=="}
    api.script(Reply("A pixel."))

    await model.call(prompt(UserMessage("What is it?", (PIXEL, audio))))

    assert api.refusals == []
    assert PIXEL["data"] in str(api.bodies[0])
    assert "[audio (audio/wav" in str(api.bodies[0])


async def test_a_refused_request_says_why_and_keeps_the_sdks_error(model: ChatModel, api: LoopbackApi) -> None:
    bad = AssistantMessage("", (ToolCall("1", "add", "{}"),))

    with pytest.raises(ChatModelError, match=r"^m: HTTP 400: .*1") as caught:
        await model.call(prompt(QUESTION, bad))

    assert type(caught.value.__cause__).__name__ == "BadRequestError"


async def test_errors_hold_no_key(model: ChatModel, api: LoopbackApi) -> None:
    api.script(Failure(401, f"wrong key {KEY}"), Failure(403, f"not for {KEY}"))

    for status in (401, 403):
        with pytest.raises(ChatModelError, match=f"HTTP {status}") as caught:
            await model.call(prompt())
        assert KEY not in str(caught.value)


async def test_retries_are_the_sdks(model: ChatModel, api: LoopbackApi) -> None:
    api.script(Failure(429), Reply("There."))

    assert (await model.call(prompt())).text == "There."
    assert len(api.requests) == 2


async def test_an_error_in_a_stream_is_an_error(model: ChatModel, api: LoopbackApi) -> None:
    api.script(Failure(message="overloaded", in_stream=True))

    with pytest.raises(ChatModelError, match="overloaded"):
        await pieces(model, prompt())


@pytest.mark.parametrize("ending", ["cut", "unfinished"])
async def test_a_stream_that_ends_too_early_is_an_error(model: ChatModel, api: LoopbackApi, ending: Any) -> None:
    api.script(Reply("A long answer to a short question.", ending=ending))

    with pytest.raises(ChatModelError):
        await pieces(model, prompt())


async def test_leaving_a_stream_ends_the_request(model: ChatModel, api: LoopbackApi) -> None:
    api.script(Reply("A long answer to a short question.", ending="held"))

    stream: Any = model.stream(prompt())
    async for chunk in stream:
        assert chunk.text
        break
    await stream.aclose()

    assert await asyncio.to_thread(api.hung_up.wait, 5)


async def test_cancelling_the_reader_of_a_stream_ends_the_request(model: ChatModel, api: LoopbackApi) -> None:
    api.script(Reply("A long answer to a short question.", ending="held"))
    begun = asyncio.Event()

    async def read() -> None:
        async for _ in model.stream(prompt()):
            begun.set()

    reader = asyncio.create_task(read())
    await begun.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader

    assert await asyncio.to_thread(api.hung_up.wait, 5)


@pytest.mark.parametrize("choice", ["auto", "none", "required", "add"])
async def test_a_tool_choice_is_sent_as_the_provider_writes_it(model: ChatModel, api: LoopbackApi, choice: str) -> None:
    api.script(Reply("3"))

    await model.call(prompt(options=ChatOptions(tools=(ADD,), tool_choice=choice)))

    assert api.refusals == []
    assert "tool_choice" in api.bodies[0]


async def test_options_and_extra_arguments_reach_the_wire(model: ChatModel, api: LoopbackApi) -> None:
    api.script(Reply("3"))

    extra = {"extra_body": {"top_p": 0.9}}
    await model.call(prompt(options=ChatOptions(model="n", temperature=0.5, max_tokens=99, extra=extra)))

    body = api.bodies[0]
    assert (body["model"], body["temperature"], body["top_p"]) == ("n", 0.5, 0.9)
    assert 99 in body.values()
    assert "tools" not in body


@pytest.mark.parametrize(("stop", "reason"), [("length", "length"), ("content_filter", "content_filter")])
async def test_why_a_model_stopped_is_told(model: ChatModel, api: LoopbackApi, stop: Any, reason: str) -> None:
    api.script(Reply("As I was", stop=stop), Reply("As I was", stop=stop))

    assert (await model.call(prompt())).finish_reason == reason
    assert aggregate(await pieces(model, prompt())).finish_reason == reason


async def test_deferred_tools_are_refused_by_a_model_that_cannot_load_them(model: ChatModel) -> None:
    assert not model.native_tool_search
    with pytest.raises(BadSettingError, match="cannot load deferred tools"):
        await model.call(prompt(options=NATIVE))


async def test_an_argument_that_the_sdk_does_not_know_is_an_error_that_names_it(model: ChatModel) -> None:
    with pytest.raises(ChatModelError, match="no_such_argument"):
        await model.call(prompt(options=ChatOptions(extra={"no_such_argument": 1})))


def test_one_model_serves_one_event_loop_after_the_other(model: ChatModel, api: LoopbackApi) -> None:
    api.script(Reply("one"), Reply("two"))

    async def once() -> str:
        response = await model.call(prompt())
        await model.close()  # type: ignore[attr-defined]
        return response.text

    assert [asyncio.run(once()), asyncio.run(once())] == ["one", "two"]


@pytest.mark.parametrize(("name", "extra"), [("openai", "openai"), ("openai-responses", "openai"), ("anthropic",) * 2])
def test_a_missing_sdk_is_an_error_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, name: str, extra: str
) -> None:
    real = builtins.__import__

    def without_sdks(module: str, *rest: Any) -> Any:
        if module.split(".", maxsplit=1)[0] in ("openai", "anthropic"):
            raise ImportError(module)
        return real(module, *rest)

    monkeypatch.setattr(builtins, "__import__", without_sdks)
    with pytest.raises(MissingExtraError, match=rf"toolsearch\[{extra}\]"):
        MODELS[name]("m")
