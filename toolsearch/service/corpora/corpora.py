"""The catalogs and toolsets that are in memory: opened from the store when used, the least recently used out first."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from toolsearch.errors import ToolSearchError, UnknownRecordError
from toolsearch.freed_memory import give_back_freed_memory
from toolsearch.gateway.proxy.tool_rates import ToolRates
from toolsearch.service.corpora.corpus import Corpus, CorpusRef, tenant_folder
from toolsearch.service.corpora.opening import CallbacksOf, CorpusOpener, ObserverOf, ServersOf, no_servers
from toolsearch.service.corpora.toolset_specs import NAMES, Versions, versions_of_toolset
from toolsearch.service.settings import ServiceSettings
from toolsearch.sessions.usage import UsageLog
from toolsearch.storage.contents import StoredTool
from toolsearch.storage.replicas import CONTENTS
from toolsearch.storage.storage import Storage
from toolsearch.threads import in_thread

logger = logging.getLogger(__name__)

_MEASURE_AGAIN_S: Final = 1.0  # seconds between two looks at the size of an index, which grows through searches
_UNSAVED_SHARE: Final = 0.1  # the share of changed tools at which a corpus's index is saved again
_UNSAVED_TOOLS: Final = 200  # the least number of changed tools for that
_OPENED_FROM: Final = 200  # tools of one change that take too long to index while searches wait

_Value = TypeVar("_Value")


def _nothing() -> None:
    """Write nothing beside a change."""


@dataclass(eq=False, slots=True)
class _Place:
    """The place of one corpus. Opening, changing, saving and closing need its *lock*."""

    ref: CorpusRef
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    corpus: Corpus | None = None
    opening: asyncio.Task[Corpus] | None = None
    users: int = 0
    bytes: int = 0
    measured_s: float = 0.0
    unsaved: int = 0
    is_closing: bool = False
    is_dropped: bool = False


class Corpora:
    """Use it within one event loop; `aclose` closes everything at the end.

    Corpora do not wait while another one is opened, changed or closed. A change that has begun is finished even if its
    caller has gone.

    callbacks_of  tenant -> how its stored tools are run
    indexes       the folder of all indexes, which may be deleted while no service runs; None keeps them in memory only
    servers_of    corpus -> the MCP servers that are connected while it is in memory
    observer_of   corpus -> its observer
    rates         counts the calls of tools
    """

    def __init__(
        self,
        storage: Storage,
        settings: ServiceSettings,
        callbacks_of: CallbacksOf,
        *,
        indexes: Path | None = None,
        servers_of: ServersOf = no_servers,
        observer_of: ObserverOf = lambda _ref: None,
        rates: ToolRates | None = None,
    ) -> None:
        self._transaction = storage.transaction
        self._contents = storage.contents
        self._records = storage.records
        self._most_bytes = settings.memory.index_bytes
        self._opener = CorpusOpener(
            storage,
            settings,
            callbacks_of,
            self.using,
            indexes=indexes,
            servers_of=servers_of,
            observer_of=observer_of,
            rates=rates,
        )
        self._indexes = indexes
        self._places: OrderedDict[CorpusRef, _Place] = OrderedDict()  # least recently used first
        self._tasks: set[asyncio.Task[Any]] = set()
        self.evictions = 0  # number of corpora that left memory to make room

    @asynccontextmanager
    async def using(self, ref: CorpusRef) -> AsyncGenerator[Corpus]:
        """Open the corpus if it is not in memory, and keep it there while the block runs.

        Raises UnknownRecordError if there is none. The message is the same for unknown corpora and those of other
        tenants.
        """
        with self._held(ref) as place:
            yield place.corpus or await self._opened(place)

    async def change(
        self,
        ref: CorpusRef,
        *,
        put: Sequence[StoredTool] = (),
        remove: Collection[str] = (),
        over: int | None = None,
        also: Callable[[], None] = _nothing,
    ) -> int:
        """Change a catalog, as `CatalogContents.change`: in the store, and in memory if it is there.

        Once this returns, searches find the new tools, and no removed ones. *also* writes first, in the same
        transaction and in a thread. Nothing is changed if it raises. Raises UnknownRecordError if there is no such
        catalog, and ConflictError.

        After a large change, a catalog that is not in memory is opened, so that the next search need not index it all.
        """
        return await self._to_its_end(self._change(ref, put, remove, over, also))

    async def prepare(self, ref: CorpusRef) -> None:
        """Open the corpus, so that the next search need not wait for its index. Why it cannot be opened is logged."""
        try:
            async with self.using(ref):
                pass
        except ToolSearchError as error:
            logger.warning("the index of %s is not ready, a search has to wait for it: %s", ref, error)

    async def follow(self, ref: CorpusRef, there: Versions) -> None:
        """Bring a corpus in memory up to date, if the store's versions *there* show that it is behind.

        A deleted corpus leaves memory. This does not count as a use, so the corpus does not stay in memory for longer.
        """
        if ref not in self._places:
            return
        if (ref.kind, ref.name) not in there and not await in_thread(self._is_there, ref):
            await self.drop(ref)
        else:
            await self._to_its_end(self._catch_up(ref, there))

    @asynccontextmanager
    async def in_memory(self, ref: CorpusRef) -> AsyncGenerator[Corpus | None]:
        """Keep the corpus in memory while the block runs, if it is there or is being opened. This does not count as a
        use.
        """
        if ref not in self._places:
            yield None
            return
        with self._held(ref, is_use=False) as place:
            if place.opening is not None:
                await asyncio.wait([place.opening])
            yield place.corpus

    async def alone(self, ref: CorpusRef, work: Callable[[], _Value]) -> _Value:
        """Run *work* in a thread, to its end, while nobody opens, changes or closes the corpus."""
        return await self._to_its_end(self._alone(ref, work))

    async def drop(self, ref: CorpusRef) -> None:
        """Forget a corpus that was deleted from the store, with its index. It is closed once nobody uses it."""
        await self._to_its_end(self._drop(ref))
        await self.renew_toolsets(ref)

    async def revise(self, ref: CorpusRef) -> None:
        """Bring a toolset that is in memory to the version in the store."""
        if ref in self._places:
            await self._to_its_end(self._revise(ref))

    async def renew_toolsets(self, catalog: CorpusRef) -> None:
        """Tell the toolsets in memory over *catalog* that it was made or deleted."""
        for ref, place in list(self._places.items()):
            toolset = place.corpus.toolset if place.corpus else None
            if ref.tenant == catalog.tenant and toolset is not None and catalog.name in toolset.spec.catalogs:
                with suppress(UnknownRecordError):  # the toolset is being deleted itself
                    await self.revise(ref)

    async def drop_tenant(self, tenant: str) -> None:
        """Forget all corpora of a deleted tenant, as `drop`."""
        self.usage.forget(tenant)
        for ref in [ref for ref in self._places if ref.tenant == tenant]:
            await self.drop(ref)
        if self._indexes is not None:
            await in_thread(shutil.rmtree, tenant_folder(self._indexes, tenant), ignore_errors=True)

    @property
    def usage(self) -> UsageLog:
        """The log of use, shared by all corpora."""
        return self._opener.usage

    @property
    def bytes(self) -> int:
        """About how much memory the corpora take."""
        return sum(place.bytes for place in self._places.values())

    @property
    def refs(self) -> list[CorpusRef]:
        """The corpora in memory, least recently used first."""
        return [ref for ref, place in self._places.items() if place.corpus is not None]

    @property
    def coming(self) -> list[CorpusRef]:
        """The corpora in memory, and those that are being opened."""
        return list(self._places)

    async def aclose(self) -> None:
        """Close all corpora, even those in use, and keep their indexes."""
        await self.settled()
        # Toolsets are closed first, since they hold catalogs.
        for place in sorted(self._places.values(), key=lambda each: each.ref.kind == "catalog"):
            async with place.lock:
                await self._close(place)
        await self.settled()
        self._places.clear()
        self._opener.close()

    # Users of corpora

    @contextmanager
    def _held(self, ref: CorpusRef, *, is_use: bool = True) -> Generator[_Place]:
        """Yield the place of *ref*, which stays while the block runs."""
        place = self._places.get(ref)
        if place is None:
            place = self._places[ref] = _Place(ref)
        if is_use:
            self._places.move_to_end(ref)
        place.users += 1
        try:
            yield place
        finally:
            place.users -= 1
            self._released(place)

    def _released(self, place: _Place) -> None:
        if place.users:
            return
        if place.is_dropped:
            self._spawn(self._close_unused(place))
        elif place.corpus is None:
            self._forget(place)
        else:
            self._measure(place)
            self._evict()

    def _forget(self, place: _Place) -> None:
        if not place.users and place.corpus is None and not place.is_closing and self._places.get(place.ref) is place:
            del self._places[place.ref]

    async def _opened(self, place: _Place) -> Corpus:
        """All who wait get the same corpus, or the same error."""
        if place.opening is None:
            place.opening = self._spawn(self._open(place))
        return await asyncio.shield(place.opening)

    async def _open(self, place: _Place) -> Corpus:
        place.users += 1
        try:
            async with place.lock:
                if place.corpus is None:
                    place.corpus = await self._opener.open(place.ref)
                    self._measure(place, at_once=True)
                    await in_thread(give_back_freed_memory)
                return place.corpus
        finally:
            place.opening = None
            place.users -= 1
            self._released(place)

    # Changes

    async def _change(
        self,
        ref: CorpusRef,
        put: Sequence[StoredTool],
        remove: Collection[str],
        over: int | None,
        also: Callable[[], None],
    ) -> int:
        with self._held(ref) as place:
            async with place.lock:
                revision = await in_thread(self._write, place, put, remove, over, also)
            if place.corpus is None and len(put) >= _OPENED_FROM:
                self._spawn(self.prepare(ref))
            return revision

    def _write(
        self,
        place: _Place,
        put: Sequence[StoredTool],
        remove: Collection[str],
        over: int | None,
        also: Callable[[], None],
    ) -> int:
        ref, corpus = place.ref, place.corpus
        if corpus is not None:
            for name in (*(row.name for row in put), *remove):
                corpus.engine.catalog.find(name)  # read now, so that views with the old tool need not read it later
        with self._transaction():
            also()
            revision = self._contents.change(ref.tenant, ref.name, put=put, remove=remove, over=over)
            if not self._is_there(ref):  # another replica has deleted it, or its deletion waits for this transaction
                raise UnknownRecordError(ref.kind, ref.name)
        if corpus is not None and corpus.revision != over:  # another replica has written in between
            self._read_since(place)
        else:
            self._bring(place, revision, put, remove)
        return revision

    async def _revise(self, ref: CorpusRef) -> None:
        with self._held(ref) as place:
            async with place.lock:
                if place.corpus is not None:
                    await self._opener.revise(place.corpus)
                    place.measured_s = 0.0

    async def _alone(self, ref: CorpusRef, work: Callable[[], _Value]) -> _Value:
        with self._held(ref) as place:
            async with place.lock:
                return await in_thread(work)

    async def _catch_up(self, ref: CorpusRef, there: Versions) -> None:
        with self._held(ref, is_use=False) as place:
            async with place.lock:
                corpus = place.corpus
                if corpus is None:
                    return
                if corpus.toolset is None:
                    # The corpus may be newer than *there*.
                    if not 0 < there.get((CONTENTS, ref.name), 0) <= corpus.revision:
                        await in_thread(self._read_since, place)
                elif (
                    versions_of_toolset(corpus.toolset.spec, ref.name, there) != corpus.seen
                    or there.get((NAMES, ref.name), 0) != corpus.toolset.names_version
                ):
                    await self._opener.revise(corpus)
                    place.measured_s = 0.0

    def _read_since(self, place: _Place) -> None:
        """Read the changes since the revision in memory."""
        corpus = place.corpus
        if corpus is None:
            return
        since = self._contents.since(place.ref.tenant, place.ref.name, corpus.revision)
        if since.revision != corpus.revision:
            known = corpus.engine.catalog.unowned_names() if since.names is not None else []
            self._bring(place, since.revision, since.put, [name for name in known if name not in (since.names or ())])

    def _is_there(self, ref: CorpusRef) -> bool:
        return self._records.get(ref.tenant, ref.kind, ref.name, at_s=0) is not None

    def _bring(self, place: _Place, revision: int, put: Sequence[StoredTool], remove: Collection[str]) -> None:
        if place.corpus is None:
            return
        self._opener.apply(place.corpus, revision, put, remove)
        place.unsaved += len(put) + len(remove)
        place.measured_s = 0.0

    # Out of memory

    def _measure(self, place: _Place, *, at_once: bool = False) -> None:
        now_s = asyncio.get_running_loop().time()
        if place.corpus is None or not (at_once or now_s - place.measured_s >= _MEASURE_AGAIN_S):
            return
        place.bytes, place.measured_s = place.corpus.bytes, now_s
        if place.unsaved >= max(_UNSAVED_TOOLS, _UNSAVED_SHARE * len(place.corpus.engine.catalog)):
            place.unsaved = 0
            self._spawn(self._save(place))

    def _evict(self) -> None:
        """Begin to close the least recently used until the rest fits. The last one stays, however large it is."""
        places = [place for place in self._places.values() if place.corpus is not None and not place.is_closing]
        over = sum(place.bytes for place in places) - self._most_bytes
        for place in places[:-1]:
            if over <= 0:
                return
            if not place.users:
                over -= place.bytes
                self.evictions += 1
                place.is_closing = True
                self._spawn(self._close_unused(place))

    async def _close_unused(self, place: _Place) -> None:
        async with place.lock:
            try:
                if not place.users:  # a new user may have come meanwhile
                    await self._close(place)
            finally:
                place.is_closing = False
        self._forget(place)

    async def _close(self, place: _Place) -> None:
        """Close the corpus. Errors are logged, since nobody waits for it."""
        corpus, place.corpus, place.bytes, place.unsaved = place.corpus, None, 0, 0
        if corpus is None:
            return
        if corpus.toolset is not None:
            corpus.toolset.close()
        if not place.is_dropped:
            await self._saved(corpus)
        for close in (corpus.gateway.aclose, lambda: in_thread(corpus.engine.close), corpus.resources.aclose):
            try:
                await close()
            except Exception:
                logger.exception("%s could not be closed properly", corpus.ref)
        corpus.release()

    async def _save(self, place: _Place) -> None:
        async with place.lock:
            if place.corpus is not None and not place.is_dropped:
                await self._saved(place.corpus)

    async def _saved(self, corpus: Corpus) -> None:
        try:
            await in_thread(corpus.save)
        except ToolSearchError as error:
            logger.warning("the index of %s is not kept: %s", corpus.ref, error)

    async def _drop(self, ref: CorpusRef) -> None:
        place = self._places.pop(ref, None)
        if place is not None:
            place.is_dropped = True
            await self._close_unused(place)
        if self._indexes is not None:
            await in_thread(shutil.rmtree, ref.folder(self._indexes), ignore_errors=True)

    # Tasks

    async def settled(self) -> None:
        """Wait until nothing is being opened, changed, saved or closed."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _to_its_end(self, work: Coroutine[Any, Any, _Value]) -> _Value:
        return await asyncio.shield(self._spawn(work))

    def _spawn(self, work: Coroutine[Any, Any, _Value]) -> asyncio.Task[_Value]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # marks the error as seen, even if nobody waits for the task any more
