"""Who makes a request, and what the credential allows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

from fastapi import Request

from toolsearch.access.principals import Grant, Principal
from toolsearch.access.scopes import Scope, includes
from toolsearch.errors import NotAuthenticatedError, NotPermittedError


@dataclass(frozen=True, slots=True)
class ServiceCaller:
    """One caller, for one request. The id of *principal* is that of the tenant, its reach that of the key."""

    principal: Principal
    scopes: frozenset[str]
    key_id: str
    is_operator: bool = False
    session: str = ""  # the only session that the credential is good for; "": it is not bound to one
    request_id: str = ""

    @property
    def tenant(self) -> str:
        return self.principal.id

    @classmethod
    def of(cls, grant: Grant, request_id: str = "") -> ServiceCaller:
        return cls(grant.principal, frozenset(grant.scopes), grant.key_id, grant.is_operator, grant.session, request_id)

    def require(self, scope: Scope) -> None:
        """Raises NotPermittedError."""
        if self.session or not includes(self.scopes, scope):
            raise NotPermittedError(scope)


def known_caller(request: Request) -> ServiceCaller:
    """The caller of *request*. Raises NotAuthenticatedError."""
    found = cast("ServiceCaller | None", getattr(request.state, "caller", None))
    if found is None:
        raise NotAuthenticatedError
    return found


def caller_with(*scopes: Scope) -> Callable[[Request], Awaitable[ServiceCaller]]:
    """A dependency that gives the caller of a request, whose key must have all of *scopes*.

    `toolsearch.service.middleware.authentication` has found out who it is.
    """

    async def caller(request: Request) -> ServiceCaller:
        request.state.needed_scopes = scopes
        found = known_caller(request)
        for scope in scopes:
            found.require(scope)
        return found

    return caller


async def operator(request: Request) -> ServiceCaller:
    """A dependency that gives the caller of a request, who must look after the whole service."""
    request.state.needed_scopes = ("admin",)
    found = known_caller(request)
    found.require("admin")
    if not found.is_operator:
        raise NotPermittedError("operator")
    return found
