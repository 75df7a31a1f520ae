"""The logins of users at MCP servers. Each belongs to one key or JWT subject of one tenant.

The store holds them, encrypted, for all replicas. A login may begin at one replica, and the browser's answer may come
to another one.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from secrets import token_hex
from typing import Final
from urllib.parse import quote

from mcp.shared.auth import AuthorizationCodeResult

from toolsearch.access.principals import Grant
from toolsearch.chores import end, is_set_within
from toolsearch.errors import ConflictError, LoginRequiredError, SealError, StorageError
from toolsearch.service.web.paths import PAGES
from toolsearch.storage.records import Record, RecordStore
from toolsearch.storage.replicas import Leases
from toolsearch.storage.seal import Seal
from toolsearch.threads import in_thread
from toolsearch.tools.json_types import JsonObject
from toolsearch.upstreams.logins import TTL_S, BegunLogin, Logins
from toolsearch.upstreams.settings import UpstreamSettings
from toolsearch.upstreams.tokens import RENEWAL_S

LOGIN: Final = "login"  # the kind of the records of logins
BEGUN: Final = "begun login"  # the kind of the records of logins that somebody has begun
LOGINS: Final = f"{PAGES}/logins"
_KEPT_S: Final = 90 * 86_400.0  # after the login or its last refresh
_POLL_S: Final = 0.3
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
            self._version, self._text = (found.version, self._opened(found)) if found else (0, "")

    async def write(self, text: str) -> None:
        sealed: JsonObject = {"sealed": self._store.seal.seal(text)}
        written = await self._store.put(self._tenant, LOGIN, self._id, sealed, over=self._version, for_s=_KEPT_S)
        self._version, self._text = written.version, text

    async def forget(self) -> None:
        await in_thread(self._store.records.delete, self._tenant, LOGIN, self._id)
        self._version, self._text = 0, ""

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        leases, name, holder = self._store.leases, f"login {self._id}", token_hex(8)
        async with asyncio.timeout(RENEWAL_S):
            # No event of this process tells when another one is done.
            while not await asyncio.to_thread(leases.take, name, holder, for_s=RENEWAL_S):  # noqa: ASYNC110
                await asyncio.sleep(_POLL_S)
        holding = asyncio.create_task(self._hold(name, holder))
        try:
            yield
        finally:
            holding.cancel()
            await in_thread(leases.release, name, holder)

    async def _hold(self, name: str, holder: str) -> None:
        """Keep the lease for as long as the authorization server takes."""
        while True:
            await asyncio.sleep(RENEWAL_S / 3)
            with suppress(StorageError):
                await in_thread(self._store.leases.renew, name, holder, for_s=RENEWAL_S)

    def _opened(self, record: Record) -> str:
        try:
            return self._store.seal.open(str(record.document["sealed"]))
        except SealError as error:
            logger.warning("a login cannot be read, and has to be made anew: %s", error)
            return ""


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
                while tokens.stamp() == since:
                    await asyncio.sleep(_POLL_S)
                    await tokens.look()
        return tokens.stamp() not in (0, since)


class LoginDesk:
    """Begins logins, and takes the answers of authorization servers. To be used from one event loop.

    The replica at which a login begins waits for the answer, which any replica writes into the record of that login.
    """

    def __init__(self, store: LoginStore) -> None:
        self._store = store
        self._logins = Logins(_no_record)
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
                while (found := await self._store.get(grant.principal.id, BEGUN, _hashed(state))) is not None:
                    if "failure" in found.document:
                        return not found.document["failure"]
                    await asyncio.sleep(_POLL_S)
        return False

    async def aclose(self) -> None:
        """Give up all logins."""
        await end(*self._waiting.values())
        await self._logins.aclose()

    async def _finish(self, login: BegunLogin, begun: str) -> None:
        """Hand the answer from the record to *login*, and write there how it has ended."""
        tenant = login.grant.principal.id
        document: JsonObject = {}
        while not login.ended.is_set():
            with suppress(StorageError):  # it is looked for again
                found = await self._store.get(tenant, BEGUN, begun)
                document = found.document if found is not None else {}
                if "answer" in document and not login.answer.done():
                    answer = json.loads(self._store.seal.open(str(document["answer"])))
                    login.take(AuthorizationCodeResult.model_validate(answer))
            await is_set_within(login.ended, _POLL_S)
        with suppress(StorageError):
            ended: JsonObject = {**document, "failure": login.failure}
            await self._store.put(tenant, BEGUN, begun, ended, over=None, for_s=TTL_S)


async def _no_record(_: Grant, __: str) -> None:
    """The page has recorded it."""


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
