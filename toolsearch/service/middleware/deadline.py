"""How long a request may take."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolsearch.service.paths import is_mcp
from toolsearch.service.refusals import timed_out


class Deadline:
    """Gives up after *seconds*, unless the answer is a stream of events, which may last.

    The MCP face has limits of its own, for each call.
    """

    def __init__(self, app: ASGIApp, *, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_mcp(scope["path"]):
            await self._app(scope, receive, send)
            return
        limit = asyncio.timeout(self._seconds)

        async def unlimited_for_streams(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_stream(message):
                limit.reschedule(None)
            await send(message)

        try:
            async with limit:
                await self._app(scope, receive, unlimited_for_streams)
        except TimeoutError:
            if not limit.expired():
                raise
            raise timed_out(self._seconds) from None


def _is_stream(message: Message) -> bool:
    return Headers(raw=message["headers"]).get("content-type", "").startswith("text/event-stream")
