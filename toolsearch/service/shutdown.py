"""How the service ends: no new requests, calls that run are finished, and streams without an end are cut off."""

from __future__ import annotations

from typing import Final

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LISTENING: Final = "subscriptions/listen"  # the MCP request whose answer is a stream without an end


class Shutdown:
    """Whether the service is ending. Streams that are open then are ended by `begin`."""

    def __init__(self) -> None:
        self._has_begun = False
        self._streams: set[anyio.CancelScope] = set()

    @property
    def has_begun(self) -> bool:
        return self._has_begun

    def begin(self) -> None:
        """Call it in the event loop that serves."""
        self._has_begun = True
        for stream in tuple(self._streams):
            stream.cancel()

    def stream_opened(self, scope: anyio.CancelScope) -> None:
        self._streams.add(scope)
        if self._has_begun:
            scope.cancel()

    def stream_closed(self, scope: anyio.CancelScope) -> None:
        self._streams.discard(scope)


class EndlessStreams:
    """Ends those answers of *app* that would go on for as long as the client listens, when *shutdown* begins.

    The answer to a call may be a stream, too, but it has an end: the result, which is waited for.
    """

    def __init__(self, app: ASGIApp, *, shutdown: Shutdown) -> None:
        self._app = app
        self._shutdown = shutdown

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not may_be_endless(scope):
            await self._app(scope, receive, send)
            return
        is_streaming = False

        async def watched(message: Message) -> None:
            nonlocal is_streaming
            if message["type"] == "http.response.start":
                is_streaming = Headers(raw=message["headers"]).get("content-type", "").startswith("text/event-stream")
                if is_streaming:
                    self._shutdown.stream_opened(running)
            elif is_streaming and not message.get("more_body", False):
                is_streaming = False
            await send(message)

        with anyio.CancelScope() as running:
            try:
                await self._app(scope, receive, watched)
            finally:
                self._shutdown.stream_closed(running)
        if running.cancelled_caught and is_streaming:
            await send({"type": "http.response.body", "body": b""})


def may_be_endless(scope: Scope) -> bool:
    """Whether somebody only listens, for as long as they like."""
    return scope["method"] == "GET" or Headers(scope=scope).get("mcp-method") == _LISTENING
