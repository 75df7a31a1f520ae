"""The advisor for memory: puts earlier messages in front of a request, and stores the new ones after the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

from toolsearch.chat.advisor import CONVERSATION_ID, MEMORY_ORDER, TURN_MESSAGES, Chain, ChatRequest
from toolsearch.chat.closing import closing
from toolsearch.chat.memory import ChatMemory
from toolsearch.option_values import identity
from toolsearch.sessions.request_history import is_answer_beforehand
from toolsearch.wire.aggregate import ChunkAggregator
from toolsearch.wire.answers import ChatChunk, ChatResponse
from toolsearch.wire.bound_thinking import without_bound_thinking
from toolsearch.wire.messages import AssistantMessage, Message, SystemMessage, ToolChangeMessage, ToolMessage


class MemoryAdvisor:
    """Remembers the conversation that the context names under ``conversation_id``.

    A turn is stored once, as a whole, after its answer. So a turn that fails stores nothing, and turns of one
    conversation that run at the same time do not mix. System messages belong to the request and are not stored.

    It works outside the tool loop (an order below the loop's) and inside it (an order above). Inside the loop it does
    not see what a tool returns directly, and does not remember such a turn.

    tool_messages  whether calls, their results, and what they changed of the tools are remembered, or only what the
                   user and the model said
    """

    def __init__(self, memory: ChatMemory, *, order: int = MEMORY_ORDER, tool_messages: bool = True) -> None:
        self._memory = memory
        self._order = order
        self._tool_messages = tool_messages

    @property
    def order(self) -> int:
        return self._order

    async def call(self, request: ChatRequest, chain: Chain) -> ChatResponse:
        turn = _Turn.of(request)
        response = await chain.call(await self._with_past(request, turn))
        await self._remember(turn, response)
        return response

    async def stream(self, request: ChatRequest, chain: Chain) -> AsyncIterator[ChatChunk]:
        turn = _Turn.of(request)
        pieces = ChunkAggregator()
        async with closing(chain.stream(await self._with_past(request, turn))) as chunks:
            async for chunk in chunks:
                pieces.add(chunk)
                yield chunk
        await self._remember(turn, pieces.response())

    async def _with_past(self, request: ChatRequest, turn: _Turn) -> ChatRequest:
        past = await asyncio.to_thread(self._memory.get, turn.conversation_id)
        if turn.systems:
            past = [message for message in past if not isinstance(message, SystemMessage)]
        return replace(request, prompt=replace(request.prompt, messages=(*turn.systems, *past, *turn.messages)))

    async def _remember(self, turn: _Turn, response: ChatResponse) -> None:
        if response.message.tool_calls:  # the turn goes on; its last response comes with all messages of the turn
            return
        said: Sequence[Message] = (*turn.messages, *response.steps, response.message)
        if not self._tool_messages:
            kept = [message for message in said if not _is_about_tools(message)]
            said = said if len(kept) == len(said) else without_bound_thinking(kept)
        await asyncio.to_thread(self._memory.add, turn.conversation_id, said)


@dataclass(frozen=True, slots=True)
class _Turn:
    """What a request says: *messages* from the user on, and what the tool loop has added."""

    conversation_id: str
    systems: tuple[Message, ...]
    messages: tuple[Message, ...]

    @classmethod
    def of(cls, request: ChatRequest) -> _Turn:
        conversation_id = identity(
            request.context.get(CONVERSATION_ID),
            f"the memory needs a conversation: set {CONVERSATION_ID!r} in the request's context; it",
        )
        whole: tuple[Message, ...] = request.context.get(TURN_MESSAGES, request.prompt.messages)
        return cls(
            conversation_id,
            tuple(message for message in request.prompt.messages if isinstance(message, SystemMessage)),
            tuple(message for message in whole if not isinstance(message, SystemMessage)),
        )


def _is_about_tools(message: Message) -> bool:
    if isinstance(message, AssistantMessage):
        return bool(message.tool_calls)
    return isinstance(message, ToolMessage | ToolChangeMessage) or is_answer_beforehand(message)
