"""How long one server is left alone: for a while, until somebody uses it, or until somebody has logged in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

_LOGIN_LOOK_S = 5.0


class Rests:
    """Whoever wants to use the server ends every rest; while *is_in_use* says so, there is none."""

    def __init__(self, *, clock: Callable[[], float], is_in_use: Callable[[], bool]) -> None:
        self._clock = clock
        self._is_in_use = is_in_use
        self._stirred = asyncio.Event()
        self._used_at_s: float | None = None
        self.ends_at_s: float | None = None  # the rest of now, if it ends by itself at a time that is known

    def note_use(self) -> None:
        """Say that the server is used at this moment, without ending a rest."""
        self._used_at_s = self._clock()

    def stir(self) -> None:
        """Say that somebody wants to use the server now."""
        self.note_use()
        self.end()

    def end(self) -> None:
        """End the rest of now, for who may want to use the server: that alone does not keep it up."""
        self._stirred.set()

    def was_used_within(self, seconds: float) -> bool:
        return self._used_at_s is not None and self._clock() - self._used_at_s < seconds

    async def until_used(self) -> None:
        await self.until(None)

    async def until(self, at_s: float | None) -> None:
        """Until then by the clock; None: for as long as nobody uses it."""
        if self._is_in_use():
            return
        self.ends_at_s = at_s
        await self._stirred_within(None if at_s is None else max(at_s - self._clock(), 0.0))
        self.ends_at_s = None

    async def until_changed(self, stamp: Callable[[], float]) -> None:
        """Until *stamp*, which is looked at every few seconds, is another one."""
        before = stamp()
        while not self._is_in_use() and stamp() == before:
            if await self._stirred_within(_LOGIN_LOOK_S):
                return

    async def _stirred_within(self, seconds: float | None) -> bool:
        self._stirred.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stirred.wait()
        return self._stirred.is_set()
