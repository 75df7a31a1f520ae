"""A session is read, is worked with in memory, and is written."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from toolsearch.sessions.conversation import Conversation
from toolsearch.sessions.store import SessionStore


class UnitOfWork:
    """``with`` or ``async with`` it: a session is read, is worked with in memory, and is written when the work is done.

    *begin* reads it. Where that can take long, ``async with`` reads and writes in a thread. Meanwhile others may work
    with the session as well. Work that fails is not written; what it has done stays in memory, until other work is.
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
