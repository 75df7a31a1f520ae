"""What a transport is to a session: messages in and out, and of those that nobody asked for only so many a second."""

from __future__ import annotations

from contextvars import Context
from types import TracebackType
from typing import Self, TypeAlias

import anyio
from mcp.client._transport import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCResponse

Reading: TypeAlias = ReadStream[SessionMessage | Exception]
Streams: TypeAlias = tuple[Reading, WriteStream[SessionMessage]]

_HANDED_ON_PER_S = 500
_READ_PER_S = 5_000
_MOST_HELD = 1_000
_PASSING = ("notifications/message", "notifications/progress")  # of which a later one makes up for an earlier one


class PacedReading:
    """Reads on, but hands on no more than 500 messages a second that nobody asked for: notifications, a server's own
    requests, and what is no message at all. Answers are never held up by these.

    Beyond that number logs and progress are left out, as is junk; the rest comes in the next second, the same
    notification once. A server that sends more than 5,000 a second fills its own pipe, and waits; so do its own
    answers, and nobody else's.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._second_ends_at = 0.0
        self._read = 0  # in this second, as is the next
        self._handed_on = 0
        self._held: dict[str, tuple[SessionMessage, Context | None]] = {}
        self._context: Context | None = None

    @property
    def last_context(self) -> Context | None:
        """The context that the last message was sent in, where the transport tells: whose stream it came on."""
        return self._context

    async def receive(self) -> SessionMessage | Exception:
        while True:
            self._begin_second()
            if self._held and self._handed_on < _HANDED_ON_PER_S:
                self._handed_on += 1
                item, self._context = self._held.pop(next(iter(self._held)))
                return item
            arrived = await self._arriving()
            if arrived is not None and (_is_answer(arrived) or self._may_pass(arrived)):
                self._context = self._context_of_arrived
                return arrived
            if self._read >= _READ_PER_S or len(self._held) >= _MOST_HELD:
                await anyio.sleep(self._left_s)

    async def _arriving(self) -> SessionMessage | Exception | None:
        """The next message, or None where it is time first for one that is held."""
        if not self._held:
            return await self._reading.receive()
        with anyio.move_on_after(self._left_s):
            return await self._reading.receive()
        return None

    def _may_pass(self, item: SessionMessage | Exception) -> bool:
        """Whether *item* is one of the first so many of this second; another is held or left out."""
        self._begin_second()
        self._read += 1
        if self._handed_on < _HANDED_ON_PER_S:
            self._handed_on += 1
            return True
        if isinstance(item, SessionMessage) and (key := _key(item)) is not None:
            self._held.setdefault(key, (item, self._context_of_arrived))
        return False

    def _begin_second(self) -> None:
        if self._left_s <= 0:
            self._second_ends_at = anyio.current_time() + 1
            self._read = self._handed_on = 0

    @property
    def _left_s(self) -> float:
        return self._second_ends_at - anyio.current_time()

    @property
    def _context_of_arrived(self) -> Context | None:
        return getattr(self._reading, "last_context", None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        await self._reading.aclose()

    async def __aenter__(self) -> Self:
        await self._reading.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._reading.__aexit__(kind, error, trace)


def _is_answer(item: SessionMessage | Exception) -> bool:
    return isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse | JSONRPCError)


def _key(item: SessionMessage) -> str | None:
    """The same for messages of which one says it all; None for what is as well left out."""
    message = item.message
    if isinstance(message, JSONRPCNotification) and message.method in _PASSING:
        return None
    return message.model_dump_json(exclude_none=True)
