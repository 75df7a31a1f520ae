"""Tenants, for operators: which there are, a new one with the key of its administrator, and removing one."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import ValidationError

from toolsearch.access.scopes import SCOPES
from toolsearch.api.keys import KeyMade, NewTenantKey
from toolsearch.api.tenants import NewTenant
from toolsearch.errors import RecordConflictError
from toolsearch.service.pages import frame
from toolsearch.service.pages.routing import PageRoute, Sent, see_other, sent_with, visit_with, what_is_wrong
from toolsearch.service.refusals import HttpRefusal
from toolsearch.service.routes import tenants as tenant_routes
from toolsearch.service.service import Service, the_service
from toolsearch.service.visits import Visit

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_Service = Annotated[Service, Depends(the_service)]
_Operator = Annotated[Visit, Depends(visit_with("admin", is_for_operators=True))]
_Sent = Annotated[Sent, Depends(sent_with("admin", is_for_operators=True))]

_TENANTS: Final = 100  # on a page
_TYPED: Final = ("name", "description")


@router.get("/tenants")
async def tenants(
    request: Request, service: _Service, visit: _Operator, after: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    return await _page(request, service, visit, after=after)


@router.post("/tenants")
async def create(request: Request, service: _Service, sent: _Sent) -> Response:
    """The answer to the form itself shows the key of the administrator, and no other page ever does."""
    try:
        body = NewTenant.model_validate({name: sent.text(name) for name in _TYPED})
        await tenant_routes.create(body, service, sent.visit.caller)
    except ValidationError as error:
        return await _page(request, service, sent.visit, refused=what_is_wrong(error), sent=sent)
    except RecordConflictError:
        refused = "There is a tenant of this name already."
        return await _page(request, service, sent.visit, refused=refused, sent=sent)
    key = NewTenantKey(name="first administrator", scopes=list(SCOPES))
    made = await tenant_routes.create_key(body.name, key, service, sent.visit.caller)
    return await _page(request, service, sent.visit, made=made, made_for=body.name)


@router.post("/tenants/{tenant}/delete")
async def delete(request: Request, service: _Service, sent: _Sent, tenant: str) -> Response:
    """Only if the name of the tenant was typed once more: nothing of it is left afterwards."""
    if sent.text("name") != tenant:
        refused = f"The tenant {tenant} is still there: type its name to delete it."
        return await _page(request, service, sent.visit, refused=refused)
    try:
        await tenant_routes.delete(tenant, service, sent.visit.caller)
    except HttpRefusal as refusal:
        return await _page(request, service, sent.visit, refused=refusal.detail)
    return see_other(f"{frame.ROOT}/tenants")


async def _page(
    request: Request,
    service: Service,
    visit: Visit,
    *,
    after: str = "",
    refused: str = "",
    sent: Sent | None = None,
    made: KeyMade | None = None,
    made_for: str = "",
) -> Response:
    found = await service.tenants.page(after=after, limit=_TENANTS)
    return frame.page(
        request,
        "tenants.html",
        visit=visit,
        status=422 if refused else 200,
        tenants=found,
        next=found[-1].id if len(found) == _TENANTS else "",
        given=sent.typed(*_TYPED) if sent else dict.fromkeys(_TYPED, ""),
        refused=refused,
        made=made,
        made_for=made_for,
    )
