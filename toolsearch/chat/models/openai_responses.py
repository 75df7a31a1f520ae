"""OpenAI's Responses: items in and out, reasoning given back as it came, tools loaded by a search of ours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from toolsearch.chat.model import ChatOptions, Prompt
from toolsearch.chat.models.families import openai_searches_natively
from toolsearch.chat.models.images import responses_content
from toolsearch.chat.models.openai_chat import openai_clients
from toolsearch.chat.models.sdk import (
    arguments_object,
    arguments_text,
    finish_reason,
    refuse_deferred,
    translated,
    verbatim_items,
)
from toolsearch.chat.models.shapes import OutputMessage, Response, ResponsesUsage, read, without_nulls
from toolsearch.chat.models.strict_tools import StrictTools
from toolsearch.chat.tool_search_prompt import options_to_send
from toolsearch.errors import ChatModelError
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.definition import ToolDefinition
from toolsearch.tools.json_types import Json
from toolsearch.tools.naming import TOOL_NAME
from toolsearch.wire.aggregate import last_chunk
from toolsearch.wire.answers import ChatChunk, ChatResponse, FinishReason, ToolCallDelta, Usage
from toolsearch.wire.formats import render_definition, render_results
from toolsearch.wire.messages import AssistantMessage, Message, ProviderItems, SystemMessage, ToolMessage, UserMessage
from toolsearch.wire.native_search import NativeSearch
from toolsearch.wire.replies import parse_tool_calls

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types.responses import ResponseStreamEvent

PROVIDER: Final = "openai-responses"


class OpenAIResponsesModel:
    """A model behind Responses.

    client              an own client, for one event loop only; else one is made, from *base_url* and *api_key* or from
                        what the SDK finds in the environment
    store               let OpenAI keep the responses; nothing here needs it, as each request holds the conversation
    native_tool_search  whether the model takes a ``tool_search`` tool; None: by its name
    strict              send tools in strict mode, those that it can say; not those that a search loads

    With deferred tools, ``toolSearchTool`` becomes the API's own ``tool_search``, executed by us, whose answers hold
    the definitions found: the list of tools never changes, so the prompt cache holds.
    """

    provider = PROVIDER

    def __init__(
        self,
        model: str,
        *,
        client: AsyncOpenAI | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        store: bool = False,
        strict: bool = False,
        native_tool_search: bool | None = None,
    ) -> None:
        self.model = model
        self._clients = openai_clients(model, client, base_url, api_key)
        self._store = store
        self._strict = strict
        self.native_tool_search = openai_searches_natively(model) if native_tool_search is None else native_tool_search

    async def close(self) -> None:
        await self._clients.close()

    async def call(self, prompt: Prompt) -> ChatResponse:
        from openai import OpenAIError

        strict = self._strict_tools(prompt)
        request = self._request(prompt, strict)
        with translated(request["model"], OpenAIError):
            response = _response(cast("object", await self._clients.get().responses.create(**request)))
        return replace(response, message=strict.read(response.message))

    async def stream(self, prompt: Prompt) -> AsyncIterator[ChatChunk]:
        from openai import OpenAIError

        strict = self._strict_tools(prompt)
        request = self._request(prompt, strict)
        last: ChatChunk | None = None
        with translated(request["model"], OpenAIError):
            async with await self._clients.get().responses.create(**request, stream=True) as events:
                async for event in events:
                    chunk = _chunk(event)
                    if chunk is not None and chunk.message is not None:
                        last = replace(chunk, message=strict.read(chunk.message))
                        break
                    if chunk is not None:
                        yield chunk
        if last is None:
            raise ChatModelError("the stream ended in the midst of the answer; ask again")
        yield last  # after the connection is closed: who has the last piece may let go of the rest

    def _strict_tools(self, prompt: Prompt) -> StrictTools:
        return StrictTools.of(prompt.options.tools) if self._strict else StrictTools()

    def _request(self, prompt: Prompt, strict: StrictTools) -> dict[str, Any]:
        options = options_to_send(prompt)
        if not self.native_tool_search:
            refuse_deferred(self.model, options.deferred_tools)
        request: dict[str, Any] = {
            "model": options.model or self.model,
            "input": _input(prompt.messages, NativeSearch(_deferred(options)) if options.deferred_tools else None),
            "store": self._store,
        }
        if options.temperature is not None:
            request["temperature"] = options.temperature
        if options.max_tokens is not None:
            request["max_output_tokens"] = options.max_tokens
        if options.tools:
            native = bool(options.deferred_tools)
            request["tools"] = [_tool(tool.definition, strict, native=native) for tool in options.tools]
            request |= _tool_choice(options)
        return {**request, **options.extra}


# Asking


def _deferred(options: ChatOptions) -> dict[str, ToolDefinition]:
    return {tool.name: tool.definition for tool in options.deferred_tools}


def _tool(definition: ToolDefinition, strict: StrictTools, *, native: bool) -> dict[str, Json]:
    tool = render_definition(definition, PROVIDER)
    if not native or definition.name != TOOL_NAME:
        return strict.written(tool)
    search = {"description": tool["description"], "parameters": tool["parameters"]}
    return {"type": "tool_search", "execution": "client"} | search


def _tool_choice(options: ChatOptions) -> dict[str, Json]:
    choice = options.tool_choice
    if choice is None or choice in ("auto", "none", "required"):
        return {} if choice is None else {"tool_choice": choice}
    if choice == TOOL_NAME and options.deferred_tools:
        return {"tool_choice": "required"}  # the API has no way to name its tool_search
    return {"tool_choice": {"type": "function", "name": choice}}


def _input(messages: Sequence[Message], native: NativeSearch | None) -> list[dict[str, Json]]:
    items: list[dict[str, Json]] = []
    searches: set[str] = set()  # ids of the calls that stand in the conversation as the API's own searches
    for message in messages:
        if isinstance(message, AssistantMessage):
            said = _assistant(message, native=native is not None)
            searches |= {str(item["call_id"]) for item in said if item["type"] == "tool_search_call"}
            items += said
        elif isinstance(message, ToolMessage):
            items += _results(message, searches, native or NativeSearch())
        elif isinstance(message, UserMessage):
            items.append({"type": "message", "role": "user", "content": responses_content(message)})
        else:
            items.append(_plain_message("system", message))
    return items


def _plain_message(role: str, message: SystemMessage | AssistantMessage) -> dict[str, Json]:
    return {"type": "message", "role": role, "content": message.text}


def _assistant(message: AssistantMessage, *, native: bool) -> list[dict[str, Json]]:
    """Word for word if possible: not if it holds a search of the API's own kind, which this request does not know."""
    items = [dict(item) for item in verbatim_items(message, PROVIDER)]
    if items and (native or all(item["type"] != "tool_search_call" for item in items)):
        return items
    said = [_plain_message("assistant", message)] if message.text or not message.tool_calls else []
    return [*said, *(_call(call, native=native) for call in message.tool_calls)]


def _call(call: ToolCall, *, native: bool) -> dict[str, Json]:
    if native and call.name == TOOL_NAME:
        arguments = arguments_object(call)
        return {"type": "tool_search_call", "call_id": call.id, "execution": "client", "arguments": arguments}
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments_text(call)}


def _results(message: ToolMessage, searches: Collection[str], native: NativeSearch) -> list[dict[str, Json]]:
    items: list[dict[str, Json]] = []
    for result in message.results:
        items += render_results([result], PROVIDER, native_search=native if result.call_id in searches else None)
    outputs = [item for item in items if item["type"] != "message"]
    return outputs + [item for item in items if item["type"] == "message"]


# Answering


def _response(reply: object) -> ChatResponse:
    response, sent = read(Response, reply)
    if response.status == "failed":
        raise ChatModelError(
            (response.error and response.error.message) or "the model failed, without a reason; ask again"
        )
    _, calls = parse_tool_calls(sent)
    parts = [
        part for item in sent["output"] if item["type"] == "message" for part in read(OutputMessage, item)[0].content
    ]
    refusal = "".join(part.refusal or "" for part in parts if part.type == "refusal")
    text = "".join(part.text or "" for part in parts if part.type == "output_text")
    items = tuple(without_nulls(item) for item in sent["output"])
    return ChatResponse(
        AssistantMessage(refusal or text, tuple(calls), ProviderItems(PROVIDER, items)),
        finish_reason("content_filter" if refusal else _finish_reason(response), calls),
        _usage(response.usage),
        {"id": response.id, "model": response.model},
    )


def _finish_reason(reply: Response) -> FinishReason:
    if reply.status == "completed":
        return "stop"
    reasons: Mapping[str, FinishReason] = {"max_output_tokens": "length", "content_filter": "content_filter"}
    return reasons.get((reply.incomplete_details and reply.incomplete_details.reason) or "", "other")


def _usage(usage: ResponsesUsage | None) -> Usage:
    if usage is None:
        return Usage()
    details = usage.input_tokens_details or {}
    return Usage(
        usage.input_tokens or 0,
        usage.output_tokens or 0,
        details.get("cached_tokens") or 0,
        details.get("cache_write_tokens") or 0,
    )


def _chunk(event: ResponseStreamEvent) -> ChatChunk | None:
    """What *event* has to say to a reader of the stream; the last one says the whole message."""
    match event.type:
        case "response.output_text.delta" | "response.refusal.delta":
            return ChatChunk(text=event.delta or "")
        case "response.function_call_arguments.delta":
            return ChatChunk(tool_calls=(ToolCallDelta(event.output_index, arguments=event.delta or ""),))
        case "response.output_item.added" if event.item.type == "function_call":
            begun = ToolCallDelta(event.output_index, event.item.call_id, event.item.name)
            return ChatChunk(tool_calls=(begun,))
        case "response.output_item.done" if event.item.type == "tool_search_call":
            [call] = parse_tool_calls([event.item])[1]
            search = ToolCallDelta(event.output_index, call.id, call.name, arguments_text(call))
            return ChatChunk(tool_calls=(search,))
        case "response.completed" | "response.incomplete" | "response.failed":
            return last_chunk(_response(event.response))
        case "error":
            raise ChatModelError(event.message)
        case _:
            return None
