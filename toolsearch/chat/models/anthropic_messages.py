"""Anthropic's Messages: thinking that is given back as it was signed, tools loaded by reference."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from toolsearch.chat.model import ChatOptions, Prompt
from toolsearch.chat.models.anthropic_turn import PROVIDER, AnthropicTurn, taken_back
from toolsearch.chat.models.families import claude_searches_natively
from toolsearch.chat.models.images import anthropic_content
from toolsearch.chat.models.sdk import (
    Clients,
    arguments_object,
    refuse_deferred,
    require_sdk,
    translated,
    verbatim_items,
)
from toolsearch.chat.tool_search_prompt import options_to_send
from toolsearch.errors import BadSettingError, ChatModelError
from toolsearch.threads import in_thread
from toolsearch.tools.json_types import Json
from toolsearch.wire.aggregate import last_chunk
from toolsearch.wire.answers import ChatChunk, ChatResponse, ToolCallDelta
from toolsearch.wire.formats import RenderedTools, render_results, render_tools
from toolsearch.wire.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from toolsearch.wire.native_search import NativeSearch

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.lib.streaming import ParsedMessageStreamEvent

_CHOICES = {"auto": "auto", "none": "none", "required": "any"}


class AnthropicModel:
    """A Claude model.

    client              an own client, for one event loop only; else one is made, from *base_url* and *api_key* or from
                        what the SDK finds in the environment
    max_tokens          for prompts that set none, as the API wants one
    max_continuations   how often a reply that the API paused (``pause_turn``) is sent back for the model to go on with;
                        its parts are one answer, and their usage is added up
    betas               what ``anthropic-beta`` names; deferred tools need none at Anthropic, but do at some clouds
    native_tool_search  whether the model takes deferred tools and references to them; None: by its name

    Deferred tools are in every request, in the given order, and are read by the model only once a result of
    ``toolSearchTool`` refers to them, so the prompt cache holds. To have prompts cached at all, pass
    ``ChatOptions(extra={"cache_control": {"type": "ephemeral"}})``.
    """

    provider = PROVIDER

    def __init__(
        self,
        model: str,
        *,
        client: AsyncAnthropic | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        max_tokens: int = 8_192,
        max_continuations: int = 5,
        betas: Sequence[str] = (),
        native_tool_search: bool | None = None,
    ) -> None:
        require_sdk("anthropic", "a model of Anthropic")
        from anthropic import AnthropicError, AsyncAnthropic

        if max_continuations < 0:
            raise BadSettingError(f"max_continuations must be 0 or more, got {max_continuations}")
        self.model = model
        with translated(model, AnthropicError):
            self._clients = Clients(client, lambda: AsyncAnthropic(base_url=base_url, api_key=api_key))
        self._max_tokens = max_tokens
        self._max_continuations = max_continuations
        self._headers = {"anthropic-beta": ",".join(betas)} if betas else {}
        self._deferred = RenderedTools(PROVIDER, {"defer_loading": True})
        self.native_tool_search = claude_searches_natively(model) if native_tool_search is None else native_tool_search

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
                        chunk = _chunk(cast("ParsedMessageStreamEvent[None]", event))
                        if chunk is not None:
                            yield chunk
                if reply is None:
                    raise ChatModelError("the stream ended in the midst of the answer; ask again")
                is_over = not turn.add(reply)
        yield last_chunk(turn.response())  # after the connection is closed: who has it may let go of the rest

    async def _turn(self, prompt: Prompt) -> AnthropicTurn:
        deferred = prompt.options.deferred_tools  # thousands of tools would hold up the loop
        request = await in_thread(self._request, prompt) if deferred else self._request(prompt)
        return AnthropicTurn(request, self._max_continuations)

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        options = options_to_send(prompt)
        if not self.native_tool_search:
            refuse_deferred(self.model, options.deferred_tools)
        request: dict[str, Any] = {
            "model": options.model or self.model,
            "max_tokens": options.max_tokens or self._max_tokens,
            "messages": _messages(prompt.messages, _native(options)),
            "extra_headers": self._headers,
        }
        system = [message.text for message in prompt.messages if isinstance(message, SystemMessage)]
        if any(system):
            request["system"] = "\n\n".join(filter(None, system))
        if options.tools:
            shown = render_tools([tool.definition for tool in options.tools], PROVIDER)
            request["tools"] = [*shown, *self._deferred.of([tool.definition for tool in options.deferred_tools])]
            request |= _tool_choice(options)
        request |= dict(options.extra)
        if options.temperature is not None:  # newer models refuse it, so the SDK has no argument for it any more
            request["extra_body"] = {"temperature": options.temperature, **request.get("extra_body", {})}
        return request


# Asking


def _native(options: ChatOptions) -> NativeSearch:
    return NativeSearch({tool.name: tool.definition for tool in options.deferred_tools})


def _tool_choice(options: ChatOptions) -> dict[str, Json]:
    choice = options.tool_choice
    if choice is None:
        return {}
    return {"tool_choice": {"type": _CHOICES[choice]} if choice in _CHOICES else {"type": "tool", "name": choice}}


def _messages(messages: Sequence[Message], native: NativeSearch) -> list[dict[str, Json]]:
    """The API wants roles in turn, so neighbours of one role become one message; what is empty is left out."""
    turns: list[dict[str, Json]] = []
    for message in messages:
        if isinstance(message, SystemMessage):
            continue
        role, blocks = _turn(message, native)
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _turn(message: UserMessage | AssistantMessage | ToolMessage, native: NativeSearch) -> tuple[str, list[Json]]:
    match message:
        case UserMessage():
            return "user", list(anthropic_content(message))
        case ToolMessage():
            rendered = render_results(message.results, PROVIDER, native_search=native)
            return "user", [block for turn in rendered for block in turn["content"]]
        case AssistantMessage():
            return "assistant", list(taken_back(verbatim_items(message, PROVIDER)) or _assistant(message))


def _assistant(message: AssistantMessage) -> list[dict[str, Json]]:
    said: list[dict[str, Json]] = [{"type": "text", "text": message.text}] if message.text.strip() else []
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_object(call)}
        for call in message.tool_calls
    ]
    return [*said, *calls]


# Answering


def _chunk(event: ParsedMessageStreamEvent[None]) -> ChatChunk | None:
    if event.type == "content_block_start" and event.content_block.type == "tool_use":
        begun = ToolCallDelta(event.index, event.content_block.id, event.content_block.name)
        return ChatChunk(tool_calls=(begun,))
    if event.type != "content_block_delta":
        return None
    if event.delta.type == "text_delta":
        return ChatChunk(text=event.delta.text)
    if event.delta.type == "input_json_delta" and event.delta.partial_json:
        return ChatChunk(tool_calls=(ToolCallDelta(event.index, arguments=event.delta.partial_json),))
    return None
