"""Limits how many requests run at one server, and how many wait for that; further ones are refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from toolsearch.errors import ServerBusyError


class ConcurrencyLimit:
    """The limit of one server. To be used from one event loop."""

    def __init__(self, server: str, *, max_running: int, max_waiting: int) -> None:
        self._server = server
        self._max_waiting = max_waiting
        self._free = asyncio.Semaphore(max_running)  # serves waiters in the order of their arrival
        self.running = 0
        self.waiting = 0
        self.shed = 0  # refused since the start

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[None]:
        """Hold a slot, and wait for one if need be. Raises ServerBusyError at once if too many wait already."""
        if self._free.locked() and self.waiting >= self._max_waiting:
            self.shed += 1
            raise ServerBusyError(
                f"MCP server {self._server!r} is busy: {self.running} requests run and {self.waiting} wait; "
                "this one did not run, try again later"
            )
        self.waiting += 1
        try:
            await self._free.acquire()
        finally:
            self.waiting -= 1
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self._free.release()
