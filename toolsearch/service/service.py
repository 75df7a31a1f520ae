"""Makes every part of the service once; connects to addresses of tenants; deletes expired data."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import httpx2

from toolsearch.access.principals import Grant
from toolsearch.access.url_guard import GuardedTransport, UrlGuard
from toolsearch.chores import running
from toolsearch.errors import StorageError
from toolsearch.proxy.app import ProxiedRequest
from toolsearch.service.activity.activity import Activity, ActivityObserver, Who
from toolsearch.service.approvals import Approvals
from toolsearch.service.audit import Audit
from toolsearch.service.calls.calls import Calls
from toolsearch.service.calls.executions import Executions, HttpTools
from toolsearch.service.calls.routes import Replies
from toolsearch.service.catalogs.catalogs import Catalogs
from toolsearch.service.catalogs.imports.imports import make_imports
from toolsearch.service.catalogs.imports.servers import ServerDirectory
from toolsearch.service.catalogs.imports.sources import Exchanger, Sources
from toolsearch.service.catalogs.python_tools import PythonTools, Registrar, read_registration
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.keys.keys import FIRST_TENANT, TENANT, Keys, SessionTokens, is_session_token
from toolsearch.service.logins.logins import LoginDesk, LoginStore, TenantLogins
from toolsearch.service.mcp_face.connections import ConnectionIds
from toolsearch.service.mcp_face.face import McpFace
from toolsearch.service.providers import Providers
from toolsearch.service.proxy_face import ProxyFace
from toolsearch.service.replica_changes import POLL_S, Following
from toolsearch.service.replicas import ReplicaLease, ReplicaPresence
from toolsearch.service.sessions.sessions import SESSION, Sessions
from toolsearch.service.settings import RetentionSettings, ServiceSettings
from toolsearch.service.tenants import IssuedTokens, Tenants
from toolsearch.service.toolsets.toolsets import Toolsets
from toolsearch.service.web.callers import Visits
from toolsearch.service.web.idempotency import Idempotency
from toolsearch.service.web.limits import Limits
from toolsearch.service.web.metrics import Metrics, Readiness, ServiceFigures
from toolsearch.service.web.middleware import Shutdown
from toolsearch.service.web.parts import ServiceParts
from toolsearch.storage.records import THE_SERVICE
from toolsearch.storage.seal import Seal
from toolsearch.storage.storage import Storage


@dataclass(frozen=True, slots=True)
class Outbound:
    """Gives each client a transport of its own, so that clients do not wait for each other's connections."""

    guard: UrlGuard

    def open_client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=self.transport(), trust_env=False)

    def transport(self) -> httpx2.AsyncBaseTransport:
        return GuardedTransport(self.guard)


_BATCH: Final = 500  # rows deleted in one transaction; other writers wait some milliseconds for it
_EVERY_S: Final = 3_600.0
UPKEEP: Final = "upkeep"  # the lease of the replica that does the upkeep
_LEASE_S: Final = 60.0
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many of each were deleted."""

    records: int = 0
    receipts: int = 0
    figures: int = 0
    misses: int = 0
    audit: int = 0


def _always() -> bool:
    return True


def prune(
    storage: Storage,
    settings: RetentionSettings,
    *,
    now_s: float,
    batch: int = _BATCH,
    may_go_on: Callable[[], bool] = _always,
) -> Pruned:
    """Delete data that have expired at the time *now_s*, in transactions of at most *batch* rows.

    may_go_on  is called before each of them; False ends the work early
    """

    def in_batches(delete: Callable[[], int]) -> int:
        total = 0
        while may_go_on() and (deleted := delete()):
            total += deleted
        return total

    def by_age(delete: Callable[..., int], kept_s: float) -> int:
        return in_batches(lambda: delete(before_s=now_s - kept_s, limit=batch))

    return Pruned(
        records=in_batches(lambda: _prune_records(storage, now_s, batch)),
        receipts=by_age(storage.receipts.prune, settings.receipts_s),
        figures=by_age(storage.figures.prune, settings.figures_s),
        misses=by_age(storage.misses.prune, settings.misses_s),
        audit=by_age(partial(storage.audit.prune, at_s=now_s), settings.audit_s),
    )


def prune_alone(storage: Storage, settings: RetentionSettings, *, now_s: float, replica: str) -> Pruned | None:
    """The same, as *replica*, unless another one does it now; then None."""
    leases = storage.leases
    if not leases.take(UPKEEP, replica, for_s=_LEASE_S):
        return None
    try:
        return prune(
            storage,
            settings,
            now_s=now_s,
            may_go_on=lambda: leases.renew(UPKEEP, replica, for_s=_LEASE_S),
        )
    finally:
        leases.release(UPKEEP, replica)


async def keep_pruning(
    storage: Storage, settings: RetentionSettings, clock: Callable[[], float], *, replica: str
) -> None:
    """Prune now and once an hour, until it is cancelled. A failure is logged, and tried again the next time."""
    while True:
        try:
            pruned = await asyncio.to_thread(prune_alone, storage, settings, now_s=clock(), replica=replica)
        except StorageError:
            logger.exception("old data could not be deleted")
        else:
            logger.info("deleted old data: %s", pruned or "another replica does it")
        await asyncio.sleep(_EVERY_S)


def _prune_records(storage: Storage, now_s: float, batch: int) -> int:
    """Delete expired records. A session's record goes together with the engine's session of the same id."""
    with storage.transaction():
        gone = storage.records.prune(at_s=now_s, limit=batch)
        for tenant, kind, record_id in gone:
            if kind == SESSION:
                storage.sessions(tenant).delete(record_id)
    return len(gone)


_PAGE = 1_000  # tenants that are read at a time


class Service(ServiceParts):
    """Built once; the application runs it. The maker of *storage* closes it.

    `replica` is a name among others over the same store. It is new at each start.

    Without *seal*, sealed texts can be opened only until this process ends.

    indexes  the folder of indexes between starts, which may be deleted while no service runs; None keeps
             them in memory only
    tools    Python tools of the operator, in the form of `read_registration`, for catalogs of the first tenant
    clock    gives seconds since 1970, for what is written and read again; the machine may set it forwards and back
    steady   gives seconds that only grow, for limits and durations
    poll_s   how often to look for what other replicas wrote
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
        poll_s: float = POLL_S,
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
        self.limits = Limits(settings.rates, settings.quotas, storage, self.replica, clock, steady)
        self.readiness = Readiness(storage.records, self.replica, clock, steady)
        self.audit = Audit(storage.audit, clock)
        self.outbound = Outbound(UrlGuard.of(settings.outbound.allowed_hosts, settings.outbound.allowed_networks))
        self.providers = Providers(storage.records, self.seal, self.outbound.guard, clock)
        sources = Sources(storage.records, self.seal, clock)
        self.python_tools = PythonTools()
        http_tools = HttpTools(sources, self.outbound.open_client)
        executions = Executions(http_tools, self.python_tools)
        public_url = (settings.serve.public_url or "").removesuffix("/")
        logins = LoginStore(storage.records, storage.leases, self.seal, clock, public_url)
        servers = ServerDirectory(
            sources, self.outbound.transport, settings.mcp_servers, clock, partial(TenantLogins, logins)
        )
        self.login_desk = LoginDesk(logins, self.keys, servers)
        self.keys.revoked.append(self.login_desk.end_of_keys)
        self.activity = Activity(storage, settings.activity, clock, steady, self.limits.used_tokens)
        self.presence = ReplicaPresence(storage.leases, self.replica)
        self.lease = ReplicaLease(storage.leases, self.replica)
        self.idempotency = Idempotency(storage.records, self.presence, self.seal, clock)
        self.corpora = Corpora(
            storage,
            settings,
            executions.of_tenant,
            indexes=indexes,
            servers_of=servers.of_corpus,
            observer_of=partial(ActivityObserver, self.activity),
            rates=self.limits.tools,
        )
        self.catalogs = Catalogs(storage, self.corpora, clock, self.limits.require_room, sources.servers_of)
        self.toolsets = Toolsets(storage, self.corpora, clock, self.limits.require_room)
        self.tenants = Tenants(storage, self.keys, self.corpora, clock, [self.login_desk.end_all])
        self.issued_tokens = IssuedTokens.of(settings.jwt, self.tenants)
        self.visits = Visits(
            storage.records,
            self.of_token,
            self.keys.of_id,
            self.tenants.exists,
            clock,
            visit_s=settings.serve.visit_s,
        )
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
        self.jobs = self.imports.jobs
        self.following = Following(storage.changes, self.corpora, self.keys, self.imports.connecting, poll_s=poll_s)
        exchanger = Exchanger(storage, self.corpora, sources)
        self.registrar = Registrar(self.python_tools, storage, exchanger, self.presence, clock)
        self.catalogs.stopping.append(self.imports.stop_catalog)
        self.catalogs.dropping.append(self.imports.drop_catalog)
        self.catalogs.dropped.append(self.login_desk.end_of_servers)
        self.imports.dropped.append(self.login_desk.end_of_servers)
        self.sessions = Sessions(storage, self.corpora, clock, ttl_s=settings.serve.session_ttl_s)
        self.calls = Calls(self.sessions, self.corpora, storage.records, self.activity, self.limits, clock)
        self.replies = Replies(self.calls, self.sessions, self.limits)
        self.metrics = Metrics(self._reading)
        self.proxy = ProxyFace(
            self.providers, self.corpora, self.calls, settings, self.outbound.transport(), self._proxied
        )
        connection_ids = ConnectionIds(self.seal, storage.records, clock)
        self.mcp = McpFace(self.sessions, self.corpora, self.keys, self.limits, settings, connection_ids)

    async def of_token(self, token: str) -> Grant | None:
        """The grant of a bearer token; None if it is not accepted."""
        if not is_session_token(token):
            return await self.keys.of_token(token)
        found = await self.tokens.read(token)
        if found is None and self.issued_tokens is not None:  # an issuer's tokens are JWTs as well
            found = await self.issued_tokens.read(token)
        return found

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """While the application serves."""
        # Outermost, so that what ends at shutdown is recorded.
        async with self.presence.told(), self.activity.running():
            try:
                await self.registrar.register(FIRST_TENANT, self._registrations)
                async with (
                    self.following.running(),
                    running(keep_pruning(self.storage, self.settings.retention, self.clock, replica=self.replica)),
                    self.registrar.following(FIRST_TENANT),
                    self.limits.running(),
                    self.mcp.running(),
                ):
                    yield
            finally:
                await self.login_desk.aclose()
                await self.imports.aclose()
                await self.lease.aclose()
                await self.proxy.aclose()
                await self.corpora.aclose()
                await self.keys.aclose()
                await self.idempotency.aclose()

    def _proxied(self, who: Who, done: ProxiedRequest) -> None:
        self.activity.proxied(who, done)
        self.metrics.proxied(done)

    def _reading(self) -> ServiceFigures:
        """The metrics that are not counted as they happen. They are read from the store."""
        sessions = None
        with suppress(StorageError):  # the other figures are still of use
            sessions = self._count_sessions()
        jobs = self.imports.jobs
        return ServiceFigures(
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
