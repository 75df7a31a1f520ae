"""Where conversations outlive the process: the messages of each, whatever a message is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

Message = TypeVar("Message")


class MessageStore(Protocol[Message]):
    """Where a memory keeps its messages. Safe to share between threads. Each method may raise MessageStoreError."""

    def load(self, conversation_id: str) -> list[Message]:
        """``[]`` for a conversation that never was."""
        ...

    def update(self, conversation_id: str, change: Callable[[list[Message]], list[Message]]) -> None:
        """Replace the messages by what *change* makes of them; nobody else writes meanwhile."""
        ...

    def delete(self, conversation_id: str) -> None:
        """Does nothing for a conversation that is not there."""
        ...
