"""Lets so many requests at once through to a server, has so many wait in order of arrival, and refuses the rest."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from toolsearch.errors import ServerBusyError


class Lanes:
    """The lanes to one server, of one event loop."""

    def __init__(self, server: str, *, max_running: int, max_waiting: int) -> None:
        self._server = server
        self._max_running = max_running
        self._max_waiting = max_waiting
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.running = 0
        self.shed = 0  # refused since the start

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @asynccontextmanager
    async def lane(self) -> AsyncGenerator[None]:
        """Hold one, waiting for it where need be. Raises ServerBusyError at once where too many wait already."""
        await self._enter()
        try:
            yield
        finally:
            self._leave()

    async def _enter(self) -> None:
        if self.running < self._max_running:
            self.running += 1
            return
        if len(self._waiting) >= self._max_waiting:
            self.shed += 1
            raise ServerBusyError(
                f"MCP server {self._server!r} is busy: {self.running} requests run and {self.waiting} wait; "
                "this one did not run, try again later"
            )
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()  # the lane came in the very moment of giving up
            else:
                with suppress(ValueError):  # `_leave` may have passed over it already
                    self._waiting.remove(turn)
            raise

    def _leave(self) -> None:
        """Hand the lane on to whoever has waited longest: it is never free in between, so nobody can overtake."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.running -= 1
