"""The catalogs and toolsets that are in memory: opened from the store when used, the least recently used out first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from toolsearch.catalog.catalog import Catalog
from toolsearch.engine import ToolSearch
from toolsearch.errors import UnknownRecordError
from toolsearch.gateway.gateway import Gateway
from toolsearch.gateway.settings import GatewayConfig, GatewaySettings
from toolsearch.service.corpora.corpus import Corpus, CorpusRef
from toolsearch.service.settings import ServiceSettings
from toolsearch.service.stored_tools import MakeCallback, to_tool
from toolsearch.storage.contents import StoredTool
from toolsearch.storage.storage import Storage
from toolsearch.tools.definition import Tool
from toolsearch.wiring import build_engine

_PAGE = 1_000


class Corpora:
    """Use it within one event loop; enter it before, and leave it at the end, which closes everything.

    callbacks_of  gives, for a tenant, what runs its stored tools
    """

    def __init__(
        self, storage: Storage, settings: ServiceSettings, callbacks_of: Callable[[str], MakeCallback]
    ) -> None:
        self._storage = storage
        self._settings = settings
        self._callbacks_of = callbacks_of
        self._open: dict[CorpusRef, Corpus] = {}
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()

    @asynccontextmanager
    async def using(self, ref: CorpusRef) -> AsyncGenerator[Corpus]:
        """Open the corpus if it is not in memory, and keep it there while the block runs.

        Raises UnknownRecordError if there is none, with the same words whether it is unknown or of another tenant.
        """
        async with self._opening:
            corpus = self._open.get(ref)
            if corpus is None:
                corpus = self._open[ref] = await self._opened(ref)
        yield corpus

    async def changed(self, ref: CorpusRef, *, put: Sequence[StoredTool] = (), remove: Collection[str] = ()) -> None:
        """Bring the index up to date after a change of the store, if the corpus is in memory."""
        corpus = self._open.get(ref)
        if corpus is not None:
            await asyncio.to_thread(self._apply, corpus, put, remove)

    async def aclose(self) -> None:
        self._open.clear()
        await self._stack.aclose()

    async def _opened(self, ref: CorpusRef) -> Corpus:
        engine, revision = await asyncio.to_thread(self._engine, ref)
        gateway = Gateway(GatewayConfig(str(ref), (), GatewaySettings()), engine=engine)
        await self._stack.enter_async_context(gateway)
        return Corpus(ref, engine, gateway, revision)

    def _engine(self, ref: CorpusRef) -> tuple[ToolSearch, int]:
        records, contents = self._storage.records, self._storage.contents
        if records.get(ref.tenant, ref.kind, ref.name, at_s=time.time()) is None:
            raise UnknownRecordError(ref.kind, ref.name)
        revision, rows = contents.revision(ref.tenant, ref.name), list[StoredTool]()
        while page := contents.page(ref.tenant, ref.name, after=rows[-1].name if rows else "", limit=_PAGE):
            rows += page
        catalog = Catalog(self._tools(ref, rows))
        return build_engine(self._settings, catalog, persistence=self._storage.sessions(ref.tenant)), revision

    def _apply(self, corpus: Corpus, put: Sequence[StoredTool], remove: Collection[str]) -> None:
        catalog = corpus.engine.catalog
        catalog.put(*self._tools(corpus.ref, put))
        catalog.remove(*(name for name in remove if name in catalog))

    def _tools(self, ref: CorpusRef, rows: Sequence[StoredTool]) -> list[Tool]:
        make_callback = self._callbacks_of(ref.tenant)
        return [to_tool(row, make_callback) for row in rows]
