"""How a corpus is opened from the store: warm, with the index that is kept in a folder of its own."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolsearch.catalog.catalog import StoredCatalog
from toolsearch.catalog.index_cache import IndexCache
from toolsearch.engine import ToolSearch
from toolsearch.errors import UnknownRecordError
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.settings import GatewayConfig, GatewaySettings
from toolsearch.gateway.status.observing import GatewayObserver
from toolsearch.service.corpora.corpus import Corpus, CorpusRef
from toolsearch.service.corpora.stored_catalog import FoundTools, Tally
from toolsearch.service.settings import ServiceSettings
from toolsearch.service.stored_tools import MakeCallback, to_tool
from toolsearch.sessions.usage.log import UsageLog
from toolsearch.storage.contents import StoredTool
from toolsearch.storage.storage import Storage
from toolsearch.threads import BoundedThreads
from toolsearch.tools.definition import Tool
from toolsearch.upstreams.settings import UpstreamSettings
from toolsearch.wiring import build_engine
from toolsearch_indexes.encoders.opening import BUILT_IN
from toolsearch_indexes.vector_cache import VectorCache
from toolsearch_indexes.vector_store import MemoryVectorStore

_VECTORS: Final = "vectors.sqlite"
_AT_ONCE: Final = 4  # more at once would only hold more memory

CallbacksOf = Callable[[str], MakeCallback]  # for a tenant, what runs its stored tools
ObserverOf = Callable[[CorpusRef], GatewayObserver | None]  # who is told of what is done with a corpus
ServersOf = Callable[[CorpusRef], Awaitable[tuple[UpstreamSettings, ...]]]  # the MCP servers of a corpus


async def no_servers(_ref: CorpusRef) -> tuple[UpstreamSettings, ...]:
    return ()


class CorpusOpener:
    """Opens corpora and applies changes to them.

    callbacks_of  gives, for a tenant, what runs its stored tools
    indexes       the folder of all indexes; None keeps them in memory only
    servers_of    gives the MCP servers of a corpus
    observer_of   gives who is told of what is done with a corpus
    """

    def __init__(
        self,
        storage: Storage,
        settings: ServiceSettings,
        callbacks_of: CallbacksOf,
        *,
        indexes: Path | None,
        servers_of: ServersOf,
        observer_of: ObserverOf,
    ) -> None:
        self._storage = storage
        self._settings = _without_index_dir(settings)
        self._callbacks_of = callbacks_of
        self._indexes = indexes
        self._servers_of = servers_of
        self._observer_of = observer_of
        self._vectors = _vector_cache(settings, indexes)
        self._usage = UsageLog(storage.usage)
        self._threads = BoundedThreads(_AT_ONCE)

    async def open(self, ref: CorpusRef) -> Corpus:
        """Raises UnknownRecordError if there is none, whatever the reason."""
        opened = await self._threads.run(self._engine_of_catalog, ref)
        try:
            gateway = await self._gateway(ref, opened.engine)
            await gateway.__aenter__()
        except BaseException:
            opened.engine.close()
            raise
        return Corpus(ref, opened.engine, gateway, opened.revision, opened.tally, opened.cache)

    async def _gateway(self, ref: CorpusRef, engine: ToolSearch) -> Gateway:
        settings = GatewaySettings(trust=self._settings.trust, state_dir=self._indexes)
        config = GatewayConfig(str(ref), await self._servers_of(ref), settings)
        pins, observer = self._storage.pins(ref.tenant), self._observer_of(ref)
        return Gateway(config, engine=engine, pins=pins, observer=observer)

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
        revision = contents.revision(ref.tenant, ref.name)

        def read(name: str) -> Tool | None:
            found = contents.get(ref.tenant, ref.name, [name])
            return self._tool(ref.tenant, found[0]) if found else None

        return self._engine(ref, revision, contents.fingerprints(ref.tenant, ref.name), read)

    def _engine(
        self, ref: CorpusRef, revision: int, fingerprints: Mapping[str, str], read: Callable[[str], Tool | None]
    ) -> _Opened:
        tools = FoundTools(fingerprints, read)
        cache = IndexCache(ref.folder(self._indexes)) if self._indexes is not None else None
        engine = build_engine(
            self._settings,
            StoredCatalog(tools),
            persistence=self._storage.sessions(ref.tenant),
            usage=self._usage,
            cache=self._vectors,
            index_dir=cache,
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


def _vector_cache(settings: ServiceSettings, indexes: Path | None) -> VectorCache:
    """One for all corpora: in a file, unless the encoder is so fast that it is not worth keeping vectors twice."""
    if settings.index.encoder in (None, BUILT_IN) or indexes is None:
        return VectorCache(MemoryVectorStore(0))
    indexes.mkdir(mode=0o700, parents=True, exist_ok=True)
    return VectorCache(indexes / _VECTORS)
