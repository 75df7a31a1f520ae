"""A model's turn at Anthropic: one reply, or several where the API pauses it while tools of its own are running."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import add
from typing import Any

from toolsearch.wire import anthropic
from toolsearch.wire.answers import ChatResponse
from toolsearch.wire.anthropic.answers import read_reply, with_container
from toolsearch.wire.messages import AssistantMessage, ProviderItems, verbatim_items


class AnthropicTurn:
    """What to ask, in *request*, and what has come so far.

    A paused reply is sent back as it came, with its container, at most *max_continuations* times; after that, or where
    it calls tools of ours, it is the answer, with the finish reason "other". The answer's metadata holds *metadata*.
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
            {**last.metadata, **self._metadata},
        )
