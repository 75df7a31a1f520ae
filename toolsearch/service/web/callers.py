"""The caller of a request and its permissions, from a key or from a signed-in browser.

A browser's cookie contains a random token. The store keeps its hash, and the key. So a reader of the store cannot act
as another user, and revoking a key ends its visits.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from fastapi import Request

from toolsearch.access.claims import Claims
from toolsearch.access.principals import OF_ISSUER, Grant, Principal, is_issued_elsewhere
from toolsearch.access.scopes import Scope, includes
from toolsearch.access.settings import token_sha256
from toolsearch.errors import NotAuthenticatedError, NotPermittedError
from toolsearch.service.web.problems import whole_reach_needed
from toolsearch.storage.records import THE_SERVICE, Record, RecordStore
from toolsearch.tools.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class ServiceCaller(Grant):
    """One caller, for one request. The id of *principal* is that of the tenant, its reach that of the key.

    reached_at  the address at which the request has reached the service: ``https://tools.example``, or ""
    """

    end_s: float | None = field(default=None, compare=False)  # a renewed token is the same caller
    request_id: str = ""
    reached_at: str = field(default="", compare=False)

    @property
    def tenant(self) -> str:
        return self.principal.id

    @classmethod
    def of(cls, grant: Grant, request_id: str = "", reached_at: str = "") -> ServiceCaller:
        return cls(
            grant.principal,
            grant.scopes,
            grant.is_operator,
            grant.key_id,
            grant.session,
            grant.end_s,
            claims=grant.claims,
            first_key=grant.first_key,
            request_id=request_id,
            reached_at=reached_at,
        )

    def require(self, scope: Scope) -> None:
        """Raises NotPermittedError."""
        if self.session or not includes(self.scopes, scope):
            raise NotPermittedError(scope)

    def require_whole_reach(self) -> None:
        """Raises HttpRefusal for a key with rules."""
        if not self.principal.reach.is_everything:
            raise whole_reach_needed()

    def admit(self, scopes: Sequence[Scope], *, within_reach: bool, is_for_operators: bool = False) -> None:
        """The rule for the use of a key. It needs all of *scopes*, and must be an operator's if the route
        *is_for_operators*. A key with rules is refused unless the route keeps *within_reach*, which means that the
        key's rules apply to all that it shows or writes.

        Raises NotPermittedError or HttpRefusal.
        """
        for scope in scopes:
            self.require(scope)
        if is_for_operators and not self.is_operator:
            raise NotPermittedError("operator")
        if not within_reach:
            self.require_whole_reach()

    @property
    def sees_all_keys(self) -> bool:
        """Whether it may see the activity of the tenant's other keys, which names their tools."""
        return includes(self.scopes, "admin") and self.principal.reach.is_everything


def known_caller(request: Request) -> ServiceCaller:
    """The caller of *request*. Raises NotAuthenticatedError."""
    found = cast("ServiceCaller | None", getattr(request.state, "caller", None))
    if found is None:
        raise NotAuthenticatedError
    return found


def caller_with(*scopes: Scope, within_reach: bool = False) -> Callable[[Request], Awaitable[ServiceCaller]]:
    """A dependency that gives the caller of a request, whom `ServiceCaller.admit` has admitted.

    `toolsearch.service.web.middleware` has found out who it is.
    """

    async def caller(request: Request) -> ServiceCaller:
        request.state.needed_scopes = scopes
        found = known_caller(request)
        found.admit(scopes, within_reach=within_reach)
        return found

    return caller


async def operator(request: Request) -> ServiceCaller:
    """A dependency that gives the caller of a request, who must look after the whole service."""
    return _operator(request, within_reach=False)


async def metrics_reader(request: Request) -> ServiceCaller:
    """A dependency that gives the caller of a request, who must be an operator. Figures name no tools."""
    return _operator(request, within_reach=True)


def _operator(request: Request, *, within_reach: bool) -> ServiceCaller:
    request.state.needed_scopes = ("admin",)
    found = known_caller(request)
    found.admit(("admin",), within_reach=within_reach, is_for_operators=True)
    return found


VISIT_COOKIE: Final = "toolsearch_visit"
VISIT: Final = "visit"  # the kind of the records of visits
_TOKEN_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Visit:
    """One browser that has signed in.

    id          of the visit; not the token
    form_token  stands in each form of its pages, so that no other site can send them
    """

    id: str
    grant: Grant
    form_token: str

    @property
    def caller(self) -> ServiceCaller:
        return ServiceCaller.of(self.grant)


class Visits:
    """*visit_s* is how long a browser stays signed in; *clock* gives seconds since 1970.

    of_token  API key or JWT -> its grant, or None if it is not accepted
    of_id     (tenant, id of a key) -> the same for keys
    exists    whether there is a tenant of that name
    """

    def __init__(
        self,
        records: RecordStore,
        of_token: Callable[[str], Awaitable[Grant | None]],
        of_id: Callable[[str, str], Awaitable[Grant | None]],
        exists: Callable[[str], Awaitable[bool]],
        clock: Callable[[], float],
        *,
        visit_s: float,
    ) -> None:
        self._records = records
        self._of_token = of_token
        self._of_id = of_id
        self._exists = exists
        self._clock = clock
        self._visit_s = visit_s

    async def begin(self, key: str) -> str | None:
        """Return the token of a new visit with that API key or JWT; None if it is not accepted.

        A visit ends with its JWT, and with the first look at a key that was revoked.
        """
        grant = await self._of_token(key)
        if grant is None or grant.session:
            return None
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        now_s = self._clock()
        end_s = now_s + self._visit_s
        document: JsonObject = {"tenant": grant.principal.id, "key": grant.key_id}
        if is_issued_elsewhere(grant.key_id):
            issuer = grant.claims.values.get("iss") if grant.claims is not None else ""
            document = {**document, "scopes": sorted(grant.scopes), "iss": issuer}
            end_s = min(end_s, grant.end_s or 0.0)
        await asyncio.to_thread(
            self._records.put,
            THE_SERVICE,
            VISIT,
            token_sha256(token),
            document,
            over=0,
            at_s=now_s,
            expires_s=end_s,
        )
        return token

    async def find(self, token: str) -> Visit | None:
        """None if there is no such visit, if it has ended, or if its key is no longer accepted."""
        if not token:
            return None
        visit_id = token_sha256(token)
        record = await asyncio.to_thread(self._records.get, THE_SERVICE, VISIT, visit_id, at_s=self._clock())
        if record is None:
            return None
        grant = await self._grant(record)
        return Visit(visit_id, grant, form_token(token)) if grant else None

    async def _grant(self, record: Record) -> Grant | None:
        document: Any = record.document
        tenant, key_id = document["tenant"], document["key"]
        if not is_issued_elsewhere(key_id):
            return await self._of_id(tenant, key_id)
        if not await self._exists(tenant):
            return None
        end_s = record.expires_s or 0.0
        claims = Claims(key_id.removeprefix(OF_ISSUER), (), end_s, {"iss": document["iss"]})
        return Grant(Principal(tenant), frozenset(document["scopes"]), key_id=key_id, end_s=end_s, claims=claims)

    async def end(self, visit: Visit) -> None:
        await asyncio.to_thread(self._records.delete, THE_SERVICE, VISIT, visit.id)


def form_token(token: str) -> str:
    """The token for forms that belongs to a cookie's token, without revealing it."""
    return hashlib.sha256(f"form:{token}".encode()).hexdigest()


def whose_key(caller: ServiceCaller, key: str | None, *, mine: bool) -> str | None:
    """The id of the key whose activity is shown; None for all keys.

    Raises NotPermittedError or HttpRefusal for a key that the caller may not see.
    """
    own = caller.key_id
    if caller.sees_all_keys:
        return own if mine else key
    if key not in (None, own):
        caller.require("admin")
        caller.require_whole_reach()
    return own
