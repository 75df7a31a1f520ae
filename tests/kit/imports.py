"""Imports into the catalogs of a store, without the application around them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

from tests.kit.clock import Clock
from toolsearch.errors import TooManyError
from toolsearch.service.catalogs.catalogs import Catalogs
from toolsearch.service.catalogs.imports.importing import Fetcher, Importing
from toolsearch.service.catalogs.imports.imports import Imports
from toolsearch.service.catalogs.imports.servers import Connecting, Noting, ServerDirectory
from toolsearch.service.catalogs.imports.sources import CatalogSource, Exchanger, Sources, SourceSecrets
from toolsearch.service.catalogs.writing import RefusedTools
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.job_records import Job, JobRecords
from toolsearch.service.jobs import Jobs
from toolsearch.service.logins.logins import LoginStore, TenantLogins
from toolsearch.service.replicas import LASTS_S, ReplicaLease
from toolsearch.service.settings import ServiceSettings
from toolsearch.storage.seal import Seal
from toolsearch.storage.sqlite.place import SqliteStorage
from toolsearch.storage.storage import Storage
from toolsearch.tokens import HeuristicTokenCounter
from toolsearch.tools.json_types import Json
from toolsearch.upstreams.settings import ServerSettings

TENANT = "acme"
NOW_S = 1_800_000_000.0


@dataclass
class Web:
    """*pages* are what is behind URLs, *asked* the requests for them. It answers once *may_answer* is set."""

    pages: dict[str, httpx2.Response] = field(default_factory=dict)
    asked: list[httpx2.Request] = field(default_factory=list)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.may_answer.set()

    def open_transport(self) -> httpx2.AsyncBaseTransport:
        return httpx2.MockTransport(self._answer)

    def open_client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=self.open_transport())

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        await self.may_answer.wait()
        return self.pages.get(str(request.url)) or httpx2.Response(404)


@dataclass
class ImportsKit:
    """*room* is how many tools a catalog may grow by. *meanwhile* is done between the check and the writing."""

    imports: Imports
    storage: Storage
    catalogs: Catalogs
    corpora: Corpora
    clock: Clock
    web: Web
    room: int = 1_000
    meanwhile: Callable[[], Awaitable[object]] | None = None

    async def add(self, name: str, kind: Any, document: Json = None, **more: Any) -> tuple[CatalogSource, Job]:
        """Add a source to the catalog ``default``, and wait for the end of its import."""
        secrets = SourceSecrets(**more.pop("secrets", {}))
        source = CatalogSource(TENANT, "default", name, kind, created_s=NOW_S, **more)
        source, job = await self.imports.create(source, secrets, document)
        return await self.ended(source, job)

    async def ended(self, source: CatalogSource, job: Job | None) -> tuple[CatalogSource, Job]:
        assert job is not None
        ended = await self.imports.jobs.ended(TENANT, job.id)
        return await self.imports.sources.get(TENANT, source.catalog, source.name), ended

    def tools(self) -> dict[str, str]:
        """The source of each tool of the catalog ``default``, by name."""
        return {row.name: row.source for row in self.storage.contents.page(TENANT, "default", limit=1_000)}

    async def refused(self, source: CatalogSource) -> dict[str, str]:
        return {each.name: each.reason for each in await self.imports.refused.of_source(source)}

    async def require_room(self, tenant: str, catalog: str, more: int) -> None:
        assert (tenant, catalog) == (TENANT, "default")
        if more > self.room:
            raise TooManyError(f"no room for {more} tools")
        if self.meanwhile is not None:
            await self.meanwhile()


@asynccontextmanager
async def importing(folder: Path, *, max_document_bytes: int = 100_000) -> AsyncIterator[ImportsKit]:
    """Imports of the tenant ``acme``, which has a catalog ``default``."""
    with closing(SqliteStorage(folder / "toolsearch.db")) as storage:
        async with importing_into(storage, max_document_bytes=max_document_bytes) as kit:
            await kit.catalogs.create(TENANT, "default", {"description": ""})
            yield kit


@asynccontextmanager
async def importing_into(
    storage: Storage,
    *,
    replica: str = "only",
    lease_s: float = LASTS_S,
    clock_ahead_s: float = 0.0,
    seal: Seal | None = None,
    max_document_bytes: int = 100_000,
) -> AsyncIterator[ImportsKit]:
    """The imports of one replica. *clock_ahead_s* is by how much its clock goes wrong."""
    clock, web = Clock(NOW_S + clock_ahead_s), Web()
    corpora = Corpora(storage, ServiceSettings(), lambda _tenant: lambda _row, _execution: None)
    catalogs = Catalogs(storage, corpora, clock)
    kit: ImportsKit

    async def require_room(tenant: str, catalog: str, more: int) -> None:
        await kit.require_room(tenant, catalog, more)

    sources = Sources(storage.records, seal or Seal.until_restart(), clock)
    refused = RefusedTools(storage.records, clock)
    logins = LoginStore(storage.records, storage.leases, sources.seal, clock)
    directory = ServerDirectory(sources, web.open_transport, ServerSettings(), clock, partial(TenantLogins, logins))
    noting = Noting(storage, sources, refused, clock)
    parts = Importing(
        Exchanger(storage, corpora, sources),
        noting,
        Fetcher(web.open_client, max_document_bytes, 5.0),
        HeuristicTokenCounter(),
        require_room,
    )
    lease = ReplicaLease(storage.leases, replica, lasts_s=lease_s)
    jobs = Jobs(JobRecords(storage, clock, retention_s=1_000), lease, most_at_once=2, timeout_s=60, look_every_s=0.02)
    imports = Imports(parts, Connecting(directory, noting, corpora), jobs)
    catalogs.stopping.append(imports.stop_catalog)
    catalogs.dropping.append(imports.drop_catalog)
    kit = ImportsKit(imports, storage, catalogs, corpora, clock, web)
    try:
        yield kit
    finally:
        await imports.aclose()
        await lease.aclose()
        await corpora.aclose()


def petstore(*operations: str, **more: Any) -> Mapping[str, Json]:
    """An OpenAPI document at https://pets.example with a GET for each of *operations*."""
    paths = {
        f"/{name}": {"get": {"operationId": name, "summary": f"Get {name}.", "responses": {}}} for name in operations
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Pets"},
        "servers": [{"url": "https://pets.example/v1"}],
        "paths": paths,
        **more,
    }
