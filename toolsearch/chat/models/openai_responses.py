"""OpenAI's Responses: items in and out, reasoning given back as it came, tools loaded by a search of ours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from toolsearch.chat.model import ChatOptions, Prompt
from toolsearch.chat.models.openai_chat import StrictTools, openai_clients, openai_endpoint
from toolsearch.chat.models.sdk import laid_over, refuse_deferred, schema_to_send, translated, with_possible_choice
from toolsearch.errors import ChatModelError
from toolsearch.tools.definition import Tool
from toolsearch.tools.json_types import Json
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire import openai_responses
from toolsearch.wire.answers import ChatChunk, ChatResponse
from toolsearch.wire.capabilities import Cloud, capabilities_of
from toolsearch.wire.native_search import NativeSearch
from toolsearch.wire.openai_responses.answers import read_answer, read_event
from toolsearch.wire.sendable import sendable

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class OpenAIResponsesModel:
    """A model behind Responses.

    client              your own client, for one event loop only; by default made from *base_url* and *api_key*, or from
                        what the SDK finds in the environment
    store               let OpenAI store the responses; not needed, since each request contains the conversation
    cloud               who serves the model; None means by the client's class, and "other" for any address that is not
                        OpenAI's. Use "" for a proxy that passes everything on to OpenAI unchanged
    native_tool_search  whether the model accepts a ``tool_search`` tool; None means by its name and cloud
    strict              send tools in strict mode if their schema allows it; never tools that a search loads

    With deferred tools, ``toolSearchTool`` becomes the API's own ``tool_search``, which we execute. Its answers contain
    the definitions found, so the list of tools never changes and the prompt cache holds. Models before GPT-5.6 refuse a
    tool choice that names a tool that only a message has added. It is sent as "auto": a warning is logged, and the
    answer's metadata holds ``{"choice_sent": "auto"}``.
    """

    provider = openai_responses.PROVIDER
    native_response_format = True

    def __init__(
        self,
        model: str,
        *,
        client: AsyncOpenAI | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        cloud: Cloud | None = None,
        store: bool = False,
        strict: bool = False,
        native_tool_search: bool | None = None,
        default_options: ChatOptions | None = None,
    ) -> None:
        self.model = model
        self.default_options = default_options or ChatOptions()
        self._clients = openai_clients(model, client, base_url, api_key)
        self._store = store
        self._strict = strict
        self.endpoint = openai_endpoint(
            openai_responses.PROVIDER, model, cloud, self._clients, native_tool_search=native_tool_search
        )
        self.native_tool_search = "deferred" in capabilities_of(self.endpoint).modes

    async def close(self) -> None:
        await self._clients.close()

    async def call(self, prompt: Prompt) -> ChatResponse:
        from openai import OpenAIError

        strict = self._strict_tools(prompt)
        request, told = self._request(prompt, strict)
        with translated(request["model"], OpenAIError):
            reply = cast("object", await self._clients.get().responses.create(**request))
            answer = strict.read_answer(read_answer(reply))
        return replace(answer, metadata={**answer.metadata, **told})

    async def stream(self, prompt: Prompt) -> AsyncIterator[ChatChunk]:
        from openai import OpenAIError

        strict = self._strict_tools(prompt)
        request, told = self._request(prompt, strict)
        last: ChatChunk | None = None
        with translated(request["model"], OpenAIError):
            async with await self._clients.get().responses.create(**request, stream=True) as events:
                async for event in events:
                    chunk = read_event(event)
                    if chunk is not None and chunk.message is not None:
                        metadata = {**chunk.metadata, **told}
                        last = replace(chunk, message=strict.read(chunk.message), metadata=metadata)
                        break
                    if chunk is not None:
                        yield chunk
        if last is None:
            raise ChatModelError("the stream ended in the midst of the answer; ask again")
        yield last  # the connection is closed first, since the caller may stop reading after this chunk

    def _strict_tools(self, prompt: Prompt) -> StrictTools:
        return StrictTools.of(prompt.options.tools, self.provider) if self._strict else StrictTools()

    def _request(self, prompt: Prompt, strict: StrictTools) -> tuple[dict[str, Any], Mapping[str, str]]:
        """The request, and the additions to the answer's metadata."""
        model = prompt.options.model or self.model
        known = capabilities_of(replace(self.endpoint, model=model))
        prompt, told = with_possible_choice(prompt, known, model)
        options = prompt.options
        if "deferred" not in known.modes:
            refuse_deferred(model, options.deferred_tools)
        deferred = {tool.name: tool.definition for tool in options.deferred_tools}
        native = NativeSearch(deferred) if deferred else None
        messages = sendable(prompt.messages, known, listed={tool.name for tool in options.tools}, deferred=deferred)
        request: dict[str, Any] = {
            "model": model,
            **openai_responses.write_messages(messages, native),
            "store": self._store,
        }
        if options.temperature is not None:
            request["temperature"] = options.temperature
        if options.max_tokens is not None:
            request["max_output_tokens"] = options.max_tokens
        if options.tools:
            request["tools"] = [_tool(tool, strict, native) for tool in options.tools]
            request |= openai_responses.write_tool_choice(options.tool_choice, native)
        wanted = options.response_format
        schema = schema_to_send(request["model"], wanted, is_native=True)
        if wanted is None or schema is None:
            return {**request, **options.extra}, told
        schema_part = openai_responses.write_response_format(wanted.name, schema)
        return {**request, **laid_over(schema_part, options.extra)}, told


def _tool(tool: Tool, strict: StrictTools, native: NativeSearch | None) -> dict[str, Json]:
    if native is not None and tool.name == TOOL_NAME:
        return openai_responses.write_search_tool(tool.definition)
    schema = strict.strict_schemas.get(tool.name)
    if schema is not None:
        return openai_responses.write_strict_tool(tool.definition, schema)
    return openai_responses.write_tool(tool.definition)
