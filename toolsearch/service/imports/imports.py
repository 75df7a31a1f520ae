"""The sources of catalogs: added, imported again, listed and deleted. Each import is a job."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from toolsearch.errors import BadSettingError, StillRunningError
from toolsearch.service.imports.importing import Importing
from toolsearch.service.imports.servers import Connecting
from toolsearch.service.imports.sources import CatalogSource, Sources, SourceSecrets
from toolsearch.service.jobs import Job, Jobs, Progress, new_job_id
from toolsearch.service.refused_tools import RefusedTools
from toolsearch.tools.json_types import Json, JsonObject


class Imports:
    """To be used within one event loop. Whether the catalog exists, and who may do this, is for the caller to ask."""

    def __init__(self, importing: Importing, connecting: Connecting, jobs: Jobs) -> None:
        self.jobs = jobs
        self._importing = importing
        self._connecting = connecting
        self._beginning = asyncio.Lock()

    @property
    def sources(self) -> Sources:
        return self._importing.sources

    @property
    def refused(self) -> RefusedTools:
        return self._importing.refused

    async def create(
        self, source: CatalogSource, secrets: SourceSecrets, document: Json = None
    ) -> tuple[CatalogSource, Job | None]:
        """Write the new source down, and begin to import *document*, or what its URL gives, or to connect the server.

        Without either there is no job, and the document is awaited. Raises RecordConflictError if there is a source of
        that name.
        """
        source = await self.sources.save(replace(source, sealed=self.sources.sealed(secrets)))
        if source.kind != "mcp" and document is None and not secrets.url:
            return source, None
        return await self._begin(source, document)

    async def upload(self, tenant: str, catalog: str, name: str, document: Json) -> tuple[CatalogSource, Job]:
        """Import *document* in place of the one before. What has not changed is kept.

        Raises UnknownRecordError, StillRunningError while an import of the source runs, or BadSettingError if it has no
        document.
        """
        source = await self.sources.get(tenant, catalog, name)
        if source.kind == "mcp":
            raise BadSettingError(f"the source {name!r} is an MCP server, which has no document")
        return await self._begin(source, document)

    async def refresh(self, tenant: str, catalog: str, name: str) -> tuple[CatalogSource, Job]:
        """The same with what the URL gives now, or the server lists. Raises BadSettingError if there is no URL."""
        source = await self.sources.get(tenant, catalog, name)
        if source.kind != "mcp" and not self.sources.secrets_of(source).url:
            raise BadSettingError(f"the source {name!r} has no url to read again; send its document anew")
        return await self._begin(source, None)

    async def delete(self, tenant: str, catalog: str, name: str) -> int:
        """Delete the source and its tools; an import of it is cancelled first. Return how many tools are gone.

        Raises UnknownRecordError, or StillRunningError if an import writes at this moment.
        """
        async with self._beginning:
            source = await self.sources.get(tenant, catalog, name)
            await self._stop(source)
            if source.kind == "mcp":
                await self._forget(source)  # first, so that it is not connected again meanwhile
                return await self._connecting.disconnect(source)
            removed = await self._importing.remove_tools(source)
            await self._forget(source)
        return removed

    async def drop_catalog(self, tenant: str, catalog: str) -> None:
        """Forget the sources of a catalog that is deleted with its tools. Raises StillRunningError as `delete` does."""
        async with self._beginning:
            sources = await self.sources.of_catalog(tenant, catalog)
            for source in sources:
                await self._stop(source)
            for source in sources:
                await self._forget(source)

    async def aclose(self) -> None:
        await self.jobs.aclose()

    async def _begin(self, source: CatalogSource, document: Json) -> tuple[CatalogSource, Job]:
        async def work(progress: Progress) -> JsonObject:
            if begun.kind == "mcp":
                return await self._connecting.run(begun, progress)
            return await self._importing.run(begun, document, progress)

        async with self._beginning:
            if self.jobs.is_running(source.job):
                raise StillRunningError(
                    f"the job {source.job!r} imports the source {source.name!r}; wait for its end, or cancel it"
                )
            begun = await self.sources.save(replace(source, job=new_job_id(), is_settled=False))
            subject = f"catalog/{source.catalog}/{source.name}"
            return begun, await self.jobs.start(begun.tenant, begun.job, subject, work)

    async def _stop(self, source: CatalogSource) -> None:
        if self.jobs.is_running(source.job):
            await self.jobs.cancel(source.tenant, source.job)

    async def _forget(self, source: CatalogSource) -> None:
        await self.refused.forget(source)
        await self.sources.delete(source)
