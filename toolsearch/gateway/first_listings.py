"""Which servers have not answered since the start, and how long a request waits for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress

logger = logging.getLogger(__name__)


class FirstListings:
    """A server was heard of when its tools are known (listed now, or kept from last time), or when it has failed to
    list them.

    To be used from one event loop; *is_complete* may be read from any thread.
    """

    def __init__(self, servers: Iterable[str], *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._awaited = set(servers)
        self._all = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []
        self._is_warned = False
        self.begin()

    @property
    def is_complete(self) -> bool:
        return not self._awaited

    def begin(self) -> None:
        """Note that the servers start now: all waiting is measured from here."""
        self._began_s = self._clock()
        if self.is_complete:
            self._all.set()

    def on_complete(self, listener: Callable[[], None]) -> None:
        """Call *listener* when the last server was heard of."""
        self._listeners.append(listener)

    def heard_of(self, server: str) -> None:
        if server not in self._awaited:
            return
        self._awaited.discard(server)
        if self.is_complete:
            self._all.set()
            for listener in self._listeners:
                listener()

    async def wait(self, patience_s: float) -> None:
        """Wait until every server was heard of, at most until *patience_s* after the start."""
        left_s = self._began_s + patience_s - self._clock()
        if not self.is_complete and left_s > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._all.wait()
        if not self.is_complete and not self._is_warned:
            self._is_warned = True
            logger.warning("still waiting for the tools of %s", ", ".join(sorted(self._awaited)))
