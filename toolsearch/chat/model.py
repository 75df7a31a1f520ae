"""The port to a chat model: what it is asked, and how."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from toolsearch.chat.response_format import ResponseFormat
from toolsearch.tools.definition import Tool
from toolsearch.wire.answers import ChatChunk, ChatResponse
from toolsearch.wire.capabilities import Endpoint
from toolsearch.wire.messages import Message


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """How to answer. None leaves a choice to the model's own default.

    tools           what the model may call now, in the order in which it is shown
    deferred_tools  what a native tool search may load: given only to models with `native_tool_search`
    tool_choice     "auto", "none", "required", or the name of a tool
    tool_context    what the tools' `ToolContext` holds; no model sees it
    extra           further arguments for the provider's SDK, as it names them
    response_format what the answer has to be, made by `ResponseFormat.of`; its `read` makes a value of the answer
    """

    model: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    tools: tuple[Tool, ...] = ()
    deferred_tools: tuple[Tool, ...] = ()
    tool_choice: str | None = None
    tool_context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    response_format: ResponseFormat[Any] | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    messages: tuple[Message, ...]
    options: ChatOptions = ChatOptions()


class ChatModel(Protocol):
    """A model of some provider. Safe to share between tasks. Raises ChatModelError for what the provider refuses.

    One whose provider holds answers to a schema says so by an attribute ``native_response_format = True``, and sends it
    `ChatOptions.response_format`. Other models are told of it in words, by the client.

    One that has options for every client, tools among them, has them in an attribute `default_options`: what a client
    and a request say goes before them, and tools and contexts are merged. To a prompt of your own they are not added.
    """

    @property
    def provider(self) -> str:
        """openai, openai-responses or anthropic; marks what only this provider understands."""
        ...

    @property
    def endpoint(self) -> Endpoint:
        """Where requests go that name no other model; `capabilities_of` says what is taken there."""
        ...

    @property
    def native_tool_search(self) -> bool:
        """Whether this model can load tools in the midst of a conversation and keep its prompt cache."""
        ...

    async def call(self, prompt: Prompt) -> ChatResponse: ...

    def stream(self, prompt: Prompt) -> AsyncIterator[ChatChunk]:
        """The same answer in pieces. Leaving the iterator early ends the request."""
        ...
