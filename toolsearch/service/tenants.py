"""Tenants: teams or customers, who cannot see each other. Their routes, for operators, and their page.

An identity provider may identify callers by a JWT, whose claims name their tenant.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Unpack

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import ValidationError

from toolsearch.access.claims import Claims
from toolsearch.access.jwt import JwtVerifier, claimed_texts
from toolsearch.access.principals import OF_ISSUER, Grant, Principal
from toolsearch.access.scopes import SCOPES
from toolsearch.api.base import Page
from toolsearch.api.keys import KeyBody, KeyMade, NewTenant, NewTenantKey, TenantBody
from toolsearch.documents.json_values import is_object
from toolsearch.errors import ConflictError, UnknownRecordError
from toolsearch.service.audit import DONE
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.keys.keys import FIRST_TENANT, TENANT, Keys
from toolsearch.service.keys.routes import key_body, make_key, revoke_key
from toolsearch.service.pages import frame
from toolsearch.service.pages.frame import (
    FormOutcome,
    PageRoute,
    SentForm,
    see_other,
    sent_with,
    visit_with,
    what_is_wrong,
)
from toolsearch.service.settings import ServiceJwtSettings
from toolsearch.service.web.answers import Paging, paging
from toolsearch.service.web.callers import ServiceCaller, Visit, operator
from toolsearch.service.web.parts import ServiceParts, the_service
from toolsearch.service.web.problems import HttpRefusal
from toolsearch.storage.audit import AuditRecord
from toolsearch.storage.records import THE_SERVICE, Record
from toolsearch.storage.storage import Storage
from toolsearch.tools.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class Tenants:
    """*dropping* is awaited with a tenant before it is deleted."""

    storage: Storage
    keys: Keys
    corpora: Corpora
    clock: Callable[[], float]
    dropping: Sequence[Callable[[str], Awaitable[None]]] = ()

    def operators_key(self, name: str) -> str:
        """Make one more operator's key of the first tenant, and note in the audit that *name* has done so."""
        at_s = self.clock()
        with self.storage.transaction():
            if self.storage.records.get(THE_SERVICE, TENANT, FIRST_TENANT, at_s=at_s) is None:
                self._create(FIRST_TENANT, {"name": FIRST_TENANT})
            token, key = self.keys.make(FIRST_TENANT, name, SCOPES, is_operator=True)
            self.storage.audit.append(AuditRecord(at_s, name, "make operator's key", key.id, DONE, FIRST_TENANT))
            return token

    def first_key(self) -> str | None:
        """On the very first start, make the first tenant and a key for its administrator; None later.

        If several services start at once over one store, one of them does this.
        """
        records, at_s = self.storage.records, self.clock()
        # Read first, so that a change in between is noticed.
        found = records.get(THE_SERVICE, TENANT, FIRST_TENANT, at_s=at_s)
        if not self.storage.keys.is_empty():
            return None
        with self.storage.transaction():
            try:
                document: JsonObject = {"name": FIRST_TENANT}
                over = found.version if found else 0
                records.put(THE_SERVICE, TENANT, FIRST_TENANT, document, over=over, at_s=at_s)
            except ConflictError:
                return None
            return self.keys.make(FIRST_TENANT, "first administrator", SCOPES, is_operator=True)[0]

    async def create(self, tenant: str, description: str) -> Record:
        """Raises ConflictError if the name is taken."""
        return await asyncio.to_thread(self._create, tenant, {"name": tenant, "description": description})

    async def get(self, tenant: str) -> Record:
        """Raises UnknownRecordError."""
        found = await asyncio.to_thread(self.storage.records.get, THE_SERVICE, TENANT, tenant, at_s=self.clock())
        if found is None:
            raise UnknownRecordError(TENANT, tenant)
        return found

    async def exists(self, tenant: str) -> bool:
        try:
            await self.get(tenant)
        except UnknownRecordError:
            return False
        return True

    async def page(self, *, after: str, limit: int) -> list[Record]:
        return await asyncio.to_thread(
            self.storage.records.page, THE_SERVICE, TENANT, after=after, limit=limit, at_s=self.clock()
        )

    async def delete(self, tenant: str) -> None:
        """Delete everything that the tenant has. Its keys are not accepted from then on. Raises UnknownRecordError."""
        await self.get(tenant)
        for tell in self.dropping:
            await tell(tenant)
        await asyncio.to_thread(self.storage.drop_tenant, tenant)
        self.keys.forget(tenant)
        await self.corpora.drop_tenant(tenant)  # also drops what a request in progress wrote meanwhile
        await asyncio.to_thread(self.storage.drop_tenant, tenant)
        await asyncio.to_thread(self.storage.records.delete, THE_SERVICE, TENANT, tenant)

    def _create(self, tenant: str, document: JsonObject) -> Record:
        """Create the tenant, after deleting data that another replica wrote for a deleted tenant of the same name."""
        with self.storage.transaction():
            record = self.storage.records.put(THE_SERVICE, TENANT, tenant, document, over=0, at_s=self.clock())
            self.storage.drop_tenant(tenant)
            return record


@dataclass(frozen=True, slots=True)
class IssuedTokens:
    verifier: JwtVerifier
    settings: ServiceJwtSettings
    tenants: Tenants

    @classmethod
    def of(cls, settings: ServiceJwtSettings | None, tenants: Tenants) -> IssuedTokens | None:
        """None if no JWT is accepted."""
        return None if settings is None else cls(JwtVerifier(settings), settings, tenants)

    async def read(self, token: str) -> Grant | None:
        """The grant of *token*; None if it is not accepted, or if its tenant does not exist."""
        claims = await self.verifier.verify(token)
        tenant = _at(claims.values, self.settings.tenant_claim) if claims else None
        if claims is None or not isinstance(tenant, str) or not await self.tenants.exists(tenant):
            return None
        # Nothing else that the token says, and not the token itself, may get to servers that tenants have named.
        known = Claims(claims.subject, (), claims.end_s, {"iss": claims.values.get("iss")})
        key_id = f"{OF_ISSUER}{claims.subject}"
        return Grant(Principal(tenant), self._scopes(claims), key_id=key_id, end_s=claims.end_s, claims=known)

    def _scopes(self, claims: Claims) -> frozenset[str]:
        start = self.settings.scope_prefix
        given = claimed_texts(_at(claims.values, self.settings.scopes_claim))
        own = {scope.removeprefix(start) for scope in given if scope.startswith(start)}
        return frozenset(SCOPES) & own


def _at(claims: object, path: str) -> object:
    """The claim at *path*: its whole name, or names of objects within each other with dots between."""
    if not is_object(claims) or path in claims:
        return claims.get(path) if is_object(claims) else None
    first, dot, rest = path.partition(".")
    return _at(claims.get(first), rest) if dot else None


router = APIRouter(tags=["tenants"])
_Service = Annotated[ServiceParts, Depends(the_service)]
_Operator = Annotated[ServiceCaller, Depends(operator)]
_Asked = Annotated[Paging, Depends(paging)]


@router.post("/tenants", status_code=201, summary="Create a tenant")
async def create(body: NewTenant, service: _Service, caller: _Operator) -> TenantBody:  # noqa: ARG001
    return _body(await service[Tenants].create(body.name, body.description))


@router.get("/tenants", summary="List tenants")
async def page(service: _Service, caller: _Operator, asked: _Asked) -> Page[TenantBody]:  # noqa: ARG001
    found = await service[Tenants].page(after=asked.after, limit=asked.fetch)
    return asked.page(found, lambda tenant: tenant.id, _body)


@router.delete("/tenants/{tenant}", status_code=204, summary="Delete a tenant, and everything that it has")
async def delete(tenant: str, service: _Service, caller: _Operator) -> Response:
    if tenant == caller.tenant:
        raise HttpRefusal(
            409,
            "own_tenant",
            "this key belongs to that tenant; delete the tenant with an operator's key of another one",
        )
    await service[Tenants].delete(tenant)
    return Response(status_code=204)


@router.post("/tenants/{tenant}/keys", status_code=201, summary="Make a key of a tenant, which is shown this once")
async def create_key(tenant: str, body: NewTenantKey, service: _Service, caller: _Operator) -> KeyMade:
    await service[Tenants].get(tenant)
    return await make_key(service, caller, tenant, body, is_operator=body.operator)


@router.get("/tenants/{tenant}/keys", summary="List the keys of a tenant")
async def keys(tenant: str, service: _Service, caller: _Operator, asked: _Asked) -> Page[KeyBody]:  # noqa: ARG001
    await service[Tenants].get(tenant)
    found = await service[Keys].page(tenant, after=asked.after, limit=asked.fetch)
    return asked.page(found, lambda key: key.id, key_body)


@router.delete("/tenants/{tenant}/keys/{key_id}", status_code=204, summary="Revoke a key of a tenant, at once")
async def revoke(tenant: str, key_id: str, service: _Service, caller: _Operator) -> Response:  # noqa: ARG001
    await service[Keys].get(tenant, key_id)
    await revoke_key(service, tenant, key_id)
    return Response(status_code=204)


def _body(record: Record) -> TenantBody:
    return TenantBody(name=record.id, description=str(record.document.get("description", "")))


page_router = APIRouter(route_class=PageRoute, include_in_schema=False)
_OperatorVisit = Annotated[Visit, Depends(visit_with("admin", is_for_operators=True))]
_Sent = Annotated[SentForm, Depends(sent_with("admin", is_for_operators=True))]
_TENANTS: Final = 100  # tenants on a page
_TYPED: Final = ("name", "description")


@page_router.get("/tenants")
async def tenants_page(
    request: Request, service: _Service, visit: _OperatorVisit, after: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    return await _page(request, service, visit, after=after)


@page_router.post("/tenants")
async def create_on_page(request: Request, service: _Service, sent: _Sent) -> Response:
    """The answer to the form itself shows the key of the administrator, and no other page ever does."""
    try:
        body = NewTenant.model_validate({name: sent.text(name) for name in _TYPED})
        await create(body, service, sent.visit.caller)
    except ValidationError as error:
        return await _page(request, service, sent.visit, refused=what_is_wrong(error), sent=sent)
    except ConflictError:
        refused = "There is a tenant of this name already."
        return await _page(request, service, sent.visit, refused=refused, sent=sent)
    key = NewTenantKey(name="first administrator", scopes=list(SCOPES))
    made = await create_key(body.name, key, service, sent.visit.caller)
    return await _page(request, service, sent.visit, made=made, made_for=body.name)


@page_router.post("/tenants/{tenant}/delete")
async def delete_on_page(request: Request, service: _Service, sent: _Sent, tenant: str) -> Response:
    """Only if the name of the tenant was typed once more: nothing of it is left afterwards."""
    if sent.text("name") != tenant:
        refused = f"The tenant {tenant} is still there: type its name to delete it."
        return await _page(request, service, sent.visit, refused=refused)
    try:
        await delete(tenant, service, sent.visit.caller)
    except HttpRefusal as refusal:
        return await _page(request, service, sent.visit, refused=refusal.detail)
    return see_other(f"{frame.ROOT}/tenants")


async def _page(
    request: Request,
    service: ServiceParts,
    visit: Visit,
    *,
    after: str = "",
    made_for: str = "",
    **outcome: Unpack[FormOutcome],
) -> Response:
    found = await service[Tenants].page(after=after, limit=_TENANTS)
    return frame.page_with_form(
        request,
        "tenants.html",
        visit=visit,
        listed=found,
        limit=_TENANTS,
        fields=_TYPED,
        outcome=outcome,
        tenants=found,
        made_for=made_for,
    )
