"""What MCP servers list that waits for a person: ``/v1/catalogs/{catalog}/approvals``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends

from toolsearch.api.approvals import Approval, ApprovedBody, FindingBody, Revocation, WaitingBody
from toolsearch.api.base import Page
from toolsearch.gateway.reports.approvals import Waiting
from toolsearch.gateway.trust.differences import definition_diff
from toolsearch.service.approvals import Approved, Decided
from toolsearch.service.callers import ServiceCaller, caller_with
from toolsearch.service.cursors import Paging, paging
from toolsearch.service.service import Service, the_service
from toolsearch.upstreams.pinned import Kind

router = APIRouter(tags=["approvals"])

_Service = Annotated[Service, Depends(the_service)]
_Reader = Annotated[ServiceCaller, Depends(caller_with("read-catalog"))]
_ReaderWithinReach = Annotated[ServiceCaller, Depends(caller_with("read-catalog", within_reach=True))]
_Admin = Annotated[ServiceCaller, Depends(caller_with("admin"))]
_Paging = Annotated[Paging, Depends(paging)]


@router.get("/catalogs/{catalog}/approvals", summary="List what awaits approval, and what differs")
async def waiting(catalog: str, service: _Service, caller: _ReaderWithinReach, paging: _Paging) -> Page[WaitingBody]:
    found = await service.approvals.waiting(caller.tenant, catalog, caller.principal.reach)
    following = [each for each in found if _place(each) > paging.after]
    return paging.page(following[: paging.fetch], _place, _waiting_body)


@router.get("/catalogs/{catalog}/approvals/approved", summary="List what is approved, and by whom")
async def approved(catalog: str, service: _Service, caller: _Reader, paging: _Paging) -> Page[ApprovedBody]:
    found = await service.approvals.approved(caller.tenant, catalog)
    following = [each for each in found if _approved_place(each) > paging.after]
    return paging.page(following[: paging.fetch], _approved_place, _approved_body)


@router.post("/catalogs/{catalog}/approvals", status_code=204, summary="Approve a definition")
async def approve(catalog: str, body: Approval, service: _Service, caller: _Admin) -> None:
    """It can be found and called once this returns. 409 if the server lists another definition by now."""
    await service.approvals.approve(caller.tenant, catalog, _decided(body), body.pin, by=caller.key_id)


@router.post("/catalogs/{catalog}/approvals/revoke", status_code=204, summary="Withdraw an approval")
async def revoke(catalog: str, body: Revocation, service: _Service, caller: _Admin) -> None:
    """It waits again, whatever its definition becomes, and can be neither found nor called once this returns."""
    await service.approvals.revoke(caller.tenant, catalog, _decided(body), by=caller.key_id)


def _decided(body: Revocation) -> Decided:
    return Decided(body.server, Kind(body.kind), body.name)


def _place(waiting: Waiting) -> str:
    return f"{waiting.server}\n{waiting.held.kind.value}\n{waiting.name}"


def _approved_place(approved: Approved) -> str:
    return f"{approved.server}\n{approved.kind.value}\n{approved.pin.name}"


def _waiting_body(waiting: Waiting) -> WaitingBody:
    held = waiting.held
    return WaitingBody(
        label=held.label,
        server=waiting.server,
        kind=held.kind.value,
        name=waiting.name,
        pin=held.pin,
        why=held.why.value,
        findings=[FindingBody(rule=each.rule, place=each.place, evidence=each.evidence) for each in held.findings],
        changes=list(held.changes),
        approved=dict(waiting.before) if waiting.before is not None else None,
        waiting=dict(waiting.now),
        difference=definition_diff(waiting.before, waiting.now),
    )


def _approved_body(approved: Approved) -> ApprovedBody:
    return ApprovedBody(
        label=approved.label,
        server=approved.server,
        kind=approved.kind.value,
        name=approved.pin.name,
        pin=approved.pin.pin,
        by=approved.pin.by,
        seen_at=datetime.fromtimestamp(approved.pin.seen_s, UTC),
    )
