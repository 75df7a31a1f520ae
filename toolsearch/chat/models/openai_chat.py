"""Chat Completions: OpenAI's, and those of every endpoint that is compatible with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from toolsearch.chat.model import ChatOptions, Prompt
from toolsearch.chat.models.images import openai_content
from toolsearch.chat.models.openai_chat_stream import StreamedCompletion, assistant_message
from toolsearch.chat.models.sdk import Clients, finish_reason, refuse_deferred, require_sdk, translated, verbatim_items
from toolsearch.chat.models.shapes import Choice, Completion, CompletionUsage, read, without_nulls
from toolsearch.chat.models.strict_tools import StrictTools
from toolsearch.errors import ChatModelError
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.json_types import Json
from toolsearch.wire.aggregate import last_chunk
from toolsearch.wire.answers import ChatChunk, ChatResponse, FinishReason, Usage
from toolsearch.wire.formats import render_results, render_tools
from toolsearch.wire.messages import AssistantMessage, Message, ProviderItems, SystemMessage, ToolMessage, UserMessage
from toolsearch.wire.replies import parse_tool_calls

if TYPE_CHECKING:
    from openai import AsyncOpenAI

PROVIDER: Final = "openai"
_OUTPUT_ONLY = ("annotations", "audio", "function_call", "refusal")  # in an answer, but not taken back
_FINISH: Mapping[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}


class OpenAIChatModel:
    """A model behind Chat Completions.

    client            an own client, for one event loop only; else one is made, from *base_url* and *api_key* or from
                      what the SDK finds in the environment
    max_tokens_field  compatible endpoints may know `ChatOptions.max_tokens` only by the older name
    stream_usage      ask for the usage of streams; some compatible endpoints refuse to be asked
    strict            send tools in strict mode, those that it can say: the model is held to their schemas

    Retries and timeouts are the client's. Nothing can be deferred here: discovered tools go in `ChatOptions.tools`.

    Of several choices (``n`` in `ChatOptions.extra`, or an endpoint that puts text and calls into two) the answer is
    the first with calls, else the first; the messages of the others are in its metadata as ``other_choices``.
    """

    provider = PROVIDER
    native_tool_search = False

    def __init__(
        self,
        model: str,
        *,
        client: AsyncOpenAI | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens",
        stream_usage: bool = True,
        strict: bool = False,
    ) -> None:
        self.model = model
        self._clients = openai_clients(model, client, base_url, api_key)
        self._max_tokens_field = max_tokens_field
        self._stream_usage = stream_usage
        self._strict = strict

    async def close(self) -> None:
        await self._clients.close()

    async def call(self, prompt: Prompt) -> ChatResponse:
        from openai import OpenAIError

        strict = self._strict_tools(prompt)
        request = self._request(prompt, strict)
        with translated(request["model"], OpenAIError):
            return _response(cast("object", await self._clients.get().chat.completions.create(**request)), strict)

    async def stream(self, prompt: Prompt) -> AsyncIterator[ChatChunk]:
        from openai import OpenAIError

        strict = self._strict_tools(prompt)
        request = self._request(prompt, strict)
        if self._stream_usage:
            request.setdefault("stream_options", {"include_usage": True})
        said = StreamedCompletion()
        with translated(request["model"], OpenAIError):
            async with await self._clients.get().chat.completions.create(**request, stream=True) as pieces:
                async for piece in pieces:
                    chunk = said.add(piece)
                    if chunk.text or chunk.tool_calls:
                        yield chunk
            yield _last(said, strict)

    def _strict_tools(self, prompt: Prompt) -> StrictTools:
        return StrictTools.of(prompt.options.tools) if self._strict else StrictTools()

    def _request(self, prompt: Prompt, strict: StrictTools) -> dict[str, Any]:
        options = prompt.options
        refuse_deferred(self.model, options.deferred_tools)
        request: dict[str, Any] = {
            "model": options.model or self.model,
            "messages": [entry for message in prompt.messages for entry in _messages(message)],
        }
        if options.temperature is not None:
            request["temperature"] = options.temperature
        if options.max_tokens is not None:
            request[self._max_tokens_field] = options.max_tokens
        if options.tools:
            rendered = render_tools([tool.definition for tool in options.tools], PROVIDER)
            request["tools"] = [tool | {"function": strict.written(tool["function"])} for tool in rendered]
            request |= _tool_choice(options)
        return {**request, **options.extra}


def openai_clients(
    model: str, client: AsyncOpenAI | None, base_url: str | None, api_key: str | None
) -> Clients[AsyncOpenAI]:
    require_sdk("openai", "a model of OpenAI")
    from openai import AsyncOpenAI, OpenAIError

    with translated(model, OpenAIError):
        return Clients(client, lambda: AsyncOpenAI(base_url=base_url, api_key=api_key))


# Asking


def _tool_choice(options: ChatOptions) -> dict[str, Json]:
    choice = options.tool_choice
    if choice is None:
        return {}
    named = choice not in ("auto", "none", "required")
    return {"tool_choice": {"type": "function", "function": {"name": choice}} if named else choice}


def _messages(message: Message) -> list[dict[str, Json]]:
    match message:
        case SystemMessage():
            return [{"role": "system", "content": message.text}]
        case UserMessage():
            return [{"role": "user", "content": openai_content(message)}]
        case AssistantMessage():
            return [dict(item) for item in verbatim_items(message, PROVIDER)] or [assistant_message(message)]
        case ToolMessage():
            return render_results(message.results, PROVIDER)


# Answering


def _response(reply: object, strict: StrictTools) -> ChatResponse:
    completion, sent = read(Completion, reply)
    answers = [_answer(choice, said, strict) for choice, said in zip(completion.choices, sent["choices"], strict=True)]
    return _chosen(answers, completion.usage, {"id": completion.id, "model": completion.model})


def _answer(choice: Choice, sent: dict[str, Json], strict: StrictTools) -> ChatResponse:
    _, calls = parse_tool_calls(sent)
    text = choice.message.content or choice.message.refusal or ""
    message = AssistantMessage(text, tuple(calls), _verbatim(sent["message"]))
    return ChatResponse(strict.read(message), _finish_reason(choice.finish_reason, calls))


def _last(said: StreamedCompletion, strict: StrictTools) -> ChatChunk:
    """The whole answer. Raises ChatModelError if the stream ended before the model did."""
    answers: list[ChatResponse] = []
    for choice in said.choices:
        message = choice.message()
        message = replace(message, verbatim=_verbatim(choice.sent(message)))
        answers.append(ChatResponse(strict.read(message), _finish_reason(choice.finish_reason, message.tool_calls)))
    if not answers:
        raise ChatModelError("the stream ended in the midst of the answer; ask again")
    return last_chunk(_chosen(answers, said.usage, {"id": said.id, "model": said.model}))


def _chosen(answers: Sequence[ChatResponse], usage: CompletionUsage | None, metadata: dict[str, Any]) -> ChatResponse:
    """Return the one of several *answers* that counts, as `parse_tool_calls` takes it."""
    if not answers:
        raise ChatModelError("the answer holds no choice; ask again")
    answer = next((each for each in answers if each.message.tool_calls), answers[0])
    if others := tuple(each.message for each in answers if each is not answer):
        metadata["other_choices"] = others
    return replace(answer, usage=_usage(usage), metadata=metadata)


def _verbatim(message: dict[str, Json]) -> ProviderItems:
    """Endpoints put more into a message than OpenAI does, and want it back: signed thoughts, reasoning."""
    kept = {key: value for key, value in without_nulls(message).items() if key not in _OUTPUT_ONLY}
    return ProviderItems(PROVIDER, ({"role": "assistant", "content": None} | kept,))


def _finish_reason(reason: str | None, calls: Sequence[ToolCall]) -> FinishReason:
    return finish_reason(_FINISH.get(reason or "", "other"), calls)


def _usage(usage: CompletionUsage | None) -> Usage:
    if usage is None:
        return Usage()
    details = usage.prompt_tokens_details or {}
    return Usage(
        usage.prompt_tokens or 0,
        usage.completion_tokens or 0,
        details.get("cached_tokens") or 0,
        details.get("cache_write_tokens") or 0,
    )
