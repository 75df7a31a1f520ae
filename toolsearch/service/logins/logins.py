"""The logins of users at MCP servers. Each belongs to one key or JWT subject of one tenant.

The store holds them, encrypted, for all replicas. A login may begin at one replica, and the browser's answer may come
to another one.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from secrets import token_hex
from typing import Final
from urllib.parse import quote

import httpx2
from mcp.shared.auth import AuthorizationCodeResult

from toolsearch.access.principals import OF_ISSUER, Grant
from toolsearch.chores import Chores, end, is_set_within, running
from toolsearch.errors import ConflictError, LoginRequiredError, SealError, StorageError, ToolSearchError
from toolsearch.service.catalogs.imports.servers import ServerDirectory
from toolsearch.service.keys.keys import Keys
from toolsearch.service.web.paths import PAGES
from toolsearch.storage.records import Record, RecordStore
from toolsearch.storage.replicas import Leases
from toolsearch.storage.seal import Seal
from toolsearch.threads import in_thread
from toolsearch.tools.json_types import JsonObject
from toolsearch.upstreams.config import identity_hash
from toolsearch.upstreams.login_files import RENEWAL_S
from toolsearch.upstreams.logins import TTL_S, BegunLogin, Logins
from toolsearch.upstreams.oauth_client import revoke
from toolsearch.upstreams.settings import UpstreamSettings
from toolsearch.upstreams.tokens import owner_of_login, tokens_of_login

LOGIN: Final = "login"  # the kind of the records of logins
BEGUN: Final = "begun login"  # the kind of the records of logins that somebody has begun
LOGINS: Final = f"{PAGES}/logins"
_KEPT_S: Final = 90 * 86_400.0  # after the login or its last refresh
_POLL_S, _LONGEST_POLL_S, _GROWTH = 0.3, 3.0, 1.25
_PAGE: Final = 1_000
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoginStore:
    """*clock* gives seconds since 1970. *public_url* is the address of the service, or "" if each request tells it."""

    records: RecordStore
    leases: Leases
    seal: Seal
    clock: Callable[[], float]
    public_url: str = ""

    async def get(self, tenant: str, kind: str, record_id: str) -> Record | None:
        return await asyncio.to_thread(self.records.get, tenant, kind, record_id, at_s=self.clock())

    async def put(
        self, tenant: str, kind: str, record_id: str, document: JsonObject, *, over: int | None, for_s: float
    ) -> Record:
        at_s = self.clock()
        return await in_thread(
            self.records.put, tenant, kind, record_id, document, over=over, at_s=at_s, expires_s=at_s + for_s
        )

    def opened(self, login: Record) -> str:
        try:
            return self.seal.open(str(login.document["sealed"]))
        except SealError as error:
            logger.warning("a login cannot be read, and has to be made anew: %s", error)
            return ""

    def owners(self, tenant: str) -> list[tuple[str, str]]:
        """The server, as `identity_hash` has it, and the account of each login. For threads."""
        found, after = list[Record](), ""
        while page := self.records.page(tenant, LOGIN, after=after, limit=_PAGE, at_s=self.clock()):
            found += page
            after = page[-1].id
        return [owner for each in found if (owner := owner_of_login(self.opened(each))) is not None]


class _Lease:
    """One of the *leases*, for one holder. After `release` it is not taken any more: a thread that takes it goes on
    when nobody waits for that any longer.
    """

    def __init__(self, leases: Leases, name: str) -> None:
        self._leases = leases
        self._lease = name, token_hex(8)
        self._lock = threading.Lock()
        self._is_over = False

    async def hold(self) -> bool:
        """Have it, once nobody else has it. Return whether it was held all the time. Raises TimeoutError."""
        if await in_thread(self._leases.renew, *self._lease, for_s=RENEWAL_S):
            return True
        async with asyncio.timeout(RENEWAL_S):
            while not await in_thread(self._take):  # noqa: ASYNC110  no event tells when another process is done
                await asyncio.sleep(_POLL_S)
        return False

    async def renew_now_and_then(self) -> None:
        """Keep it for as long as the authorization server takes. If that fails, `hold` notices it."""
        while True:
            await asyncio.sleep(RENEWAL_S / 3)
            with suppress(StorageError):
                await in_thread(self._leases.renew, *self._lease, for_s=RENEWAL_S)

    def release(self) -> None:
        with self._lock:
            self._is_over = True
            self._leases.release(*self._lease)

    def _take(self) -> bool:
        with self._lock:
            return not self._is_over and self._leases.take(*self._lease, for_s=RENEWAL_S)


class RecordedLogin:
    """A `LoginPersistence` in the store."""

    def __init__(self, store: LoginStore, tenant: str, owner: str) -> None:
        self._store = store
        self._tenant = tenant
        self._id = _hashed(owner)
        self._version, self._text = 0, ""

    def stamp(self) -> float:
        return self._version

    def read(self) -> str:
        return self._text

    async def look(self) -> None:
        found = await self._store.get(self._tenant, LOGIN, self._id)
        if (found.version if found else 0) != self._version:
            self._version, self._text = (found.version, self._store.opened(found)) if found else (0, "")

    async def write(self, text: str) -> None:
        sealed: JsonObject = {"sealed": self._store.seal.seal(text)}
        written = await self._store.put(self._tenant, LOGIN, self._id, sealed, over=self._version, for_s=_KEPT_S)
        self._version, self._text = written.version, text

    async def forget(self) -> None:
        if self._version:
            await in_thread(self._store.records.delete, self._tenant, LOGIN, self._id, over=self._version)
        self._version, self._text = 0, ""

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[Callable[[], Awaitable[bool]]]:
        lease = _Lease(self._store.leases, f"login {self._id}")
        try:
            await lease.hold()
            async with running(lease.renew_now_and_then()):
                yield lease.hold
        finally:
            await in_thread(lease.release)


@dataclass(frozen=True, slots=True)
class TenantLogins:
    """The `KeptLogins` of one tenant."""

    store: LoginStore
    tenant: str

    @property
    def advice(self) -> str:
        return (
            "\nSign in there with the key or token of this call. Others who use the same key would use your login: "
            "ask an administrator for a key of your own first."
        )

    def kept(self, owner: str) -> RecordedLogin:
        return RecordedLogin(self.store, self.tenant, owner)

    async def link(
        self,
        grant: Grant,  # noqa: ARG002  the page asks who its visitor is
        settings: UpstreamSettings,
        reached_at: str,
        *,
        on_success: Callable[[], object],  # noqa: ARG002  any replica may make the login
    ) -> str:
        address = self.store.public_url or reached_at
        if not address:
            raise LoginRequiredError(f"MCP server {settings.name!r} wants you to log in on the page {LOGINS}")
        return f"{address}{LOGINS}?server={quote(settings.name, safe='')}"

    async def finished(self, grant: Grant, settings: UpstreamSettings, since: float, within_s: float) -> bool:  # noqa: ARG002
        tokens = settings.tokens
        if tokens is None:
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                for pause_s in _pauses():
                    if tokens.stamp() != since:
                        break
                    await asyncio.sleep(pause_s)
                    await tokens.look()
        return tokens.stamp() not in (0, since)


class LoginDesk:
    """Begins logins, and takes the answers of authorization servers. To be used from one event loop.

    The replica at which a login begins waits for the answer, which any replica writes into the record of that login.
    """

    def __init__(self, store: LoginStore, keys: Keys, servers: ServerDirectory) -> None:
        self._store = store
        self._keys = keys
        self._servers = servers
        self._logins = Logins(_no_record)
        self._chores = Chores()
        self._waiting: dict[str, asyncio.Task[None]] = {}  # by the id of the record

    async def begin(
        self, grant: Grant, settings: UpstreamSettings, reached_at: str, *, on_success: Callable[[], object]
    ) -> str:
        """Where the browser of the user has to go. Raises LoginRequiredError if the server cannot say that."""
        login = self._logins.begin(grant, settings, f"{reached_at}{PAGES}", on_success=on_success)
        url = await self._logins.page(login)
        begun = _hashed(login.state)
        if begun not in self._waiting:
            document: JsonObject = {"account": grant.account, "server": login.server}
            await self._store.put(grant.principal.id, BEGUN, begun, document, over=0, for_s=TTL_S)
            task = self._waiting[begun] = asyncio.create_task(self._finish(login, begun))
            task.add_done_callback(lambda _: self._waiting.pop(begun, None))
        return url

    async def answered(
        self, grant: Grant, answer: AuthorizationCodeResult, record: Callable[[str], Awaitable[None]]
    ) -> str | None:
        """Take the *answer* that the browser of the user brings. Return the server, or None if no login of this user
        waits for it. *record* is awaited with the server before the answer counts.
        """
        tenant, begun = grant.principal.id, _hashed(answer.state or "")
        found = await self._store.get(tenant, BEGUN, begun)
        if found is None or found.document["account"] != grant.account or "answer" in found.document:
            return None
        server = str(found.document["server"])
        await record(server)
        sealed = self._store.seal.seal(answer.model_dump_json())
        document: JsonObject = {**found.document, "answer": sealed}
        try:
            await self._store.put(tenant, BEGUN, begun, document, over=found.version, for_s=TTL_S)
        except ConflictError:  # it was answered at the same moment
            return None
        return server

    async def succeeded(self, grant: Grant, state: str, within_s: float) -> bool:
        """Whether the login that was answered succeeds *within_s*."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                for pause_s in _pauses():
                    found = await self._store.get(grant.principal.id, BEGUN, _hashed(state))
                    if found is None or "failure" in found.document:
                        return found is not None and not found.document["failure"]
                    await asyncio.sleep(pause_s)
        return False

    async def end_of_keys(self, tenant: str) -> None:
        """End the logins of keys that are not accepted any more, nor any that they were exchanged for."""

        def found() -> list[tuple[str, str]]:
            logins = self._store.owners(tenant)
            keys = self._keys.owners(tenant)  # read last: who has logged in has a key
            return [login for login in logins if not _is_of(login[1], keys)]

        await self._end(tenant, found)

    async def end_of_servers(self, tenant: str) -> None:
        """End the logins at servers that are in no catalog any more."""

        def found() -> list[tuple[str, str]]:
            logins = self._store.owners(tenant)
            sources = self._servers.sources.per_user(tenant)
            servers = {identity_hash(self._servers.settings_of(each).server) for each in sources}
            return [login for login in logins if login[0] not in servers]

        await self._end(tenant, found)

    async def end_all(self, tenant: str) -> None:
        await self._end(tenant, partial(self._store.owners, tenant))

    async def _end(self, tenant: str, find: Callable[[], list[tuple[str, str]]]) -> None:
        """Forget the logins, and have their tokens revoked, for which nobody waits."""
        requests: list[httpx2.Request] = []
        try:
            for login in await asyncio.to_thread(find):
                requests += await tokens_of_login(TenantLogins(self._store, tenant), *login).forget()
        except ToolSearchError as error:
            logger.warning("logins that nobody can use any more stay in the store: %s", error)
        finally:
            self._chores.start(revoke(requests, "a login that has ended", self._servers.open_transport))

    async def aclose(self) -> None:
        """Give up all logins."""
        await self._chores.aclose()
        await end(*self._waiting.values())
        await self._logins.aclose()

    async def _finish(self, login: BegunLogin, begun: str) -> None:
        """Hand the answer from the record to *login*, and write there how it has ended."""
        tenant = login.grant.principal.id
        for pause_s in _pauses():
            with suppress(StorageError):  # it is looked for again
                found = await self._store.get(tenant, BEGUN, begun)
                if found is not None and "answer" in found.document and not login.answer.done():
                    answer = json.loads(self._store.seal.open(str(found.document["answer"])))
                    login.take(AuthorizationCodeResult.model_validate(answer))
            if await is_set_within(login.ended, pause_s):
                break
        with suppress(StorageError, ConflictError):  # who has answered is told after a while that it has failed
            if (found := await self._store.get(tenant, BEGUN, begun)) is not None:
                ended: JsonObject = {**found.document, "failure": login.failure}
                await self._store.put(tenant, BEGUN, begun, ended, over=found.version, for_s=TTL_S)


def _pauses() -> Iterator[float]:
    """Seconds to wait before each next look at the store, for what comes soon, late, or never."""
    pause_s = _POLL_S
    while True:
        yield pause_s
        pause_s = min(pause_s * _GROWTH, _LONGEST_POLL_S)


async def _no_record(_: Grant, __: str) -> None:
    """The page has recorded it."""


def _is_of(account: str, keys: Collection[str]) -> bool:
    """Whether *account* is that of one of *keys*, or of a JWT, which nobody can revoke here. See `Grant.account`."""
    key = str(json.loads(account)[1])
    return key in keys or key.startswith(OF_ISSUER)


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
