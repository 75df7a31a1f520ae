"""What a transport is to a session: messages in and out, and of those that nobody asked for only so many a second."""

from __future__ import annotations

from contextvars import Context
from types import TracebackType
from typing import Self, TypeAlias

import anyio
from mcp.client._transport import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCResponse

Reading: TypeAlias = ReadStream[SessionMessage | Exception]
Streams: TypeAlias = tuple[Reading, WriteStream[SessionMessage]]

_UNASKED_PER_S = 500


class PacedReading:
    """Reads on, but no more than 500 messages a second that nobody asked for: notifications, and what is none at all.

    A server that sends more fills its own pipe, and waits; so do its own answers, and nobody else's.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._second_ends_at = 0.0
        self._unasked = 0

    @property
    def last_context(self) -> Context | None:
        """The context that the last message was sent in, where the transport tells: whose stream it came on."""
        return getattr(self._reading, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return await self._paced(await self._reading.receive())

    async def _paced(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse | JSONRPCError):
            return item
        now_s = anyio.current_time()
        if now_s >= self._second_ends_at:
            self._second_ends_at = now_s + 1
            self._unasked = 0
        self._unasked += 1
        if self._unasked > _UNASKED_PER_S:
            await anyio.sleep(self._second_ends_at - now_s)
        return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._paced(await self._reading.__anext__())

    async def aclose(self) -> None:
        await self._reading.aclose()

    async def __aenter__(self) -> Self:
        await self._reading.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._reading.__aexit__(kind, error, trace)
