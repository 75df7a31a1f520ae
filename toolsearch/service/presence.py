"""That a replica runs: a lease that it renews, so that others know what it has begun and will not end any more."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from toolsearch.errors import StorageError
from toolsearch.storage.leases import Leases

logger = logging.getLogger(__name__)

_LEASE_S: Final = 15.0  # how long it takes to notice that a replica was killed
_RENEWED_EVERY_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Presence:
    """*replica* is the id of this one."""

    leases: Leases
    replica: str

    def is_there(self, replica: str) -> bool:
        """Whether a replica runs, or was killed a moment ago. Raises StorageError."""
        return bool(self.leases.held([_name(replica)]))

    @asynccontextmanager
    async def told(self) -> AsyncGenerator[None]:
        """While the block runs, this replica is there."""
        await asyncio.to_thread(self._renew)
        task = asyncio.create_task(self._keep_renewing())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            await asyncio.to_thread(self._release)

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(_RENEWED_EVERY_S)
            await asyncio.to_thread(self._renew)

    def _renew(self) -> None:
        try:
            self.leases.take(_name(self.replica), self.replica, for_s=_LEASE_S)  # also once it has run out
        except StorageError as error:  # whoever cannot reach the store does not ask who is there either
            logger.warning("this replica cannot tell others that it runs: %s", error)

    def _release(self) -> None:
        try:
            self.leases.release(_name(self.replica), self.replica)
        except StorageError as error:
            logger.warning("this replica cannot tell others that it ends: %s", error)


def _name(replica: str) -> str:
    return f"replica/{replica}"
