"""Asks a model again if its answer is not of the type that was asked for, and tells it what was wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

from toolsearch.chat.advisor import MEMORY_ORDER, TOOL_LOOP_ORDER, Chain, ChatRequest
from toolsearch.chat.response_format import ResponseFormat
from toolsearch.errors import BadAnswerError
from toolsearch.wire.answers import ChatChunk, ChatResponse, FinishReason
from toolsearch.wire.messages import UserMessage

_ANSWERED: tuple[FinishReason, ...] = ("stop", "length")  # by the model itself, so that it can do better


@dataclass(frozen=True, slots=True)
class TypedAnswerAdvisor:
    """Asks at most *attempts* times, and returns the last answer, whether it fits or not.

    It stands between memory and the tool loop, so that no memory keeps the answers that did not fit. The usage and the
    steps of all attempts are added up. A stream is passed on as it comes.
    """

    wanted: ResponseFormat[Any]
    attempts: int
    order: int = (MEMORY_ORDER + TOOL_LOOP_ORDER) // 2

    async def call(self, request: ChatRequest, chain: Chain) -> ChatResponse:
        response = await chain.call(request)
        for _ in range(self.attempts - 1):
            complaint = self._complaint(response)
            if not complaint:
                break
            said = (*response.steps, response.message, UserMessage(complaint))
            request = replace(request, prompt=replace(request.prompt, messages=request.prompt.messages + said))
            again = await chain.call(request)
            response = replace(again, usage=response.usage + again.usage, steps=response.steps + again.steps)
        return response

    def stream(self, request: ChatRequest, chain: Chain) -> AsyncIterator[ChatChunk]:
        return chain.stream(request)

    def _complaint(self, response: ChatResponse) -> str:
        """What to tell the model of *response*; "" if it fits, or is not for the model to improve."""
        if response.message.tool_calls or response.finish_reason not in _ANSWERED:
            return ""
        try:
            self.wanted.read(response)
        except BadAnswerError as error:
            return f"Your answer cannot be used: {error}. Answer again, with nothing but the corrected JSON."
        return ""
