"""Holds the task that keeps a server up while there is nothing to do for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

_LOGIN_POLL_S = 5.0


class IdleGate:
    """Waits for a time, for a login or for somebody who uses the server; whoever uses it ends every wait at once.

    *is_in_use* says whether the server is connected or being connected. While it is, no wait begins.
    """

    def __init__(self, *, clock: Callable[[], float], is_in_use: Callable[[], bool]) -> None:
        self._clock = clock
        self._is_in_use = is_in_use
        self._woken = asyncio.Event()
        self._used_at_s: float | None = None
        self.opens_at_s: float | None = None  # when the present wait ends by itself; None if there is no such time

    def wake(self) -> None:
        """End the present wait because somebody uses the server."""
        self.note_use()
        self.open()

    def open(self) -> None:
        """End the present wait without counting it as a use, for example because somebody may use the server soon."""
        self._woken.set()

    def note_use(self) -> None:
        """Remember that the server is being used now."""
        self._used_at_s = self._clock()

    def was_used_within(self, seconds: float) -> bool:
        return self._used_at_s is not None and self._clock() - self._used_at_s < seconds

    async def until_used(self) -> None:
        await self.until(None)

    async def until(self, at_s: float | None) -> None:
        """Wait until *at_s* on the clock, or, for None, until somebody uses the server."""
        if self._is_in_use():
            return
        self.opens_at_s = at_s
        await self._woken_within(None if at_s is None else max(at_s - self._clock(), 0.0))
        self.opens_at_s = None

    async def until_changed(self, stamp: Callable[[], float]) -> None:
        """Wait until *stamp*, which is asked every few seconds, gives another number."""
        before = stamp()
        while not self._is_in_use() and stamp() == before:
            if await self._woken_within(_LOGIN_POLL_S):
                return

    async def _woken_within(self, seconds: float | None) -> bool:
        self._woken.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        return self._woken.is_set()
