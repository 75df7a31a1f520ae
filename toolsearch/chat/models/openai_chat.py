"""Chat Completions of OpenAI and of every compatible endpoint.

In strict mode, schemas are changed in requests, and nulls are changed in replies. OpenAI's Responses use it, too.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from toolsearch.calling.validation import without_absent
from toolsearch.chat.model import ChatOptions, Prompt
from toolsearch.chat.models.sdk import Clients, cloud_of, refuse_deferred, require_sdk, schema_to_send, translated
from toolsearch.errors import BadSettingError, BadToolError, ToolSearchError
from toolsearch.tools.calls import ToolCall, parse_arguments
from toolsearch.tools.definition import Tool
from toolsearch.tools.json_types import Json, JsonObject
from toolsearch.tools.strict import strict_schema
from toolsearch.wire import openai_chat
from toolsearch.wire.answers import OTHER_CHOICES, ChatChunk, ChatResponse, last_chunk
from toolsearch.wire.capabilities import Cloud, Endpoint, capabilities_of
from toolsearch.wire.messages import AssistantMessage
from toolsearch.wire.openai_chat.answers import StreamedAnswer, read_answer
from toolsearch.wire.sendable import sendable
from toolsearch.wire.sendable_tools import sendable_definition

if TYPE_CHECKING:
    from openai import AsyncOpenAI


@dataclass(frozen=True, slots=True)
class StrictTools:
    """The schemas of the tools that strict mode can express, by name. Tools that it cannot are sent as they are."""

    sent_schemas: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    strict_schemas: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])

    @classmethod
    def of(cls, tools: Sequence[Tool], wire_format: str) -> StrictTools:
        own: dict[str, JsonObject] = {}
        strict: dict[str, JsonObject] = {}
        for tool in tools:
            schema = sendable_definition(tool.definition, wire_format).input_schema
            try:
                strict[tool.name] = strict_schema(schema)
            except BadToolError:
                continue
            own[tool.name] = schema
        return cls(own, strict)

    def read(self, message: AssistantMessage) -> AssistantMessage:
        """Return *message* with calls that fit the original schemas. The message for the next request stays as
        it is.
        """
        calls = tuple(map(self._call, message.tool_calls))
        return replace(message, tool_calls=calls) if self.sent_schemas else message

    def read_answer(self, answer: ChatResponse) -> ChatResponse:
        """Return *answer* with such calls in its message, and in the messages of its other choices."""
        if not self.sent_schemas:
            return answer
        metadata = dict(answer.metadata)
        if OTHER_CHOICES in metadata:
            metadata[OTHER_CHOICES] = tuple(map(self.read, metadata[OTHER_CHOICES]))
        return replace(answer, message=self.read(answer.message), metadata=metadata)

    def _call(self, call: ToolCall) -> ToolCall:
        schema = self.sent_schemas.get(call.name)
        arguments = call.arguments
        if schema is None or not isinstance(arguments, str):
            return call
        try:
            filled = without_absent(schema, parse_arguments(arguments))
        except ToolSearchError:
            return call  # running the call reports the fault
        return replace(call, arguments=json.dumps(filled))


_OWN_HOST = "api.openai.com"


class OpenAIChatModel:
    """A model behind Chat Completions.

    client            your own client, for one event loop only; by default made from *base_url* and *api_key*, or from
                      what the SDK finds in the environment
    cloud             who serves the model; None means by the client's class, and "other" for any address that is not
                      OpenAI's
    max_tokens_field  compatible endpoints may know `ChatOptions.max_tokens` only by the older name
    stream_usage      ask for the usage of streams; some compatible endpoints refuse to be asked
    strict            send tools in strict mode, which enforces their schemas, if a schema allows it
    native_response_format  False describes the format in words, for compatible endpoints without ``response_format``

    Retries and timeouts are the client's. Nothing can be deferred here: discovered tools go in `ChatOptions.tools`.
    OpenAI's models from GPT-5.6 on accept no function tools here while they reason, and they reason by default. Prompts
    with tools then raise BadSettingError, which names the two solutions.

    Of several choices (``n`` in `ChatOptions.extra`, or an endpoint that puts text and calls into two) the answer is
    the first with calls, else the first; the messages of the others are in its metadata as ``other_choices``.
    """

    provider = openai_chat.PROVIDER
    native_tool_search = False

    def __init__(
        self,
        model: str,
        *,
        client: AsyncOpenAI | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        cloud: Cloud | None = None,
        max_tokens_field: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens",
        stream_usage: bool = True,
        strict: bool = False,
        native_response_format: bool = True,
        default_options: ChatOptions | None = None,
    ) -> None:
        self.model = model
        self.default_options = default_options or ChatOptions()
        self._clients = openai_clients(model, client, base_url, api_key)
        self.endpoint = openai_endpoint(openai_chat.PROVIDER, model, cloud, self._clients)
        self._max_tokens_field = max_tokens_field
        self._stream_usage = stream_usage
        self._strict = strict
        self.native_response_format = native_response_format

    async def close(self) -> None:
        await self._clients.close()

    async def call(self, prompt: Prompt) -> ChatResponse:
        from openai import OpenAIError

        strict = self._strict_tools(prompt)
        request = self._request(prompt, strict)
        with translated(request["model"], OpenAIError):
            reply = cast("object", await self._clients.get().chat.completions.create(**request))
            return strict.read_answer(read_answer(reply))

    async def stream(self, prompt: Prompt) -> AsyncIterator[ChatChunk]:
        from openai import OpenAIError

        strict = self._strict_tools(prompt)
        request = self._request(prompt, strict)
        if self._stream_usage:
            request.setdefault("stream_options", {"include_usage": True})
        said = StreamedAnswer()
        with translated(request["model"], OpenAIError):
            async with await self._clients.get().chat.completions.create(**request, stream=True) as pieces:
                async for piece in pieces:
                    chunk = said.add(piece)
                    if chunk.text or chunk.tool_calls:
                        yield chunk
            yield last_chunk(strict.read_answer(said.answer()))

    def _strict_tools(self, prompt: Prompt) -> StrictTools:
        return StrictTools.of(prompt.options.tools, self.provider) if self._strict else StrictTools()

    def _request(self, prompt: Prompt, strict: StrictTools) -> dict[str, Any]:
        options = prompt.options
        model = options.model or self.model
        known = capabilities_of(replace(self.endpoint, model=model))
        refuse_deferred(model, options.deferred_tools)
        if options.tools and not known.tools_on_chat and options.extra.get("reasoning_effort") != "none":
            raise BadSettingError(
                f"{model} takes function tools on Chat Completions only if it does not reason: use "
                "OpenAIResponsesModel, or ChatOptions(extra={'reasoning_effort': 'none'}) where the model takes it"
            )
        request: dict[str, Any] = {
            "model": model,
            **openai_chat.write_messages(sendable(prompt.messages, known)),
        }
        if options.temperature is not None:
            request["temperature"] = options.temperature
        if options.max_tokens is not None:
            request[self._max_tokens_field] = options.max_tokens
        if options.tools:
            request["tools"] = [_tool(tool, strict) for tool in options.tools]
            request |= openai_chat.write_tool_choice(options.tool_choice)
        wanted = options.response_format
        schema = schema_to_send(request["model"], wanted, is_native=self.native_response_format)
        if wanted is not None and schema is not None:
            request |= openai_chat.write_response_format(wanted.name, schema)
        return {**request, **options.extra}


def openai_clients(
    model: str, client: AsyncOpenAI | None, base_url: str | None, api_key: str | None
) -> Clients[AsyncOpenAI]:
    require_sdk("openai", "a model of OpenAI")
    from openai import AsyncOpenAI, OpenAIError

    with translated(model, OpenAIError):
        return Clients(client, lambda: AsyncOpenAI(base_url=base_url, api_key=api_key))


def openai_endpoint(
    wire_format: str,
    model: str,
    cloud: Cloud | None,
    clients: Clients[AsyncOpenAI],
    *,
    native_tool_search: bool | None = None,
) -> Endpoint:
    cloud = cloud_of(clients.first, _OWN_HOST) if cloud is None else cloud
    return Endpoint(wire_format, model, cloud, native_tool_search)


def _tool(tool: Tool, strict: StrictTools) -> dict[str, Json]:
    schema = strict.strict_schemas.get(tool.name)
    definition = tool.definition
    return openai_chat.write_tool(definition) if schema is None else openai_chat.write_strict_tool(definition, schema)
