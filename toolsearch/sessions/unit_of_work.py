"""Reads a session, lets the caller work with it in memory, and writes it."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from toolsearch.sessions.conversation import Conversation
from toolsearch.sessions.store import SessionStore


class UnitOfWork:
    """A context manager, ``with`` or ``async with``: it reads a session by *begin*, and writes it when the block is
    done.

    ``async with`` reads and writes in a thread if that can take long. Others may work with the session meanwhile. If
    the block fails, nothing is written; its changes stay in memory until other work writes them.
    """

    def __init__(self, sessions: SessionStore, begin: Callable[[], Conversation]) -> None:
        self._sessions = sessions
        self._begin = begin
        self._conversation: Conversation | None = None

    def __enter__(self) -> Conversation:
        self._conversation = self._begin()
        return self._conversation

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._conversation is not None:
            self._conversation.save()

    async def __aenter__(self) -> Conversation:
        self._conversation = await self._sessions.run(self._begin)
        return self._conversation

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._conversation is not None:
            await self._conversation.written()
