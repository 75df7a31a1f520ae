"""Everything that the routes need, as one object."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import cast

from fastapi import Request

from toolsearch.access.principals import Grant
from toolsearch.access.url_guard import UrlGuard
from toolsearch.errors import StorageError
from toolsearch.service.activity.activity import Activity
from toolsearch.service.activity.observing import ActivityObserver
from toolsearch.service.approvals import Approvals
from toolsearch.service.audit import Audit
from toolsearch.service.calls import Calls
from toolsearch.service.catalogs import Catalogs
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.executions import Executions
from toolsearch.service.following import Following
from toolsearch.service.http_tools import HttpTools
from toolsearch.service.idempotency import Idempotency
from toolsearch.service.imports.exchange import Exchanger
from toolsearch.service.imports.making import make_imports
from toolsearch.service.imports.servers import ServerDirectory
from toolsearch.service.imports.sources import Sources
from toolsearch.service.issued_tokens import IssuedTokens
from toolsearch.service.keys import FIRST_TENANT, TENANT, Keys
from toolsearch.service.limits import Limits
from toolsearch.service.mcp_face.connection_ids import ConnectionIds
from toolsearch.service.mcp_face.face import McpFace
from toolsearch.service.metrics import Metrics, Reading
from toolsearch.service.outbound import Outbound
from toolsearch.service.presence import Presence
from toolsearch.service.python_tools import PythonTools
from toolsearch.service.readiness import Readiness
from toolsearch.service.registration import Registrar, read_registration
from toolsearch.service.replica_lease import ReplicaLease
from toolsearch.service.replies import Replies
from toolsearch.service.retention import pruning
from toolsearch.service.seal import Seal
from toolsearch.service.session_tokens import SessionTokens, is_session_token
from toolsearch.service.sessions import SESSION, Sessions
from toolsearch.service.settings import ServiceSettings
from toolsearch.service.shutdown import Shutdown
from toolsearch.service.tenants import Tenants
from toolsearch.service.toolsets import Toolsets
from toolsearch.service.visits import Visits
from toolsearch.storage.records import THE_SERVICE
from toolsearch.storage.storage import Storage

_PAGE = 1_000  # tenants


class Service:
    """Built once; the application runs it. *storage* is closed by who made it.

    `replica` tells it from others over the same store, and is another one at each start.

    Without *seal*, what is sealed can be opened until this process ends.

    indexes  the folder where indexes are kept between starts, which may be deleted while no service runs; None keeps
             them in memory only
    tools    Python tools of the operator, as `read_registration` takes them, for catalogs of the first tenant
    clock    gives seconds since 1970, for what is written and read again; the machine may set it forwards and back
    steady   gives seconds that only grow, for limits and durations
    """

    def __init__(
        self,
        settings: ServiceSettings,
        storage: Storage,
        *,
        seal: Seal | None = None,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
        indexes: Path | None = None,
        tools: Sequence[str] = (),
    ) -> None:
        self.replica = secrets.token_hex(8)
        self._registrations = [read_registration(each) for each in tools]
        self.settings = settings
        self.storage = storage
        self.clock = clock
        self.steady = steady
        self.seal = seal or Seal.until_restart()
        self.shutdown = Shutdown()
        self.keys = Keys(storage, clock)
        self.tokens = SessionTokens(self.keys, self.seal, clock)
        self.visits = Visits(storage.records, self.keys, clock, visit_s=settings.serve.visit_s)
        self.limits = Limits(settings.rates, settings.quotas, storage, self.replica, clock, steady)
        self.readiness = Readiness(storage.records, self.replica, clock, steady)
        self.audit = Audit(storage.audit, clock)
        self.outbound = Outbound(UrlGuard.of(settings.outbound.allowed_hosts, settings.outbound.allowed_networks))
        sources = Sources(storage.records, self.seal, clock)
        self.python_tools = PythonTools()
        http_tools = HttpTools(sources, self.outbound.open_client, settings.http_tools)
        executions = Executions(http_tools, self.python_tools)
        servers = ServerDirectory(sources, self.outbound.transport, settings.mcp_servers, clock)
        self.activity = Activity(storage, settings.activity, clock, steady, self.limits.used_tokens)
        self.presence = Presence(storage.leases, self.replica)
        self.lease = ReplicaLease(storage.leases, self.replica, lasts_s=settings.replicas.lease_s)
        self.idempotency = Idempotency(storage.records, self.presence, self.seal, clock)
        self.corpora = Corpora(
            storage,
            settings,
            executions.of_tenant,
            indexes=indexes,
            servers_of=servers.of_corpus,
            observer_of=partial(ActivityObserver, self.activity),
        )
        self.catalogs = Catalogs(storage, self.corpora, clock, self.limits.require_room, sources.servers_of)
        self.toolsets = Toolsets(storage, self.corpora, clock, self.limits.require_room)
        self.tenants = Tenants(storage, self.keys, self.corpora, clock)
        self.issued_tokens = IssuedTokens.of(settings.jwt, self.tenants)
        self.approvals = Approvals(storage, self.corpora, servers, clock)
        self.imports = make_imports(
            servers,
            storage,
            settings,
            catalogs=self.catalogs,
            corpora=self.corpora,
            limits=self.limits,
            open_client=self.outbound.open_client,
            clock=clock,
            lease=self.lease,
        )
        self.following = Following(storage.changes, self.corpora, self.keys, self.imports.connecting, settings.replicas)
        exchanger = Exchanger(storage, self.corpora, sources)
        self.registrar = Registrar(self.python_tools, storage, exchanger, self.presence, clock)
        self.catalogs.stopping.append(self.imports.stop_catalog)
        self.catalogs.dropping.append(self.imports.drop_catalog)
        self.sessions = Sessions(storage, self.corpora, clock, ttl_s=settings.serve.session_ttl_s)
        self.calls = Calls(self.sessions, self.corpora, storage.records, self.activity, self.limits, clock)
        self.replies = Replies(self.calls, self.sessions, self.limits)
        self.metrics = Metrics(self._reading)
        connection_ids = ConnectionIds(self.seal, storage.records, clock)
        self.mcp = McpFace(self.sessions, self.corpora, self.keys, self.limits, settings, connection_ids)

    async def of_token(self, token: str) -> Grant | None:
        """What a bearer token allows; None if it is not accepted."""
        if not is_session_token(token):
            return await self.keys.of_token(token)
        found = await self.tokens.read(token)
        if found is None and self.issued_tokens is not None:  # of an issuer, which are JWTs as well
            found = await self.issued_tokens.read(token)
        return found

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """While the application serves."""
        async with self.presence.told(), self.activity.running():  # outermost: what ends at the end is noted, too
            try:
                await self.registrar.register(FIRST_TENANT, self._registrations)
                retention = pruning(self.storage, self.settings.retention, self.clock, replica=self.replica)
                registered = self.registrar.following(FIRST_TENANT)
                rates = self.limits.running()
                async with self.following.running(), retention, registered, rates, self.mcp.running():
                    yield
            finally:
                await self.imports.aclose()
                await self.lease.aclose()
                await self.corpora.aclose()
                await self.keys.aclose()
                await self.idempotency.aclose()

    def _reading(self) -> Reading:
        """What the metrics tell besides what is counted. It reads from the store."""
        sessions = None
        with suppress(StorageError):  # the other figures are wanted all the more
            sessions = self._count_sessions()
        jobs = self.imports.jobs
        return Reading(
            store=self.storage.load(),
            sessions=sessions,
            corpora=len(self.corpora.refs),
            corpora_bytes=self.corpora.bytes,
            evictions=self.corpora.evictions,
            running_jobs=jobs.running,
            ended_jobs=dict(jobs.ended_by_state),
            activity=dict(self.activity.figures.totals),
        )

    def _count_sessions(self) -> int:
        now_s, records = self.clock(), self.storage.records
        sessions, last = 0, ""
        while page := records.page(THE_SERVICE, TENANT, after=last, limit=_PAGE, at_s=now_s):
            last = page[-1].id
            sessions += sum(records.count(tenant.id, SESSION, at_s=now_s) for tenant in page)
        return sessions


def service_of(request: Request) -> Service:
    return cast("Service", request.app.state.service)


async def the_service(request: Request) -> Service:
    """The dependency by which routes get it. FastAPI would run a plain function in a thread, for each request."""
    return service_of(request)
