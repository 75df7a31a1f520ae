"""The two streams of messages that a transport gives a session. The messages of a server are limited in number, and its
secrets are removed from them.
"""

from __future__ import annotations

from contextvars import Context
from dataclasses import replace
from types import TracebackType
from typing import Self, TypeAlias

import anyio
from mcp.client._transport import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCResponse

from toolsearch.upstreams.config import McpServer
from toolsearch.upstreams.secrets import redacted, redacted_json

MessageStream: TypeAlias = ReadStream[SessionMessage | Exception]
Streams: TypeAlias = tuple[MessageStream, WriteStream[SessionMessage]]

_MOST_AT_ONCE = 500
# Each message costs a busy machine 2 ms, and a call whose server sends thousands must not wait for that.
_HANDED_ON_PER_S = 100
_READ_PER_S = 5_000
_MOST_HELD = 1_000
# Later messages of these kinds make up for dropped ones.
_DROPPABLE = ("notifications/message", "notifications/progress")


class PacedReading:
    """Passes on 500 unrequested messages at once and 100 a second in the long run: notifications, the server's own
    requests, and junk.

    These never delay answers. Beyond the limit, log messages, progress and junk are dropped; the rest is passed on in
    the next second, equal notifications once. Reading stops at 5,000 messages a second, so that the server has to wait;
    this delays its own answers, but no other server's.

    The secrets of *server* are replaced by ``***`` in all that it sends: results, listings, questions, notifications
    and errors.
    """

    def __init__(self, reading: MessageStream, server: McpServer) -> None:
        self._reading = reading
        self._server = server
        self._second_ends_at = 0.0
        self._read = 0  # messages read in this second
        self._may_hand_on = _MOST_AT_ONCE
        self._held: dict[str, tuple[SessionMessage, Context | None]] = {}
        self._context: Context | None = None

    @property
    def last_context(self) -> Context | None:
        """The context of the last message, if the transport has it: it shows on which request's stream the message
        came.
        """
        return self._context

    async def receive(self) -> SessionMessage | Exception:
        while True:
            self._begin_second()
            if self._held and self._may_hand_on:
                self._may_hand_on -= 1
                item, self._context = self._held.pop(next(iter(self._held)))
                return item
            arrived = await self._arriving()
            if arrived is not None and (_is_answer(arrived) or self._may_pass(arrived)):
                self._context = self._context_of_arrived
                return arrived
            if self._read >= _READ_PER_S or len(self._held) >= _MOST_HELD:
                await anyio.sleep(self._left_s)

    async def _arriving(self) -> SessionMessage | Exception | None:
        """The next message, or None when it is time to pass on a message that was held back."""
        if not self._held:
            return self._without_secrets(await self._reading.receive())
        with anyio.move_on_after(self._left_s):
            return self._without_secrets(await self._reading.receive())
        return None

    def _without_secrets(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        secrets = self._server.certain_secrets
        if isinstance(item, Exception) or not self._server.secrets:
            return item
        message = item.message
        if isinstance(message, JSONRPCError):  # the message is for people, where one word too many removed does no harm
            text, data = redacted(message.error.message, self._server.secrets), message.error.data
            error = message.error.model_copy(
                update={"message": text, "data": redacted_json(data, self._server.secrets)}
            )
            return replace(item, message=message.model_copy(update={"error": error}))
        part = "result" if isinstance(message, JSONRPCResponse) else "params"
        sent = getattr(message, part)
        shown = redacted_json(sent, secrets)
        return item if shown is sent else replace(item, message=message.model_copy(update={part: shown}))

    def _may_pass(self, item: SessionMessage | Exception) -> bool:
        """Whether *item* is within the limit. Otherwise it is held back or dropped."""
        self._begin_second()
        self._read += 1
        if self._may_hand_on:
            self._may_hand_on -= 1
            return True
        if isinstance(item, SessionMessage) and (key := _key(item)) is not None:
            self._held.setdefault(key, (item, self._context_of_arrived))
        return False

    def _begin_second(self) -> None:
        if self._left_s <= 0:
            seconds = int(-self._left_s) + 1
            self._second_ends_at = anyio.current_time() + 1
            self._read = 0
            self._may_hand_on = min(self._may_hand_on + seconds * _HANDED_ON_PER_S, _MOST_AT_ONCE)

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
    """Equal for equal messages; None for a message that may be dropped."""
    message = item.message
    if isinstance(message, JSONRPCNotification) and message.method in _DROPPABLE:
        return None
    return message.model_dump_json(exclude_none=True)
