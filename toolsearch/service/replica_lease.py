"""The lease by which the replicas of a service know which of them run."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from toolsearch.errors import StorageError
from toolsearch.storage.leases import Leases
from toolsearch.threads import in_thread

logger = logging.getLogger(__name__)

LASTS_S: Final = 15.0  # how long others wait for a replica that says nothing more


class ReplicaLease:
    """Held from the first `current` on, and renewed three times in *lasts_s*. To be used within one event loop.

    Once it has run out, because this process was paused or could not reach the store, it never comes back: whatever was
    begun under it counts as given up by all replicas. What begins after that has another one, with another name.
    """

    def __init__(self, leases: Leases, replica: str, *, lasts_s: float = LASTS_S) -> None:
        self._leases = leases
        self._replica = replica
        self._lasts_s = lasts_s
        self._taking = asyncio.Lock()
        self._name = ""  # of the one that is held, as far as is known here
        self._count = 0
        self._renewing: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """Of the one that is held, as far as is known here; "" if none is."""
        return self._name

    async def current(self) -> str:
        """Return the name of the lease that is held; one is taken if there is none. Raises StorageError."""
        async with self._taking:
            if not self._name:
                self._count += 1
                name, asked_s = f"{self._replica}-{self._count}", asyncio.get_running_loop().time()
                await in_thread(self._leases.take, name, self._replica, for_s=self._lasts_s)
                self._name = name
                self._renewing = asyncio.create_task(self._renew(name, asked_s + self._lasts_s))
            return self._name

    async def aclose(self) -> None:
        """Let it go, so that nobody has to wait until it runs out."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
        if self._name:
            try:
                await in_thread(self._leases.release, self._name, self._replica)
            except StorageError as error:
                logger.warning("the lease of this replica is not given back, and runs out: %s", error)
            self._name = ""

    async def _renew(self, name: str, until_s: float) -> None:
        """*until_s* is in the time of the event loop, which never jumps: for while the store does not answer."""
        loop, holds = asyncio.get_running_loop(), True
        while holds:
            await asyncio.sleep(self._lasts_s / 3)
            asked_s = loop.time()
            try:
                holds = await in_thread(self._leases.renew, name, self._replica, for_s=self._lasts_s)
                until_s = asked_s + self._lasts_s
            except StorageError:
                holds = loop.time() < until_s
        logger.warning("this replica was paused, or cut off from the store, so that its lease has run out")
        self._name = ""
