"""The figures that are kept by hour, key and session: their names, and how they are added up before they are written.

They are there to be looked at: nothing is decided by them, and the last seconds of them are lost in a crash.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, Literal, TypeAlias

from toolsearch.errors import StorageError
from toolsearch.storage.figures import FigureCell, FigureLog

FigureName: TypeAlias = Literal[
    "searches",  # queries
    "weak_searches",  # of these, those whose answer fits hardly or not at all
    "requests",  # lists of tools handed out
    "sent_tokens",  # of these lists, and of what searching adds to a conversation
    "written_tokens",  # by models, in order to search
    "all_tools_tokens",  # what would have been sent with every tool in reach; see `ToolCosts`
    "calls",
    "failed_calls",  # of these, those that the tool or the way to it failed
    "refused_calls",  # that were not run
    "handed_back_calls",  # that the caller runs
]

_HOUR_S: Final = 3_600
_FLUSH_S: Final = 5.0

logger = logging.getLogger(__name__)


class Figures:
    """Use it within one event loop."""

    def __init__(self, log: FigureLog, clock: Callable[[], float]) -> None:
        self._log = log
        self._clock = clock
        self._added: defaultdict[str, defaultdict[FigureCell, float]] = _nothing()
        self._flushing = asyncio.Lock()
        self.totals = Counter[str]()  # of all tenants, by name, since the start

    def add(self, tenant: str, key: str, session: str, amounts: Mapping[FigureName, float]) -> None:
        hour_s = int(self._clock()) // _HOUR_S * _HOUR_S
        of_tenant = self._added[tenant]
        for name, amount in amounts.items():
            if amount:
                self.totals[name] += round(amount)
                of_tenant[FigureCell(hour_s, key, session, name)] += amount

    async def flush(self) -> None:
        """Write what was added. What cannot be written is tried again the next time."""
        async with self._flushing:
            added, self._added = self._added, _nothing()
            for tenant, amounts in added.items():
                try:
                    await asyncio.to_thread(self._log.add, tenant, amounts)
                except StorageError as error:
                    if error.retry_after_s is None:
                        logger.error("figures of use could not be kept; they are kept later: %s", error)  # noqa: TRY400
                    for cell, amount in amounts.items():
                        self._added[tenant][cell] += amount

    @asynccontextmanager
    async def kept(self) -> AsyncGenerator[None]:
        """While the block runs, write every few seconds; and once more at its end."""
        task = asyncio.create_task(self._keep_flushing())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            await self.flush()

    async def _keep_flushing(self) -> None:
        while True:
            await asyncio.sleep(_FLUSH_S)
            await asyncio.shield(self.flush())


def _nothing() -> defaultdict[str, defaultdict[FigureCell, float]]:
    return defaultdict(lambda: defaultdict(float))
