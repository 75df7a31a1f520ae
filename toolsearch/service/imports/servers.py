"""The MCP servers of catalogs: how each is reached, and how it is connected while its catalog is in memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from toolsearch.errors import BadSettingError, SealError, ToolSearchError
from toolsearch.gateway.status.snapshot import ServerRow
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.imports.sources import CatalogSource, LastImport, Sources
from toolsearch.service.jobs import Progress
from toolsearch.service.kept_listings import KeptListings
from toolsearch.service.refused_tools import RefusedTools
from toolsearch.tools.json_types import JsonObject
from toolsearch.upstreams.config import McpServer, read_mcp_config
from toolsearch.upstreams.settings import OpenTransport, ServerSettings, UpstreamSettings

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
    """Which servers catalogs have. *clock* gives seconds since 1970.

    open_transport  reaches only what tenants may name
    policy          what holds for each server
    """

    sources: Sources
    open_transport: OpenTransport
    policy: ServerSettings
    clock: Callable[[], float]

    async def of_corpus(self, ref: CorpusRef) -> tuple[UpstreamSettings, ...]:
        """A server whose entry cannot be read is left out; its source says so when it is refreshed."""
        if ref.kind != "catalog":
            return ()
        found: list[UpstreamSettings] = []
        for source in await self.sources.of_catalog(ref.tenant, ref.name):
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
        )


@dataclass(frozen=True, slots=True)
class Connecting:
    """Connects servers of catalogs, and takes what they list."""

    directory: ServerDirectory
    refused: RefusedTools
    corpora: Corpora
    clock: Callable[[], float]

    async def run(self, source: CatalogSource, progress: Progress) -> JsonObject:
        """Connect the server, or connect it anew, and note what it lists. It is kept up also if that fails now."""
        try:
            row = await self._listed(source, progress)
        except ToolSearchError as error:
            last = replace(source.last or LastImport(0), at_s=self.clock(), code=error.code, error=str(error))
            await self._sources.save(replace(source, is_settled=True, last=last))
            raise
        await self.refused.save(source, row.refused)
        last = LastImport(self.clock(), row.tools, row.tokens, len(row.refused))
        await self._sources.save(replace(source, is_settled=True, last=last))
        outcome: Mapping[str, Any] = {"tools": row.tools, "held": len(row.held), "refused": len(row.refused)}
        return outcome

    async def disconnect(self, source: CatalogSource) -> int:
        """Return how many tools are gone."""
        async with self.corpora.using(_corpus_of(source)) as corpus:
            rows = [row for row in corpus.gateway.status().servers if row.upstream.name == source.name]
            await corpus.gateway.remove_server(source.name)
        return sum(row.tools for row in rows)

    @property
    def _sources(self) -> Sources:
        return self.directory.sources

    async def _listed(self, source: CatalogSource, progress: Progress) -> ServerRow:
        progress.at("connecting")
        settings = self.directory.settings_of(source)
        async with self.corpora.using(_corpus_of(source)) as corpus:
            gateway = corpus.gateway
            await gateway.update_server(settings)
            await gateway.upstreams[source.name].relist()
            return next(row for row in gateway.status().servers if row.upstream.name == source.name)


def _corpus_of(source: CatalogSource) -> CorpusRef:
    return CorpusRef(source.tenant, "catalog", source.catalog)
