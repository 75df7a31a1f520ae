"""The decisions that people make about entries of a running gateway that await approval."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from toolsearch.access.reach import Reach
from toolsearch.gateway.approvals.waiting import Waiting, waiting_in, waiting_of
from toolsearch.gateway.registry import Registry
from toolsearch.gateway.trust.gate import PinStore


class Decisions:
    """*pins* is None if nothing is ever held. *review* judges all listings again."""

    def __init__(self, registry: Registry, pins: PinStore | None, review: Callable[[], Awaitable[None]]) -> None:
        self._registry = registry
        self._pins = pins
        self._review = review

    async def waiting(self) -> list[Waiting]:
        """The entries that await approval, by server, kind and name."""
        return [] if self._pins is None else await asyncio.to_thread(waiting_in, self._registry, self._pins)

    async def waiting_of(self, name: str, reach: Reach) -> Waiting | None:
        """The entry that awaits approval under *name*, if it is within *reach*."""
        held = self._registry.held.get(name)
        if held is None or self._pins is None or not reach.admits(held):
            return None
        return await asyncio.to_thread(waiting_of, self._registry, self._pins, held)

    async def decide(self, waiting: Waiting, by: str, *, is_approved: bool) -> bool:
        """Record the decision of the person *by* about *waiting*. It is in effect once this returns.

        Returns False if another definition waits by now. Raises StorageError.
        """
        if self._pins is None:
            return False
        decide = self._pins.approve if is_approved else self._pins.refuse
        held = waiting.held
        is_done = await asyncio.to_thread(decide, waiting.server, waiting.name, held.pin, by, held.kind)
        await self._review()
        return is_done
