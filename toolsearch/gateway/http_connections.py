"""Bounds how long a client may take to send a request, and how many connections there may be. uvicorn bounds neither.

Without these bounds, a few hundred connections that send their headers byte by byte would use up all the files that the
process may open. A request of which two headers say where it ends is refused, which h11 does not do.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolsearch.gateway.settings import HttpSettings

_LENGTHS: Final = frozenset({b"content-length", b"transfer-encoding"})
_MOST_HEAD_BYTES: Final = 65_536  # uvicorn's default


def connection_protocol(settings: HttpSettings) -> type[asyncio.Protocol]:
    """The HTTP protocol class for one uvicorn server, as `uvicorn.Config` takes it."""
    most = min(settings.max_connections, _files_for_connections())
    own: dict[str, Any] = {"timeout_s": settings.request_timeout_s, "most": most, "unfinished": {}}
    return type("BoundedProtocol", (_BoundedProtocol,), own)


class _StrictConnection(h11.Connection):
    """Takes no request that has both Content-Length and Transfer-Encoding, and so closes the connection.

    A proxy in front may go by the other one, and take the rest of the body for another client's request: RFC 9112, 6.3.
    """

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request) and {name for name, _ in event.headers} >= _LENGTHS:
            raise h11.RemoteProtocolError("it has both Content-Length and Transfer-Encoding")
        return event


class _BoundedProtocol(H11Protocol):
    """Closes a connection that has not sent a whole request within *timeout_s*.

    If there are more than *most* connections, the one that has been sending its request for the longest time is closed;
    if all have sent theirs, the new one is turned away.
    """

    timeout_s: float
    most: int
    unfinished: dict[
        _BoundedProtocol, asyncio.TimerHandle
    ]  # connections whose request has not arrived whole, the oldest first

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = _StrictConnection(h11.SERVER, _MOST_HEAD_BYTES)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most:
            next(iter(self.unfinished), self).transport.abort()
        self._await_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._has_request():
            self._stop_waiting()
        elif self not in self.unfinished:
            self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _has_request(self) -> bool:
        """Whether a request is here to its end, and not answered yet."""
        cycle: Any = self.cycle
        return cycle is not None and not cycle.more_body and not cycle.response_complete

    def _await_request(self) -> None:
        self.unfinished[self] = self.loop.call_later(self.timeout_s, self.transport.abort)

    def _stop_waiting(self) -> None:
        if (timer := self.unfinished.pop(self, None)) is not None:
            timer.cancel()


def _files_for_connections() -> int:
    """Half of the files that this process may open. The other half is for the servers and for storage."""
    try:
        import resource
    except ModuleNotFoundError:
        return sys.maxsize  # Windows has no such limit

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else max(soft // 2, 1)
