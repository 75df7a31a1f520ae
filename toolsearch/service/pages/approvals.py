"""Approvals: what MCP servers list that waits for a person, with the difference to what was approved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request, Response

from toolsearch.access.scopes import includes
from toolsearch.api.approvals import Approval, Revocation
from toolsearch.gateway.reports.approvals import Waiting
from toolsearch.service.approvals import Approved
from toolsearch.service.pages import frame
from toolsearch.service.pages.differences import Place, places_of
from toolsearch.service.pages.routing import PageRoute, Sent, see_other, sent_with, visit_with
from toolsearch.service.routes import approvals as approval_routes
from toolsearch.service.service import Service, the_service
from toolsearch.service.visits import Visit

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_Service = Annotated[Service, Depends(the_service)]
_Reader = Annotated[Visit, Depends(visit_with("read-catalog", within_reach=True))]
_Sent = Annotated[Sent, Depends(sent_with("admin"))]

_CATALOGS: Final = 100
WHY: Final = {
    "new": "It was never seen before.",
    "changed": "It is not what was approved.",
    "suspicious": "The scan has found something.",
    "withdrawn": "Somebody has withdrawn the approval.",
    "approvals cannot be read": "What was approved cannot be read.",
}


@dataclass(frozen=True, slots=True)
class Compared:
    """Something that waits, place by place."""

    waiting: Waiting
    places: tuple[Place, ...]

    @property
    def changed(self) -> list[Place]:
        return [place for place in self.places if place.is_changed]

    @property
    def same(self) -> list[Place]:
        return [place for place in self.places if not place.is_changed]


@dataclass(frozen=True, slots=True)
class OfCatalog:
    catalog: str
    waiting: tuple[Compared, ...]
    approved: tuple[Approved, ...]


@router.get("/approvals")
async def approvals(request: Request, service: _Service, visit: _Reader) -> Response:
    """Of the catalogs that have MCP servers; nothing else waits."""
    catalogs = await service.catalogs.page(visit.caller.tenant, after="", limit=_CATALOGS)
    found = [await _of(service, visit, each.id) for each in catalogs if await _has_servers(service, visit, each.id)]
    may_decide = includes(visit.caller.scopes, "admin") and visit.caller.principal.reach.is_everything
    return frame.page(request, "approvals.html", visit=visit, catalogs=found, why=WHY, may_decide=may_decide)


@router.post("/approvals/{catalog}/approve")
async def approve(service: _Service, sent: _Sent, catalog: str) -> Response:
    """Fields are taken as they were sent: a server's own name for something may begin with white space."""
    body = Approval.model_validate({name: sent.exact(name) for name in ("server", "kind", "name", "pin")})
    await approval_routes.approve(catalog, body, service, sent.visit.caller)
    return see_other(f"{frame.ROOT}/approvals")


@router.post("/approvals/{catalog}/revoke")
async def revoke(service: _Service, sent: _Sent, catalog: str) -> Response:
    body = Revocation.model_validate({name: sent.exact(name) for name in ("server", "kind", "name")})
    await approval_routes.revoke(catalog, body, service, sent.visit.caller)
    return see_other(f"{frame.ROOT}/approvals")


async def _has_servers(service: Service, visit: Visit, catalog: str) -> bool:
    return any(each.kind == "mcp" for each in await service.imports.sources.of_catalog(visit.caller.tenant, catalog))


async def _of(service: Service, visit: Visit, catalog: str) -> OfCatalog:
    caller = visit.caller
    reach = caller.principal.reach
    waiting = await service.approvals.waiting(caller.tenant, catalog, reach)
    approved = await service.approvals.approved(caller.tenant, catalog) if reach.is_everything else []
    compared = [Compared(each, tuple(places_of(each.before, each.now))) for each in waiting]
    return OfCatalog(catalog, tuple(compared), tuple(approved))
