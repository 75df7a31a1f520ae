"""Memory of a chat: the newest exchanges of each conversation, kept in a store of messages.

Its advisor puts earlier messages in front of a request, and stores the new ones after the answer. A store may be an
SQLite file, which holds messages as JSON. Messages that are read back equal those that were written.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol

from toolsearch.calling.plain_json import json_text, to_json
from toolsearch.chat.advisor import CONVERSATION_ID, MEMORY_ORDER, TURN_MESSAGES, Chain, ChatRequest
from toolsearch.chat.model import closing
from toolsearch.errors import BadSettingError
from toolsearch.option_values import identity
from toolsearch.sessions.savings import is_answer_beforehand
from toolsearch.storage.memory import InMemoryMessageStore
from toolsearch.storage.sessions import MessageStore
from toolsearch.storage.sqlite.stores import SqliteMessages
from toolsearch.tools.calls import ToolCall, ToolResult
from toolsearch.tools.definition import ToolDefinition
from toolsearch.wire.answers import ChatChunk, ChatResponse, ChunkAggregator
from toolsearch.wire.messages import (
    AssistantMessage,
    Message,
    ProviderItems,
    SystemMessage,
    ToolChangeMessage,
    ToolMessage,
    UserMessage,
)
from toolsearch.wire.sendable import without_bound_thinking


class ChatMemory(Protocol):
    """Remembers conversations. Safe to share between threads."""

    def add(self, conversation_id: str, messages: Sequence[Message]) -> None:
        """Append *messages* in one step, so that no other caller's messages come between them."""
        ...

    def get(self, conversation_id: str) -> list[Message]:
        """Return the remembered messages, oldest first; ``[]`` for an unknown conversation."""
        ...

    def clear(self, conversation_id: str) -> None: ...


class MessageWindowMemory:
    """Remembers the newest exchanges of a conversation, at most *max_messages* messages of them, in *store*.

    An exchange is a user's message and everything up to the user's next message. So a call stays with its result, and a
    change of tools with the message before it. The newest exchange is kept even if it alone is longer. The newest
    system message is kept, at the front; it counts as well. Raises BadSettingError for a conversation's id that is
    blank or not a text.
    """

    def __init__(self, store: MessageStore[Message] | None = None, *, max_messages: int = 20) -> None:
        if max_messages < 1:
            raise BadSettingError(f"max_messages must be 1 or more, got {max_messages}")
        self._store: MessageStore[Message] = store or InMemoryMessageStore()
        self._max_messages = max_messages

    def add(self, conversation_id: str, messages: Sequence[Message]) -> None:
        identity(conversation_id, "conversation_id")
        self._store.update(conversation_id, lambda kept: window([*kept, *messages], self._max_messages))

    def get(self, conversation_id: str) -> list[Message]:
        """As `ChatMemory.get`, without calls that lack a result and results that lack a call, since no model accepts
        them.
        """
        return paired(self._store.load(identity(conversation_id, "conversation_id")))

    def clear(self, conversation_id: str) -> None:
        self._store.delete(identity(conversation_id, "conversation_id"))


def window(messages: Sequence[Message], max_messages: int) -> list[Message]:
    """Return the newest system message and as many of the newest exchanges as fit, the last one in any case.

    If others are dropped, the thoughts in these messages go, too, since providers may bind them to the others.
    """
    systems = [message for message in messages if isinstance(message, SystemMessage)][-1:]
    exchanges = _exchanges([message for message in messages if not isinstance(message, SystemMessage)])
    room = max_messages - len(systems)
    kept: list[Message] = []
    for exchange in reversed(exchanges):
        if kept and len(kept) + len(exchange) > room:
            kept = without_bound_thinking(kept)
            break
        kept = exchange + kept
    return [*systems, *kept]


def paired(messages: Sequence[Message]) -> list[Message]:
    """Return *messages* without calls that are not answered by the next message, and answers without their calls.

    A change of tools is dropped with the message before it. All thoughts are dropped as soon as anything is.
    """
    kept: list[Message] = []
    is_kept = False
    for message, next_message in zip_longest(messages, messages[1:]):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            is_kept = _answers(next_message, message)
        elif isinstance(message, ToolMessage):
            is_kept = bool(kept) and _answers(message, kept[-1])
        elif not isinstance(message, ToolChangeMessage):
            is_kept = True
        if is_kept:
            kept.append(message)
    return kept if len(kept) == len(messages) else without_bound_thinking(kept)


def _exchanges(messages: Iterable[Message]) -> list[list[Message]]:
    exchanges: list[list[Message]] = []
    for message in messages:
        is_next = isinstance(message, UserMessage) and not (exchanges and isinstance(exchanges[-1][-1], UserMessage))
        if is_next or not exchanges:
            exchanges.append([])
        exchanges[-1].append(message)
    return exchanges


def _answers(message: Message | None, asked: Message) -> bool:
    return (
        isinstance(message, ToolMessage)
        and isinstance(asked, AssistantMessage)
        and {call.id for call in asked.tool_calls} == {result.call_id for result in message.results}
    )


class MemoryAdvisor:
    """Remembers the conversation that the context names under ``conversation_id``.

    A turn is stored once, as a whole, after its answer. So a turn that fails stores nothing, and turns of one
    conversation that run at the same time do not mix. System messages belong to the request and are not stored.

    It works outside the tool loop (an order below the loop's) and inside it (an order above). Inside the loop it does
    not see what a tool returns directly, and does not remember such a turn.

    tool_messages  whether calls, their results, and changes of tools are remembered, or only the messages of the
                   user and the model
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
    """A turn: *messages* from the user's message on, with those that the tool loop has added."""

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


_ROLES: dict[str, type[Message]] = {
    "system": SystemMessage,
    "user": UserMessage,
    "assistant": AssistantMessage,
    "tool": ToolMessage,
    "tool_change": ToolChangeMessage,
}


def message_to_text(message: Message) -> str:
    """Raises ToolExecutionError if a block of *message* has no JSON form."""
    role = next(role for role, kind in _ROLES.items() if isinstance(message, kind))
    return json_text({"role": role} | to_json(message))


def message_from_text(text: str) -> Message:
    """Raises ValueError, TypeError, KeyError or AttributeError if *text* is no message."""
    values: dict[str, Any] = json.loads(text)
    match values.pop("role"):
        case "system":
            return SystemMessage(**values)
        case "user":
            return UserMessage(values["text"], tuple(values["content"]))
        case "assistant":
            calls = tuple(ToolCall(**call) for call in values["tool_calls"])
            return AssistantMessage(values["text"], calls, _provider_items(values["verbatim"]))
        case "tool":
            return ToolMessage(tuple(_result(result) for result in values["results"]))
        case "tool_change":
            added = tuple(ToolDefinition(**definition) for definition in values["added"])
            return ToolChangeMessage(added, tuple(values["removed"]))
        case role:
            raise ValueError(f"no such role: {role!r}")


def _provider_items(values: dict[str, Any] | None) -> ProviderItems | None:
    return ProviderItems(values["provider"], tuple(values["items"])) if values is not None else None


def _result(values: dict[str, Any]) -> ToolResult:
    content = tuple(values.pop("content"))
    return ToolResult(content=content, **values)


class SqliteMessageStore(SqliteMessages[Message]):
    """A `MessageStore` in one file. Failures to read or write are a StorageError."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path, write=message_to_text, read=message_from_text)
