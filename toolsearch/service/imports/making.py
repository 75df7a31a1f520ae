"""Puts imports together, for one service."""

from __future__ import annotations

from collections.abc import Callable

from toolsearch.service.catalogs import Catalogs
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.imports.exchange import Exchanger
from toolsearch.service.imports.fetching import Fetcher, OpenClient
from toolsearch.service.imports.importing import Importing
from toolsearch.service.imports.imports import Imports
from toolsearch.service.imports.noting import Noting
from toolsearch.service.imports.servers import Connecting, ServerDirectory
from toolsearch.service.job_records import JobRecords
from toolsearch.service.jobs import Jobs
from toolsearch.service.limits import Limits
from toolsearch.service.refused_tools import RefusedTools
from toolsearch.service.replica_lease import ReplicaLease
from toolsearch.service.settings import ServiceSettings
from toolsearch.storage.storage import Storage
from toolsearch.tokens import default_counter


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
        await catalogs.get(tenant, catalog)  # it may have been deleted since the import began
        if more > 0:
            await limits.require_room(tenant, "tools", more)

    noting = Noting(storage, directory.sources, RefusedTools(storage.records, clock), clock)
    importing = Importing(
        Exchanger(storage, corpora, directory.sources),
        noting,
        Fetcher(open_client, settings.imports.max_document_bytes, settings.imports.fetch_timeout_s),
        default_counter(),
        require_catalog_with_room,
    )
    jobs = Jobs(
        JobRecords(storage, clock, settings.retention.jobs_s),
        lease,
        most_at_once=settings.imports.at_once,
        timeout_s=settings.imports.timeout_s,
    )
    return Imports(importing, Connecting(directory, noting, corpora), jobs)
