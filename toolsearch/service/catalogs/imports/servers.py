"""The MCP servers of catalogs: their addresses, their connections while the catalog is in memory, and their last
listings.

The record of the end of an import is written here as well.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from toolsearch.errors import BadSettingError, SealError, ToolSearchError, UnknownRecordError
from toolsearch.gateway.status import ServerRow
from toolsearch.service.catalogs.imports.sources import SOURCE, CatalogSource, LastImport, Sources
from toolsearch.service.catalogs.writing import RefusedTools
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import Corpus, CorpusRef
from toolsearch.service.job_records import JobEndedError
from toolsearch.service.jobs import JobProgress
from toolsearch.storage.records import RecordStore
from toolsearch.storage.storage import Storage
from toolsearch.threads import in_thread
from toolsearch.tools.definition import Refusal
from toolsearch.tools.json_types import JsonObject
from toolsearch.upstreams.config import McpServer, read_mcp_config
from toolsearch.upstreams.settings import KeptLogins, OpenTransport, ServerSettings, UpstreamSettings

LISTING: Final = "listing"  # the kind of the records of listings
_KEPT_S: Final = 90 * 86_400.0  # the listing of a server that nobody uses is kept for so long
_WRITTEN_AGAIN_S: Final = 86_400.0  # a listing in use is written again after so long, so that it is kept


@dataclass(frozen=True, slots=True)
class KeptListings:
    """A `ListingPersistence`. *clock* gives seconds since 1970."""

    records: RecordStore
    tenant: str
    clock: Callable[[], float]

    def load(self, name: str) -> JsonObject | None:
        record = self.records.get(self.tenant, LISTING, name, at_s=self.clock())
        return record.document if record else None

    def save(self, name: str, document: JsonObject) -> None:
        """Save a listing. Each replica with a connection saves its own, which is mostly the same."""
        now_s = self.clock()
        there = self.records.get(self.tenant, LISTING, name, at_s=now_s)
        if there is not None and there.document == document and now_s - there.changed_s < _WRITTEN_AGAIN_S:
            return
        self.records.put(self.tenant, LISTING, name, document, over=None, at_s=now_s, expires_s=now_s + _KEPT_S)


@dataclass(frozen=True, slots=True)
class Noting:
    """*clock* gives seconds since 1970."""

    storage: Storage
    sources: Sources
    refused: RefusedTools
    clock: Callable[[], float]

    def done(
        self,
        source: CatalogSource,
        last: LastImport,
        refused: Sequence[Refusal],
        outcome: JsonObject,
        progress: JobProgress,
    ) -> CatalogSource:
        """Write the outcome of an import, with its job, in a thread and in the transaction that is open, if any.

        Raises JobEndedError, and UnknownRecordError if the source was deleted: then nothing may be written.
        """
        with self.storage.transaction():
            progress.written(outcome)
            self.refused.write(source, refused)
            return self.sources.settle(source, last)

    async def failed(self, source: CatalogSource, error: ToolSearchError, progress: JobProgress) -> None:
        """Note a failed import, which changes nothing else."""
        last = replace(source.last or LastImport(0), at_s=self.clock(), code=error.code, error=str(error))

        def write() -> None:
            with self.storage.transaction():
                progress.require_running()
                self.sources.settle(source, last)

        with suppress(JobEndedError, UnknownRecordError):
            await in_thread(write)

    def forget(self, source: CatalogSource) -> None:
        """Delete it, in a thread. Raises ConflictError if it has another version by now."""
        with self.storage.transaction():
            self.sources.remove(source)
            self.refused.remove(source)


logger = logging.getLogger(__name__)


def read_server(name: str, entry: JsonObject) -> McpServer:
    """The server of an entry of ``mcpServers``. Nothing of the environment of this process is filled in.

    Raises BadSettingError.
    """
    config = read_mcp_config({"mcpServers": {name: entry}}, {})
    if config.refused:
        raise BadSettingError(f"the server {name!r} cannot be used: {config.refused[0].reason}")
    return config.servers[0]


@dataclass(frozen=True, slots=True)
class ServerDirectory:
    """The servers of catalogs. *clock* gives seconds since 1970.

    open_transport  reaches only addresses that tenants may name
    policy          settings of all servers
    logins_of       tenant -> where its users log in
    """

    sources: Sources
    open_transport: OpenTransport
    policy: ServerSettings
    clock: Callable[[], float]
    logins_of: Callable[[str], KeptLogins]

    async def of_corpus(self, ref: CorpusRef) -> tuple[UpstreamSettings, ...]:
        """The servers of a corpus. A server with an unreadable entry is left out, and its source reports that at a
        refresh.
        """
        if ref.kind != "catalog":
            return ()
        return self.usable(ref, await self.sources.of_catalog(ref.tenant, ref.name))

    def usable(self, ref: CorpusRef, sources: Iterable[CatalogSource]) -> tuple[UpstreamSettings, ...]:
        """As `of_corpus`, for the given sources of the corpus."""
        found: list[UpstreamSettings] = []
        for source in sources:
            if source.kind != "mcp":
                continue
            try:
                found.append(self.settings_of(source))
            except (SealError, BadSettingError) as error:
                logger.warning("the server %s of %s is left out: %s", source.name, ref, error)
        return tuple(found)

    def settings_of(self, source: CatalogSource) -> UpstreamSettings:
        """Raises SealError or BadSettingError."""
        return UpstreamSettings(
            read_server(source.name, self.sources.secrets_of(source).server),
            self.policy,
            listings=KeptListings(self.sources.records, source.tenant, self.clock),
            open_transport=self.open_transport,
            credentials="per-user" if source.per_user else "shared",
            user_logins=self.logins_of(source.tenant),
        )


@dataclass(frozen=True, slots=True)
class Connecting:
    """Connects servers of catalogs, and takes over their listings."""

    directory: ServerDirectory
    noting: Noting
    corpora: Corpora

    async def run(self, source: CatalogSource, progress: JobProgress) -> JsonObject:
        """Connect or reconnect the server, and note its listing. After a failure the server stays, and is tried again,
        unless the source was deleted meanwhile.
        """
        try:
            return await self._run(source, progress)
        except BaseException:
            await self._disconnect_if_deleted(source)
            raise

    async def _run(self, source: CatalogSource, progress: JobProgress) -> JsonObject:
        row = await self._listed(source, progress)
        last = LastImport(self.noting.clock(), row.tools, row.tokens, len(row.refused))
        outcome: Mapping[str, Any] = {"tools": row.tools, "held": len(row.held), "refused": len(row.refused)}
        saved = await in_thread(self.noting.done, source, last, row.refused, outcome, progress)
        async with self.corpora.in_memory(_corpus_of(source)) as corpus:
            if corpus is not None:
                corpus.seen = {**corpus.seen, (SOURCE, saved.id): saved.version}
        return outcome

    async def follow(self, corpus: Corpus) -> list[str]:
        """Connect, replace and disconnect the servers of a catalog in memory, to match its present sources.

        Return the servers that this replica should list again, because another replica has done so.
        """
        ref, gateway = corpus.ref, corpus.gateway
        sources = await self.noting.sources.of_catalog(ref.tenant, ref.name)
        servers = {each.name: each for each in self.directory.usable(ref, sources)}
        for name in gateway.upstreams.keys() - servers.keys():
            await gateway.servers.remove(name)
        for settings in servers.values():
            try:
                await gateway.servers.update(settings)
            except BadSettingError as error:
                logger.warning("the server %s of %s is left out: %s", settings.name, ref, error)
        known = {source.name: corpus.seen.get((SOURCE, source.id)) for source in sources if source.is_settled}
        asked = {source.name for source in sources if known.get(source.name) not in (None, source.version)}
        return sorted(asked & gateway.upstreams.keys())

    async def disconnect(self, source: CatalogSource) -> int:
        """Disconnect the server. Return the number of tools that are gone."""
        async with self.corpora.using(_corpus_of(source)) as corpus:
            rows = [row for row in corpus.gateway.status().servers if row.upstream.name == source.name]
            await corpus.gateway.servers.remove(source.name)
        return sum(row.tools for row in rows)

    async def _disconnect_if_deleted(self, source: CatalogSource) -> None:
        with suppress(UnknownRecordError):  # the catalog was deleted, too
            if await in_thread(self.noting.sources.find, source.tenant, source.catalog, source.name) is None:
                await self.disconnect(source)

    async def _listed(self, source: CatalogSource, progress: JobProgress) -> ServerRow:
        progress.at("connecting")
        settings = self.directory.settings_of(source)
        async with self.corpora.using(_corpus_of(source)) as corpus:
            gateway = corpus.gateway
            await gateway.servers.update(settings)
            await gateway.upstreams[source.name].relist()
            return next(row for row in gateway.status().servers if row.upstream.name == source.name)


def _corpus_of(source: CatalogSource) -> CorpusRef:
    return CorpusRef(source.tenant, "catalog", source.catalog)
