"""How a corpus is opened from the store: warm, with the index that is kept in a folder of its own."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from toolsearch.catalog.catalog import Catalog, StoredCatalog
from toolsearch.catalog.index_opening import IndexCache
from toolsearch.catalog.requests_file import request_source
from toolsearch.engine import ToolSearch
from toolsearch.errors import UnknownRecordError
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.proxy.tool_rates import ToolRates
from toolsearch.gateway.settings import GatewayConfig, GatewaySettings
from toolsearch.gateway.status import GatewayObserver
from toolsearch.service.corpora.corpus import Corpus, CorpusRef
from toolsearch.service.corpora.live_toolset import LiveToolset
from toolsearch.service.corpora.stored_tools import FoundTools, MakeCallback, ReadAhead, Tally, to_tool
from toolsearch.service.corpora.toolset_specs import (
    TOOLSET,
    ToolsetNames,
    ToolsetSpec,
    Versions,
    by_subject,
    versions_of_catalog,
    versions_of_toolset,
)
from toolsearch.service.settings import ServiceSettings
from toolsearch.sessions.usage import UsageLog
from toolsearch.storage.contents import StoredTool
from toolsearch.storage.storage import Storage
from toolsearch.threads import BoundedThreads
from toolsearch.tools.definition import Tool
from toolsearch.upstreams.settings import UpstreamSettings
from toolsearch.wiring import build_engine
from toolsearch_indexes.encoders.opening import is_quick
from toolsearch_indexes.vector_cache import VectorCache
from toolsearch_indexes.vector_store import MemoryVectorStore, VectorStore

_VECTORS: Final = "vectors.sqlite"
_TRUST_POLL_S: Final = 10.0  # seconds; a decision is known sooner if the store is followed
_AT_ONCE: Final = 4  # corpora opened at the same time; more would only hold more memory
Using = Callable[[CorpusRef], AbstractAsyncContextManager[Corpus]]
CallbacksOf = Callable[[str], MakeCallback]  # tenant -> how its stored tools are run
ObserverOf = Callable[[CorpusRef], GatewayObserver | None]  # corpus -> its observer, if any
ServersOf = Callable[[CorpusRef], Awaitable[tuple[UpstreamSettings, ...]]]  # corpus -> its MCP servers


async def no_servers(_ref: CorpusRef) -> tuple[UpstreamSettings, ...]:
    return ()


class CorpusOpener:
    """Opens corpora and applies changes to them.

    callbacks_of  tenant -> how its stored tools are run
    using         keeps another corpus in memory, for a toolset over it
    indexes       the folder of all indexes; None keeps them in memory only
    servers_of    gives the MCP servers of a corpus
    observer_of   corpus -> its observer
    rates         counts the calls of tools
    """

    def __init__(
        self,
        storage: Storage,
        settings: ServiceSettings,
        callbacks_of: CallbacksOf,
        using: Using,
        *,
        indexes: Path | None,
        servers_of: ServersOf,
        observer_of: ObserverOf,
        rates: ToolRates | None,
    ) -> None:
        # A faulty file is reported now, not by the first catalog.
        request_source(shipped=False, files=settings.index.requests_files)
        self._storage = storage
        self._settings = _without_index_dir(settings)
        self._callbacks_of = callbacks_of
        self._using = using
        self._indexes = indexes
        self._servers_of = servers_of
        self._observer_of = observer_of
        self._rates = rates
        self._vectors = _vector_cache(settings, indexes, storage.vectors)
        self.usage = UsageLog(storage.usage)
        self._threads = BoundedThreads(_AT_ONCE)

    async def open(self, ref: CorpusRef) -> Corpus:
        """Raises UnknownRecordError if there is none, for any reason."""
        there = await self._there(ref)  # read first, so that later changes are noticed
        if ref.kind == TOOLSET:
            return await self._toolset(ref, there)
        opened = await self._threads.run(self._engine_of_catalog, ref)
        corpus = await self._with_gateway(ref, opened)
        corpus.seen = versions_of_catalog(ref.name, there)
        return corpus

    async def revise(self, corpus: Corpus) -> None:
        """Bring a toolset to the version in the store, and to the catalogs that are there."""
        toolset, ref = corpus.toolset, corpus.ref
        if toolset is None:
            return
        there = await self._there(ref)
        spec = await self._threads.run(self._spec, ref)
        resources, catalogs = await self._catalogs(ref, spec)
        try:
            await self._threads.run(toolset.revise, spec, catalogs)
        except BaseException:
            await resources.aclose()
            raise
        before, corpus.resources, corpus.revision = corpus.resources, resources, spec.number
        corpus.seen = versions_of_toolset(spec, ref.name, there)
        await before.aclose()

    async def _there(self, ref: CorpusRef) -> Versions:
        return by_subject(await self._threads.run(self._storage.changes.current, [ref.tenant]))

    async def _toolset(self, ref: CorpusRef, there: Versions) -> Corpus:
        spec = await self._threads.run(self._spec, ref)
        resources, catalogs = await self._catalogs(ref, spec)
        try:
            opened, toolset = await self._threads.run(self._engine_of_toolset, ref, spec, catalogs)
            try:
                corpus = await self._with_gateway(ref, opened)
            except BaseException:
                toolset.close()
                raise
        except BaseException:
            await resources.aclose()
            raise
        corpus.toolset, corpus.resources = toolset, resources
        corpus.seen = versions_of_toolset(spec, ref.name, there)
        return corpus

    async def _catalogs(self, ref: CorpusRef, spec: ToolsetSpec) -> tuple[AsyncExitStack, dict[str, Corpus]]:
        """The existing catalogs of a toolset, and a stack that keeps them in memory."""
        resources, found = AsyncExitStack(), dict[str, Corpus]()
        try:
            for name in spec.catalogs:
                with suppress(UnknownRecordError):
                    using = self._using(CorpusRef(ref.tenant, "catalog", name))
                    found[name] = await resources.enter_async_context(using)
        except BaseException:
            await resources.aclose()
            raise
        return resources, found

    async def _with_gateway(self, ref: CorpusRef, opened: _Opened) -> Corpus:
        try:
            gateway = await self._gateway(ref, opened.engine)
            await gateway.__aenter__()
        except BaseException:
            opened.engine.close()
            raise
        return Corpus(ref, opened.engine, gateway, opened.revision, opened.tally, opened.cache)

    async def _gateway(self, ref: CorpusRef, engine: ToolSearch) -> Gateway:
        settings = GatewaySettings(trust=self._settings.trust, state_dir=self._indexes)
        # The servers of a toolset are those of its catalogs.
        servers = () if ref.kind == TOOLSET else await self._servers_of(ref)
        config = GatewayConfig(str(ref), servers, settings)
        pins, observer = self._storage.pins(ref.tenant), self._observer_of(ref)
        return Gateway(
            config,
            engine=engine,
            pins=pins,
            observer=observer,
            trust_poll_s=_TRUST_POLL_S,
            asks_gate=True,
            approving=lambda _: "in the service's approvals",
            rates=self._rates,
        )

    def apply(self, corpus: Corpus, revision: int, put: Sequence[StoredTool], remove: Collection[str]) -> None:
        """Bring *corpus* to *revision* of the store."""
        tools = [self._tool(corpus.ref.tenant, row) for row in put]
        for tool in tools:
            corpus.tally.add(tool)
        corpus.engine.catalog.change(tools, remove)
        corpus.revision = revision

    def close(self) -> None:
        self._vectors.close()

    def _engine_of_catalog(self, ref: CorpusRef) -> _Opened:
        records, contents = self._storage.records, self._storage.contents
        if records.get(ref.tenant, ref.kind, ref.name, at_s=time.time()) is None:
            raise UnknownRecordError(ref.kind, ref.name)
        stored = contents.whole(ref.tenant, ref.name)
        rows = ReadAhead(list(stored.fingerprints), partial(contents.get, ref.tenant, ref.name))

        def read(name: str) -> Tool | None:
            found = rows.read(name)
            return self._tool(ref.tenant, found) if found else None

        others = [self._tool(ref.tenant, row) for row in stored.others]
        return self._engine(ref, stored.revision, stored.fingerprints, read, others)

    def _spec(self, ref: CorpusRef) -> ToolsetSpec:
        record = self._storage.records.get(ref.tenant, TOOLSET, ref.name, at_s=time.time())
        if record is None:
            raise UnknownRecordError(ref.kind, ref.name)
        return ToolsetSpec.of(record.document)

    def _engine_of_toolset(
        self, ref: CorpusRef, spec: ToolsetSpec, catalogs: Mapping[str, Corpus]
    ) -> tuple[_Opened, LiveToolset]:
        opened: list[_Opened] = []

        def index(fingerprints: Mapping[str, str], read: Callable[[str], Tool | None]) -> Catalog:
            opened.append(self._engine(ref, spec.number, fingerprints, read))
            return opened[0].engine.catalog

        toolset = LiveToolset(spec, catalogs, ToolsetNames(self._storage, ref.tenant, ref.name, time.time))
        try:
            toolset.open(index)
        except BaseException:
            toolset.close()
            raise
        return opened[0], toolset

    def _engine(
        self,
        ref: CorpusRef,
        revision: int,
        fingerprints: Mapping[str, str],
        read: Callable[[str], Tool | None],
        others: Sequence[Tool] = (),
    ) -> _Opened:
        tools = FoundTools(fingerprints, read)
        for other in others:
            tools.tally.add(other)
        cache = IndexCache(ref.folder(self._indexes)) if self._indexes is not None else None
        engine = build_engine(
            self._settings,
            StoredCatalog(tools, contents=others),
            persistence=self._storage.sessions(ref.tenant),
            usage=self.usage,
            cache=self._vectors,
            _keeper=cache,
        )
        return _Opened(engine, revision, tools.tally, cache)

    def _tool(self, tenant: str, row: StoredTool) -> Tool:
        return to_tool(row, self._callbacks_of(tenant))


@dataclass(frozen=True, slots=True)
class _Opened:
    engine: ToolSearch
    revision: int
    tally: Tally
    cache: IndexCache | None


def _without_index_dir(settings: ServiceSettings) -> ServiceSettings:
    """Each corpus has a folder of its own."""
    return settings.model_copy(update={"index": settings.index.model_copy(update={"index_dir": None})})


def _vector_cache(settings: ServiceSettings, indexes: Path | None, shared: VectorStore | None) -> VectorCache:
    """One for all corpora: where replicas share it, or in a file, unless the encoder is so fast that it is not worth
    keeping vectors twice.
    """
    if is_quick(settings.index.encoder):
        return VectorCache(MemoryVectorStore(0))
    if shared is not None:
        return VectorCache(shared)
    if indexes is None:
        return VectorCache(MemoryVectorStore(0))
    indexes.mkdir(mode=0o700, parents=True, exist_ok=True)
    return VectorCache(indexes / _VECTORS)
