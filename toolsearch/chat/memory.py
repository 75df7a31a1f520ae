"""Memory of a chat: the newest exchanges of each conversation, kept in a store of messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Protocol

from toolsearch.errors import BadSettingError
from toolsearch.option_values import identity
from toolsearch.storage.memory import InMemoryMessageStore
from toolsearch.storage.messages import MessageStore
from toolsearch.wire.bound_thinking import without_bound_thinking
from toolsearch.wire.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolChangeMessage,
    ToolMessage,
    UserMessage,
)


class ChatMemory(Protocol):
    """Remembers conversations. Safe to share between threads."""

    def add(self, conversation_id: str, messages: Sequence[Message]) -> None:
        """Append *messages*, all at once: those of another caller do not come between them."""
        ...

    def get(self, conversation_id: str) -> list[Message]:
        """Return what is remembered, oldest first; ``[]`` for a conversation that never was."""
        ...

    def clear(self, conversation_id: str) -> None: ...


class MessageWindowMemory:
    """Remembers the newest exchanges of a conversation, at most *max_messages* messages of them, in *store*.

    An exchange is what a user says and all that follows it until they speak again, so no call is ever parted from its
    result, and no change of tools from what it follows; the newest exchange is kept even if it alone is longer. Of
    system messages the newest is kept, at the front; it counts as well. Raises BadSettingError for a conversation's id
    that is no text, or blank.
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
        """As `ChatMemory.get`; without calls that have no result, and the reverse, since no model takes them."""
        return paired(self._store.load(identity(conversation_id, "conversation_id")))

    def clear(self, conversation_id: str) -> None:
        self._store.delete(identity(conversation_id, "conversation_id"))


def window(messages: Sequence[Message], max_messages: int) -> list[Message]:
    """Return the newest system message and as many of the newest exchanges as fit, the last one in any case.

    What was thought in these goes with the others, since providers may bind it to them.
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

    A change of tools goes with the message that it follows, and what was thought goes as soon as anything does.
    """
    kept: list[Message] = []
    is_kept = False
    for message, following in zip_longest(messages, messages[1:]):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            is_kept = _answers(following, message)
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
