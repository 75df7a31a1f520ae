"""Chat Completions: OpenAI's, and those of every endpoint that is compatible with it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from toolsearch.calling.wire import ToolCall, parse_tool_calls, render_results
from toolsearch.chat.aggregate import ChunkAggregator
from toolsearch.chat.messages import (
    AssistantMessage,
    Message,
    ProviderItems,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from toolsearch.chat.model import ChatChunk, ChatOptions, ChatResponse, FinishReason, Prompt, ToolCallDelta, Usage
from toolsearch.chat.models.images import openai_content
from toolsearch.chat.models.sdk import Clients, as_json, refuse_deferred, require_sdk, translated, verbatim_items
from toolsearch.chat.models.strict_tools import StrictTools
from toolsearch.discovery.exposure import render_tools
from toolsearch.errors import ChatModelError
from toolsearch.tools.definition import Json

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletion, ChatCompletionChunk
    from openai.types.chat.chat_completion_chunk import Choice, ChoiceDelta

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
            reply = cast("ChatCompletion", await self._clients.get().chat.completions.create(**request))
            response = _response(reply)
        return replace(response, message=strict.read(response.message))

    async def stream(self, prompt: Prompt) -> AsyncIterator[ChatChunk]:
        from openai import OpenAIError

        strict = self._strict_tools(prompt)
        request = self._request(prompt, strict)
        if self._stream_usage:
            request.setdefault("stream_options", {"include_usage": True})
        said = _StreamedMessage()
        with translated(request["model"], OpenAIError):
            async with await self._clients.get().chat.completions.create(**request, stream=True) as pieces:
                async for piece in pieces:
                    chunk = said.add(piece)
                    if chunk.text or chunk.tool_calls:
                        yield chunk
            yield said.last(strict)

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
            return [dict(item) for item in verbatim_items(message, PROVIDER)] or [_assistant(message)]
        case ToolMessage():
            return render_results(message.results, PROVIDER)


def _assistant(message: AssistantMessage) -> dict[str, Json]:
    if not message.tool_calls:
        return {"role": "assistant", "content": message.text}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments_text(call)}}
        for call in message.tool_calls
    ]
    return {"role": "assistant", "content": message.text or None, "tool_calls": calls}


def arguments_text(call: ToolCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)


# Answering


def _response(reply: ChatCompletion) -> ChatResponse:
    if not reply.choices:
        raise ChatModelError("the answer holds no choice; ask again")
    choice = reply.choices[0]
    _, calls = parse_tool_calls(choice.message)
    text = choice.message.content or choice.message.refusal or ""
    return ChatResponse(
        AssistantMessage(text, tuple(calls), _verbatim(as_json(choice.message))),
        _finish_reason(choice.finish_reason, bool(calls)),
        _usage(reply.usage),
        {"id": reply.id, "model": reply.model},
    )


def _verbatim(message: dict[str, Json]) -> ProviderItems:
    """Endpoints put more into a message than OpenAI does, and want it back: signed thoughts, reasoning."""
    kept = {key: value for key, value in message.items() if key not in _OUTPUT_ONLY}
    return ProviderItems(PROVIDER, ({"role": "assistant", "content": None} | kept,))


def _finish_reason(reason: str | None, has_calls: bool) -> FinishReason:  # noqa: FBT001
    """Some endpoints say "stop" although the model wants tools called."""
    if has_calls and reason in ("stop", None):
        return "tool_calls"
    return _FINISH.get(reason or "", "other")


def _usage(usage: CompletionUsage | None) -> Usage:
    if usage is None:
        return Usage()
    details = usage.prompt_tokens_details
    return Usage(
        usage.prompt_tokens,
        usage.completion_tokens,
        (details and details.cached_tokens) or 0,
        (details and details.cache_write_tokens) or 0,
    )


class _StreamedMessage:
    """A message that comes in pieces, with whatever an endpoint adds to OpenAI's own fields."""

    def __init__(self) -> None:
        self._whole = ChunkAggregator()
        self._finish_reason: str | None = None
        self._usage = Usage()
        self._metadata: dict[str, Any] = {}
        self._more: dict[str, Json] = {}
        self._more_of_calls: dict[int, dict[str, Json]] = {}

    def add(self, piece: ChatCompletionChunk) -> ChatChunk:
        """Take *piece*, and return what of it can be passed on at once."""
        self._metadata = {"id": piece.id, "model": piece.model}
        if piece.usage is not None:
            self._usage = _usage(piece.usage)
        chunk = ChatChunk()
        if piece.choices:
            chunk = self._add_choice(piece.choices[0])
        self._whole.add(chunk)
        return chunk

    def last(self, strict: StrictTools) -> ChatChunk:
        """The whole message, its calls as *strict* reads them.

        Raises ChatModelError if the stream ended before the model did.
        """
        if self._finish_reason is None:
            raise ChatModelError("the stream ended in the midst of the answer; ask again")
        self._whole.add(ChatChunk(finish_reason=_FINISH.get(self._finish_reason, "other")))
        message = self._whole.response().message
        wire = _assistant(message) | self._more
        for position, call in enumerate(cast("list[dict[str, Json]]", wire.get("tool_calls", []))):
            call.update(self._more_of_calls.get(position, {}))
        return ChatChunk(
            finish_reason=_finish_reason(self._finish_reason, bool(message.tool_calls)),
            usage=self._usage,
            message=strict.read(AssistantMessage(message.text, message.tool_calls, _verbatim(wire))),
            metadata=self._metadata,
        )

    def _add_choice(self, choice: Choice) -> ChatChunk:
        self._finish_reason = choice.finish_reason or self._finish_reason
        delta = choice.delta
        for key, value in (delta.model_extra or {}).items():
            self._more[key] = _joined(self._more.get(key), value)
        return ChatChunk(text=delta.content or delta.refusal or "", tool_calls=tuple(self._calls(delta)))

    def _calls(self, delta: ChoiceDelta) -> list[ToolCallDelta]:
        deltas: list[ToolCallDelta] = []
        for call in delta.tool_calls or []:
            function = call.function
            self._more_of_calls.setdefault(call.index, {}).update(call.model_extra or {})
            name, arguments = (function.name or "", function.arguments or "") if function else ("", "")
            deltas.append(ToolCallDelta(call.index, call.id or "", name, arguments))
        return deltas


def _joined(before: Json, piece: Json) -> Json:
    """Text grows, anything else is replaced."""
    return before + piece if isinstance(before, str) and isinstance(piece, str) else piece
