"""Who makes a request, and what the credential allows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from fastapi import Request

from toolsearch.access.principals import Grant, Principal
from toolsearch.access.scopes import Scope, includes
from toolsearch.errors import NotAuthenticatedError, NotPermittedError
from toolsearch.service.refusals import whole_reach_needed


@dataclass(frozen=True, slots=True)
class ServiceCaller:
    """One caller, for one request. The id of *principal* is that of the tenant, its reach that of the key."""

    principal: Principal
    scopes: frozenset[str]
    key_id: str
    is_operator: bool = False
    session: str = ""  # the only session that the credential is good for; "": it is not bound to one
    request_id: str = ""
    end_s: float | None = field(default=None, compare=False)  # as in `Grant`; a renewed token is the same caller

    @property
    def tenant(self) -> str:
        return self.principal.id

    @classmethod
    def of(cls, grant: Grant, request_id: str = "") -> ServiceCaller:
        scopes = frozenset(grant.scopes)
        return cls(grant.principal, scopes, grant.key_id, grant.is_operator, grant.session, request_id, grant.end_s)

    def require(self, scope: Scope) -> None:
        """Raises NotPermittedError."""
        if self.session or not includes(self.scopes, scope):
            raise NotPermittedError(scope)

    def require_whole_reach(self) -> None:
        """Raises HttpRefusal for a key with rules."""
        if not self.principal.reach.is_everything:
            raise whole_reach_needed()

    def admit(self, scopes: Sequence[Scope], *, within_reach: bool, is_for_operators: bool = False) -> None:
        """The one rule for what a key may be used for: it needs all of *scopes*, and has to be an operator's for what
        *is_for_operators*; and a key with rules is refused unless the route keeps *within_reach*: all that it shows or
        writes is asked about by the key's own rules.

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
        """Whether it may know what other keys of its tenant do, which names the tools that they use."""
        return includes(self.scopes, "admin") and self.principal.reach.is_everything


def known_caller(request: Request) -> ServiceCaller:
    """The caller of *request*. Raises NotAuthenticatedError."""
    found = cast("ServiceCaller | None", getattr(request.state, "caller", None))
    if found is None:
        raise NotAuthenticatedError
    return found


def caller_with(*scopes: Scope, within_reach: bool = False) -> Callable[[Request], Awaitable[ServiceCaller]]:
    """A dependency that gives the caller of a request, whom `ServiceCaller.admit` has admitted.

    `toolsearch.service.middleware.authentication` has found out who it is.
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
