"""What replicas over one store know about each other: which run; and writes that wait for the store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from toolsearch.chores import end, running
from toolsearch.errors import StorageError
from toolsearch.storage.replicas import Leases
from toolsearch.threads import in_thread

logger = logging.getLogger(__name__)
_LEASE_S: Final = 15.0  # seconds until others notice that a replica was killed
_RENEWED_EVERY_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class ReplicaPresence:
    """*replica* is the id of this one."""

    leases: Leases
    replica: str

    def is_there(self, replica: str) -> bool:
        """Whether a replica runs, or was killed only a moment ago. Raises StorageError."""
        return bool(self.leases.held([_name(replica)]))

    @asynccontextmanager
    async def told(self) -> AsyncGenerator[None]:
        """While the block runs, this replica is there."""
        await asyncio.to_thread(self._renew)
        try:
            async with running(self._keep_renewing()):
                yield
        finally:
            await asyncio.to_thread(self._release)

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(_RENEWED_EVERY_S)
            await asyncio.to_thread(self._renew)

    def _renew(self) -> None:
        try:
            self.leases.take(_name(self.replica), self.replica, for_s=_LEASE_S)  # works for an expired lease, too
        except StorageError as error:  # without the store this replica cannot ask for others either
            logger.warning("this replica cannot tell others that it runs: %s", error)

    def _release(self) -> None:
        try:
            self.leases.release(_name(self.replica), self.replica)
        except StorageError as error:
            logger.warning("this replica cannot tell others that it ends: %s", error)


def _name(replica: str) -> str:
    return f"replica/{replica}"


LASTS_S: Final = 15.0  # seconds for which others wait for a silent replica


class ReplicaLease:
    """The lease is taken by the first `current`, and renewed three times in *lasts_s*. Use it within one event loop.

    It runs out if this process was paused or could not reach the store. Then it never comes back: all replicas take its
    work for abandoned. Later work has another lease, with another name.
    """

    def __init__(self, leases: Leases, replica: str, *, lasts_s: float = LASTS_S) -> None:
        self._leases = leases
        self._replica = replica
        self._lasts_s = lasts_s
        self._taking = asyncio.Lock()
        self._name = ""  # the lease that is held, as far as this process knows
        self._count = 0
        self._renewing: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """The name of the present lease, as far as this process knows; "" if there is none."""
        return self._name

    async def current(self) -> str:
        """Return the name of the present lease. A new one is taken if there is none. Raises StorageError."""
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
            await end(self._renewing)
        if self._name:
            try:
                await in_thread(self._leases.release, self._name, self._replica)
            except StorageError as error:
                logger.warning("the lease of this replica is not given back, and runs out: %s", error)
            self._name = ""

    async def _renew(self, name: str, until_s: float) -> None:
        """Renew the lease. *until_s* is in the event loop's time, which never jumps, for times when the store does not
        answer.
        """
        loop, holds = asyncio.get_running_loop(), True
        while holds:
            await asyncio.sleep(self._lasts_s / 3)
            asked_s = loop.time()
            try:
                holds = await in_thread(self._leases.renew, name, self._replica, for_s=self._lasts_s)
                until_s = asked_s + self._lasts_s
            except StorageError:
                holds = loop.time() < until_s
        logger.warning("this replica was paused or cut off from the store, and its lease has run out")
        self._name = ""


_PAUSE_S: Final = 1.0
_MOST: Final = 10_000


class RetriedWrites:
    """Writes that are repeated until the store takes them. Use it within one event loop. *what* names them in the log.

    At most *most* are kept; others are lost. All are lost when the process ends.
    """

    def __init__(self, what: str, *, most: int = _MOST, pause_s: float = _PAUSE_S) -> None:
        self._what = what
        self._most = most
        self._pause_s = pause_s
        self._owed: dict[tuple[str, str], Callable[[], object]] = {}  # (tenant, id) -> write that is still to be done
        self._paying = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def owe(self, place: tuple[str, str], write: Callable[[], object], error: StorageError) -> None:
        """Do *write*, which has failed by *error*, later. It replaces an earlier one for *place*."""
        if error.retry_after_s is None or len(self._owed) >= self._most:
            logger.warning("%s could not be kept: %s", self._what, error)
            return
        self._owed[place] = write
        if self._task is None:
            self._task = asyncio.create_task(self._pay_all())

    async def pay(self, place: tuple[str, str]) -> None:
        """Do the write for *place* at once. Raises StorageError while the store is away, and keeps the write."""
        async with self._paying:
            write = self._owed.get(place)
            if write is None:
                return
            try:
                await asyncio.to_thread(write)
            except StorageError as error:
                if error.retry_after_s is not None:
                    raise
                logger.warning("%s could not be kept: %s", self._what, error)
            del self._owed[place]

    async def aclose(self) -> None:
        """Try once more, and give up."""
        if self._task is not None:
            await end(self._task)
        await self._try_all()

    async def _pay_all(self) -> None:
        try:
            while self._owed:
                await asyncio.sleep(self._pause_s)
                await self._try_all()
        finally:
            self._task = None

    async def _try_all(self) -> None:
        for place in list(self._owed):
            try:
                await self.pay(place)
            except StorageError:  # the store is still away
                return
