"""The sources of catalogs: added, imported again, listed and deleted. Each import is a job."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from typing import Final

from toolsearch.errors import (
    BadSettingError,
    ConflictError,
    Kept,
    StillRunningError,
    ToolSearchError,
    UnknownRecordError,
)
from toolsearch.service.catalogs.catalogs import CATALOG, Catalogs
from toolsearch.service.catalogs.imports.importing import DocumentText, Fetcher, Importing, OpenClient
from toolsearch.service.catalogs.imports.servers import Connecting, Noting, ServerDirectory
from toolsearch.service.catalogs.imports.sources import CatalogSource, Exchanger, Sources, SourceSecrets
from toolsearch.service.catalogs.writing import RefusedTools
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.job_records import Job, JobRecords
from toolsearch.service.jobs import JobProgress, Jobs, new_job_id
from toolsearch.service.replicas import ReplicaLease
from toolsearch.service.settings import ServiceSettings
from toolsearch.service.web.limits import Limits
from toolsearch.storage.storage import Storage
from toolsearch.threads import in_thread
from toolsearch.tokens import default_counter
from toolsearch.tools.json_types import Json, JsonObject

_ATTEMPTS: Final = 10  # attempts, since others may begin imports of the same source meanwhile


class Imports:
    """Use it within one event loop. The caller checks that the catalog exists and that the user may do this.

    Only one replica at a time imports a source: the one whose write finds the record unchanged since it was read.
    """

    def __init__(self, importing: Importing, connecting: Connecting, jobs: Jobs) -> None:
        self.jobs = jobs
        self._importing = importing
        self.connecting = connecting
        self.dropped: list[Callable[[str], Awaitable[None]]] = []  # awaited with the tenant after a server has gone

    @property
    def sources(self) -> Sources:
        return self._noting.sources

    @property
    def refused(self) -> RefusedTools:
        return self._noting.refused

    @property
    def _noting(self) -> Noting:
        return self._importing.noting

    async def create(
        self, source: CatalogSource, secrets: SourceSecrets, document: Json = None
    ) -> tuple[CatalogSource, Job | None]:
        """Store the new source, and begin to import *document* or the document at its URL, or to connect the server.

        Without any of these there is no job until a document is uploaded. Raises ConflictError if the name is
        taken, and UnknownRecordError if the catalog was deleted.
        """
        source = await in_thread(self._add, replace(source, sealed=self.sources.sealed(secrets)))
        if source.kind != "mcp" and document is None and not secrets.url:
            return source, None
        return await self._begin(source, document)

    async def upload(
        self, tenant: str, catalog: str, name: str, document: Json | DocumentText
    ) -> tuple[CatalogSource, Job]:
        """Import *document* in place of the one before. Unchanged tools are kept.

        Raises UnknownRecordError, StillRunningError while an import of the source runs, or BadSettingError if it has no
        document.
        """
        source = await self.sources.get(tenant, catalog, name)
        if source.kind == "mcp":
            raise BadSettingError(f"the source {name!r} is an MCP server, and MCP servers have no document")
        return await self._begin(source, document)

    async def refresh(self, tenant: str, catalog: str, name: str) -> tuple[CatalogSource, Job]:
        """Import the present content of the URL or of the server. Raises BadSettingError if there is no URL."""
        source = await self.sources.get(tenant, catalog, name)
        if source.kind != "mcp" and not self.sources.secrets_of(source).url:
            raise BadSettingError(f"the source {name!r} has no url to read again; send its document anew")
        return await self._begin(source, None)

    async def delete(self, tenant: str, catalog: str, name: str) -> int:
        """Delete the source and its tools, after cancelling its import. Return the number of deleted tools.

        Raises UnknownRecordError, or StillRunningError if an import is just writing.
        """
        for _ in range(_ATTEMPTS):
            source = await self.sources.get(tenant, catalog, name)
            await self._stop(source)
            try:
                if source.kind != "mcp":
                    return await self._importing.delete(source)
                # Forgotten first, so that it is not connected again meanwhile.
                await in_thread(self._noting.forget, source)
            except ConflictError as error:  # another import of the source has begun
                if error.kept is Kept.RECORDS:
                    continue
                raise
            gone = await self.connecting.disconnect(source)
            for tell in self.dropped:
                await tell(tenant)
            return gone
        raise StillRunningError(f"imports of the source {name!r} are begun again and again; end that, and repeat")

    async def stop_catalog(self, tenant: str, catalog: str) -> None:
        """Cancel the imports of a catalog that is to be deleted. Raises StillRunningError as `delete` does."""
        for source in await self.sources.of_catalog(tenant, catalog):
            await self._stop(source)

    def drop_catalog(self, tenant: str, catalog: str) -> None:
        """Forget the sources of a catalog, in a thread, within the transaction that deletes it. Imports that have begun
        since `stop_catalog` fail.
        """
        for source in self.sources.all_of(tenant, catalog):
            self._noting.forget(source)

    async def running_among(self, sources: Collection[CatalogSource]) -> frozenset[str]:
        """The ids of the sources that any replica is importing. All *sources* belong to one tenant."""
        begun = {source.job: source for source in sources if source.job and not source.is_settled}
        if not begun:
            return frozenset()
        running = await self.jobs.running_among(next(iter(begun.values())).tenant, begun)
        return frozenset(begun[job].id for job in running)

    async def aclose(self) -> None:
        await self.jobs.aclose()

    def _add(self, source: CatalogSource) -> CatalogSource:
        storage = self._noting.storage
        with storage.transaction():
            if storage.records.hold(source.tenant, CATALOG, source.catalog, at_s=self._noting.clock()) is None:
                raise UnknownRecordError(CATALOG, source.catalog)
            return self.sources.write(source)

    async def _begin(self, source: CatalogSource, document: Json | DocumentText) -> tuple[CatalogSource, Job]:
        for _ in range(_ATTEMPTS):
            if await self.running_among([source]):
                break
            try:
                return await self._started(source, document)
            except ConflictError:  # another caller has begun an import
                source = await self.sources.get(source.tenant, source.catalog, source.name)
        raise StillRunningError(
            f"the job {source.job!r} imports the source {source.name!r}; wait for its end, or cancel it"
        )

    async def _started(self, source: CatalogSource, document: Json | DocumentText) -> tuple[CatalogSource, Job]:
        begun = replace(source, job=new_job_id(), is_settled=False)

        async def work(progress: JobProgress) -> JsonObject:
            if begun.kind == "mcp":
                return await self.connecting.run(begun, progress)
            return await self._importing.run(begun, document, progress)

        def write() -> None:
            nonlocal begun
            begun = self.sources.write(begun)

        async def note(error: ToolSearchError, progress: JobProgress) -> None:
            await self._noting.failed(begun, error, progress)

        subject = f"catalog/{begun.catalog}/{begun.name}"
        job = await self.jobs.start(begun.tenant, begun.job, subject, work, also=write, on_failure=note)
        return begun, job

    async def _stop(self, source: CatalogSource) -> None:
        if await self.running_among([source]):
            await self.jobs.cancel(source.tenant, source.job)


def make_imports(
    directory: ServerDirectory,
    storage: Storage,
    settings: ServiceSettings,
    *,
    catalogs: Catalogs,
    corpora: Corpora,
    limits: Limits,
    open_client: OpenClient,
    clock: Callable[[], float],
    lease: ReplicaLease,
) -> Imports:
    async def require_catalog_with_room(tenant: str, catalog: str, more: int) -> None:
        await catalogs.get(tenant, catalog)  # raises if the catalog was deleted since the import began
        if more > 0:
            await limits.require_room(tenant, "tools", more)

    noting = Noting(storage, directory.sources, RefusedTools(storage.records, clock), clock)
    importing = Importing(
        Exchanger(storage, corpora, directory.sources),
        noting,
        Fetcher(open_client),
        default_counter(),
        require_catalog_with_room,
    )
    jobs = Jobs(
        JobRecords(storage, clock),
        lease,
        most_at_once=settings.imports.at_once,
        timeout_s=settings.imports.timeout_s,
    )
    return Imports(importing, Connecting(directory, noting, corpora), jobs)
