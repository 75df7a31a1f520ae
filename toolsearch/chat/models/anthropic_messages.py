"""Anthropic's Messages: thinking that is given back as it was signed, tools loaded by reference.

A turn of the model is one reply, or several where the API pauses it while tools of its own are running.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, cast

from toolsearch.chat.model import ChatOptions, Prompt, ResponseFormat
from toolsearch.chat.models.sdk import (
    Clients,
    betas_in,
    cloud_of,
    laid_over,
    refuse_deferred,
    require_sdk,
    schema_to_send,
    translated,
    with_betas,
    with_possible_choice,
)
from toolsearch.errors import BadSettingError, ChatModelError
from toolsearch.threads import in_thread
from toolsearch.wire import anthropic
from toolsearch.wire.answers import ChatChunk, ChatResponse, last_chunk
from toolsearch.wire.anthropic.answers import read_event, read_reply, with_container
from toolsearch.wire.capabilities import Capabilities, Cloud, Endpoint, RevealMode, capabilities_of
from toolsearch.wire.formats import RenderedTools, render_tools
from toolsearch.wire.messages import AssistantMessage, ProviderItems, verbatim_items
from toolsearch.wire.native_search import NativeSearch
from toolsearch.wire.sendable import sendable

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.lib.streaming import ParsedMessageStreamEvent


class AnthropicTurn:
    """The next *request* of a turn, and the replies so far.

    A paused reply is sent back unchanged, with its container, at most *max_continuations* times. After that, or if it
    calls our tools, it is the answer, with the finish reason "other". The answer's metadata contains *metadata*.
    """

    def __init__(
        self, request: Mapping[str, Any], max_continuations: int, metadata: Mapping[str, Any] | None = None
    ) -> None:
        self.request = dict(request)
        self._metadata = metadata or {}
        self._continuations_left = max_continuations
        self._parts: list[ChatResponse] = []

    def add(self, reply: object) -> bool:
        """Take *reply*, an SDK's message; return whether the turn goes on with another request."""
        part = read_reply(reply)
        self._parts.append(part.answer)
        if not part.to_send_back or not self._continuations_left:
            return False
        self._continuations_left -= 1
        self.request = anthropic.continued(self.request, part.to_send_back)
        if part.container is not None:
            self.request = with_container(self.request, part.container)
        return True

    def response(self) -> ChatResponse:
        """Return all replies as the one message that they are, with the sum of their usage."""
        last = self._parts[-1]
        messages = [part.message for part in self._parts]
        items = tuple(item for message in messages for item in verbatim_items(message, anthropic.PROVIDER))
        text = "".join(message.text for message in messages)
        return ChatResponse(
            AssistantMessage(text, last.message.tool_calls, ProviderItems(anthropic.PROVIDER, items)),
            last.finish_reason,
            reduce(add, (part.usage for part in self._parts)),
            metadata={**last.metadata, **self._metadata},
        )


_OWN_HOST = "api.anthropic.com"


class AnthropicModel:
    """A Claude model.

    client              your own client, for one event loop only; by default made from *base_url* and *api_key*, or from
                        what the SDK finds in the environment
    max_tokens          for prompts that set none, as the API wants one
    max_continuations   how often a reply that the API paused (``pause_turn``) is sent back so that the model goes on;
                        its parts are one answer, and their usage is added up
    cache_prompt        whether to ask the API to cache prompts for the next requests, which it does not do by itself;
                        `ChatOptions.extra` may ask for it otherwise, such as for an hour
    betas               names for ``anthropic-beta`` besides those that the messages and tools need, and those in
                        the client's own headers and `ChatOptions.extra` name
    cloud               who serves the model; None means by the client's class, and "other" for any address that is not
                        Anthropic's own. Use "" for a proxy that passes everything on to Anthropic unchanged
    native_tool_search  whether the model takes deferred tools and references to them; None: by its name and cloud
    native_response_format  whether the model can be held to a schema; None: by its name

    Deferred tools are in every request, in the given order, and are read by the model only once a result of
    ``toolSearchTool`` refers to them, so the prompt cache holds.

    Newer models accept changes of tools and system messages in the midst of a conversation, but refuse a tool choice
    that forces a call. No model accepts a choice of a tool that only a message has added or described. Such choices are
    sent as "auto": a warning is logged, and the answer's metadata contains ``{"choice_sent": "auto"}``.
    """

    provider = anthropic.PROVIDER

    def __init__(
        self,
        model: str,
        *,
        client: AsyncAnthropic | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        max_tokens: int = 8_192,
        max_continuations: int = 5,
        cache_prompt: bool = False,
        betas: Sequence[str] = (),
        cloud: Cloud | None = None,
        native_tool_search: bool | None = None,
        native_response_format: bool | None = None,
        default_options: ChatOptions | None = None,
    ) -> None:
        require_sdk("anthropic", "a model of Anthropic")
        from anthropic import AnthropicError, AsyncAnthropic

        if max_continuations < 0:
            raise BadSettingError(f"max_continuations must be 0 or more, got {max_continuations}")
        self.model = model
        self.default_options = default_options or ChatOptions()
        with translated(model, AnthropicError):
            self._clients = Clients(client, lambda: AsyncAnthropic(base_url=base_url, api_key=api_key))
        self._max_tokens = max_tokens
        self._max_continuations = max_continuations
        self._cache_prompt = cache_prompt
        self._betas = tuple(betas)
        self._deferred = RenderedTools(anthropic.PROVIDER, anthropic.DEFERRED)
        if cloud is None:
            cloud = cloud_of(self._clients.first, _OWN_HOST)
        self.endpoint = Endpoint(anthropic.PROVIDER, model, cloud, native_tool_search)
        known = capabilities_of(self.endpoint)
        self.native_tool_search = "deferred" in known.modes
        self.native_response_format = known.native_schema if native_response_format is None else native_response_format

    async def close(self) -> None:
        await self._clients.close()

    async def call(self, prompt: Prompt) -> ChatResponse:
        from anthropic import AnthropicError

        turn = await self._turn(prompt)
        with translated(turn.request["model"], AnthropicError):
            while turn.add(cast("object", await self._clients.get().messages.create(**turn.request))):
                pass
        return turn.response()

    async def stream(self, prompt: Prompt) -> AsyncIterator[ChatChunk]:
        from anthropic import AnthropicError

        turn = await self._turn(prompt)
        is_over = False
        with translated(turn.request["model"], AnthropicError):
            while not is_over:
                reply: object = None
                async with self._clients.get().messages.stream(**turn.request) as events:
                    async for event in events:
                        if event.type == "message_stop":
                            reply = event.message
                            break
                        chunk = read_event(cast("ParsedMessageStreamEvent[None]", event))
                        if chunk is not None:
                            yield chunk
                if reply is None:
                    raise ChatModelError("the stream ended in the midst of the answer; ask again")
                is_over = not turn.add(reply)
        # The connection is closed first, since the caller may stop reading after this chunk.
        yield last_chunk(turn.response())

    async def _turn(self, prompt: Prompt) -> AnthropicTurn:
        model = prompt.options.model or self.model
        known = capabilities_of(replace(self.endpoint, model=model))
        asked, told = with_possible_choice(prompt, known, model)
        deferred = asked.options.deferred_tools  # converting thousands of tools would hold up the event loop
        request = await in_thread(self._request, asked, known) if deferred else self._request(asked, known)
        return AnthropicTurn(request, self._max_continuations, told)

    def _request(self, prompt: Prompt, known: Capabilities) -> dict[str, Any]:
        options = prompt.options
        model = options.model or self.model
        if "deferred" not in known.modes:
            refuse_deferred(model, options.deferred_tools)
        shown = [tool.definition for tool in options.tools]
        deferred = {tool.name: tool.definition for tool in options.deferred_tools}
        listed = {definition.name for definition in shown}
        messages = sendable(prompt.messages, known, listed=listed, deferred=deferred)
        request: dict[str, Any] = {
            "model": model,
            "max_tokens": options.max_tokens or self._max_tokens,
            **anthropic.write_messages(messages, NativeSearch(deferred)),
        }
        if shown:
            request["tools"] = [*render_tools(shown, anthropic.PROVIDER), *self._deferred.of(deferred.values())]
            request |= anthropic.write_tool_choice(options.tool_choice)
        request |= laid_over(self._format(model, options.response_format), options.extra)
        if self._cache_prompt:
            request = anthropic.with_cache_mark(request, marks_requests=known.marks_requests)
        request["extra_headers"] = self._headers(request, known)
        if options.temperature is not None:  # newer models refuse it, so the SDK has no argument for it any more
            request["extra_body"] = {"temperature": options.temperature, **request.get("extra_body", {})}
        return request

    def _headers(self, request: Mapping[str, Any], known: Capabilities) -> dict[str, str]:
        """The headers: betas that *request* needs, and betas of the user. Betas that nobody needs are not named."""
        used: dict[RevealMode, bool] = {
            "messages": anthropic.has_changes(request["messages"]),
            "deferred": any(anthropic.DEFERRED.items() <= tool.items() for tool in request.get("tools", ())),
        }
        needed = [beta for mode, is_used in used.items() if is_used for beta in betas_in(known.headers.get(mode, {}))]
        given: Mapping[str, str] = request.get("extra_headers", {})
        if not needed and not self._betas:
            return dict(given)  # the SDK itself sends the client's betas
        return with_betas(given, [*betas_in(self._clients.first.default_headers), *self._betas, *needed])

    def _format(self, model: str, wanted: ResponseFormat[Any] | None) -> dict[str, Any]:
        if wanted is None or schema_to_send(model, wanted, is_native=self.native_response_format) is None:
            return {}
        from anthropic import transform_schema

        return anthropic.write_response_format(transform_schema(dict(wanted.schema)))
