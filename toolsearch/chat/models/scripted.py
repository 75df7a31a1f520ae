"""A model with prepared answers: for tests, and for examples that run without a key."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

from toolsearch.chat.model import ChatOptions, Prompt
from toolsearch.errors import ChatModelError
from toolsearch.tools.calls import ToolCall
from toolsearch.tools.json_types import JsonObject
from toolsearch.wire.answers import ChatChunk, ChatResponse, ToolCallDelta
from toolsearch.wire.capabilities import Endpoint
from toolsearch.wire.messages import AssistantMessage

ScriptedReply: TypeAlias = str | ChatResponse | Exception | Callable[[Prompt], "str | ChatResponse"]


class ScriptedModel:
    """Gives *replies* in order, whole or in pieces, and keeps the prompts it was given in `prompts`.

    A text is an answer, an exception is raised, and a function makes a reply from the prompt. Raises ChatModelError
    when there are no more replies. It has the capabilities of *endpoint*.
    """

    def __init__(
        self,
        *replies: ScriptedReply,
        native_tool_search: bool = False,
        default_options: ChatOptions | None = None,
        endpoint: Endpoint = Endpoint("scripted"),  # noqa: B008  the default is frozen
    ) -> None:
        self.endpoint = endpoint
        self.default_options = default_options or ChatOptions()
        self.prompts: list[Prompt] = []
        self._replies = iter(replies)
        self._native_tool_search = native_tool_search

    @property
    def provider(self) -> str:
        return "scripted"

    @property
    def native_tool_search(self) -> bool:
        return self._native_tool_search

    async def call(self, prompt: Prompt) -> ChatResponse:
        return self._reply(prompt)

    async def stream(self, prompt: Prompt) -> AsyncIterator[ChatChunk]:
        """Text comes word by word, and each call in two pieces, as providers send them."""
        response = self._reply(prompt)
        for piece in _pieces(response.text):
            yield ChatChunk(text=piece)
        for index, call in enumerate(response.message.tool_calls):
            yield ChatChunk(tool_calls=(ToolCallDelta(index, id=call.id, name=call.name),))
            yield ChatChunk(tool_calls=(ToolCallDelta(index, arguments=_as_text(call.arguments)),))
        yield ChatChunk(finish_reason=response.finish_reason, usage=response.usage, message=response.message)

    def _reply(self, prompt: Prompt) -> ChatResponse:
        self.prompts.append(prompt)
        try:
            reply = next(self._replies)
        except StopIteration:
            raise ChatModelError(
                f"the script ended before request {len(self.prompts)}; give the model one more reply"
            ) from None
        if isinstance(reply, Exception):
            raise reply
        if callable(reply):
            reply = reply(prompt)
        return ChatResponse(AssistantMessage(reply)) if isinstance(reply, str) else reply


def scripted_calls(*wanted: tuple[str, JsonObject], text: str = "") -> ChatResponse:
    """Return the reply of a model that wants tools called, each a name and arguments; ids are ``call_1`` and so on."""
    asked = tuple(
        ToolCall(f"call_{number}", name, json.dumps(arguments)) for number, (name, arguments) in enumerate(wanted, 1)
    )
    return ChatResponse(AssistantMessage(text, asked), "tool_calls")


def _pieces(text: str) -> list[str]:
    """Words, each with the space before it, so that joined they are *text*."""
    first, *others = text.split(" ")
    return [piece for piece in (first, *(f" {word}" for word in others)) if piece]


def _as_text(arguments: str | JsonObject) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)
