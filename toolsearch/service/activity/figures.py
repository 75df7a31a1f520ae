"""The figures that are kept by hour, key and session; and how they and other items are written in batches."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, Generic, Literal, TypeAlias, TypeVar

from toolsearch.chores import is_set_within, running
from toolsearch.errors import StorageError
from toolsearch.storage.activity import FigureCell, FigureLog

_Item = TypeVar("_Item")
logger = logging.getLogger(__name__)


class Batches(Generic[_Item]):
    """Use it within one event loop.

    write  writes a batch; called in a thread, never twice at a time. If its error says when to try again, it is called
           again with items that may be written already. After other errors the items are lost, and that is logged
    most   items that wait at a time; more are dropped, and that is logged, too
    """

    def __init__(self, write: Callable[[Sequence[_Item]], None], *, most: int = 100_000) -> None:
        self._write = write
        self._most = most
        self._waiting: list[_Item] = []
        self._written: asyncio.Future[None] | None = None  # done once the waiting items are written
        self._task: asyncio.Task[None] | None = None
        self._settling = asyncio.Event()  # set while a caller waits for the end; then there is no pause

    def add(self, item: _Item) -> asyncio.Future[None]:
        """Return a future that is done once *item* is written, or a try has failed. It never fails."""
        if self._written is None:
            self._written = asyncio.get_running_loop().create_future()
        if len(self._waiting) < self._most:
            self._waiting.append(item)
        else:
            logger.error("%d records wait to be written already; one more is dropped", self._most)
        written = self._written
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        return asyncio.shield(written)  # a cancelled caller must not cancel the others' wait

    async def settled(self) -> None:
        """Wait until all items so far are written. Items that the store refuses now are lost, and that is logged."""
        self._settling.set()
        try:
            while self._task is not None:
                await asyncio.wait([self._task])
        finally:
            self._settling.clear()

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                written, self._written = self._written, None
                again_s = None
                try:
                    await asyncio.to_thread(self._write, batch)
                except StorageError as error:
                    again_s = self._kept_for_later(batch, error)
                finally:
                    if written is not None and not written.done():
                        written.set_result(None)
                if again_s is not None:
                    await is_set_within(self._settling, again_s)
        finally:
            self._task = None

    def _kept_for_later(self, batch: list[_Item], error: StorageError) -> float | None:
        """Return the seconds until the store should be tried again; None if *batch* is lost."""
        if error.retry_after_s is None or self._settling.is_set():
            logger.error("%d records of activity could not be stored: %s", len(batch), error)
            return None
        self._waiting[:0] = batch
        return error.retry_after_s


FigureName: TypeAlias = Literal[
    "searches",  # queries
    "weak_searches",  # searches whose answers fit badly or not at all
    "requests",  # lists of tools handed out
    "sent_tokens",  # tokens of these lists, and of what searching adds to a conversation
    "written_tokens",  # tokens that models wrote in order to search
    "all_tools_tokens",  # tokens of lists with every tool in reach; see `ToolCosts`
    "held_back_tools",  # tools that the proxy did not list, in each request
    "revealed_tools",  # of these, tools that a search or the user's words found
    "calls",
    "failed_calls",  # calls that failed at the tool or on the way to it
    "refused_calls",  # calls that were not run
    "handed_back_calls",  # calls that the caller runs
]

_HOUR_S: Final = 3_600
_FLUSH_S: Final = 5.0


class Figures:
    """Use it within one event loop."""

    def __init__(self, log: FigureLog, clock: Callable[[], float]) -> None:
        self._log = log
        self._clock = clock
        self._added: defaultdict[str, defaultdict[FigureCell, float]] = _nothing()
        self._flushing = asyncio.Lock()
        self.totals = Counter[str]()  # name -> sum over all tenants since the start

    def add(self, tenant: str, key: str, session: str, amounts: Mapping[FigureName, float]) -> None:
        hour_s = int(self._clock()) // _HOUR_S * _HOUR_S
        of_tenant = self._added[tenant]
        for name, amount in amounts.items():
            if amount:
                self.totals[name] += round(amount)
                of_tenant[FigureCell(hour_s, key, session, name)] += amount

    async def flush(self) -> None:
        """Write the amounts added so far. Those that cannot be written are kept for the next time."""
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
        try:
            async with running(self._keep_flushing()):
                yield
        finally:
            await self.flush()

    async def _keep_flushing(self) -> None:
        while True:
            await asyncio.sleep(_FLUSH_S)
            await asyncio.shield(self.flush())


def _nothing() -> defaultdict[str, defaultdict[FigureCell, float]]:
    return defaultdict(lambda: defaultdict(float))
