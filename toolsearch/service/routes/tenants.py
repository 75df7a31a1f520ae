"""Tenants and their first keys, for operators: ``/v1/tenants``."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from toolsearch.api.base import Page
from toolsearch.api.keys import KeyBody, KeyMade, NewTenantKey
from toolsearch.api.tenants import NewTenant, TenantBody
from toolsearch.service.callers import ServiceCaller, operator
from toolsearch.service.cursors import Paging, paging
from toolsearch.service.refusals import HttpRefusal
from toolsearch.service.routes.keys import key_body, make_key, revoke_key
from toolsearch.service.service import Service, the_service
from toolsearch.storage.records import Record

router = APIRouter(tags=["tenants"])

_Service = Annotated[Service, Depends(the_service)]
_Operator = Annotated[ServiceCaller, Depends(operator)]
_Asked = Annotated[Paging, Depends(paging)]


@router.post("/tenants", status_code=201, summary="Create a tenant")
async def create(body: NewTenant, service: _Service, caller: _Operator) -> TenantBody:  # noqa: ARG001
    return _body(await service.tenants.create(body.name, body.description))


@router.get("/tenants", summary="List tenants")
async def page(service: _Service, caller: _Operator, asked: _Asked) -> Page[TenantBody]:  # noqa: ARG001
    found = await service.tenants.page(after=asked.after, limit=asked.fetch)
    return asked.page(found, lambda tenant: tenant.id, _body)


@router.delete("/tenants/{tenant}", status_code=204, summary="Delete a tenant, and everything that it has")
async def delete(tenant: str, service: _Service, caller: _Operator) -> Response:
    if tenant == caller.tenant:
        raise HttpRefusal(409, "own_tenant", "this key is of that tenant; use an operator's key of another one")
    await service.tenants.delete(tenant)
    return Response(status_code=204)


@router.post("/tenants/{tenant}/keys", status_code=201, summary="Make a key of a tenant, which is shown this once")
async def create_key(tenant: str, body: NewTenantKey, service: _Service, caller: _Operator) -> KeyMade:
    await service.tenants.get(tenant)
    return await make_key(service, caller, tenant, body, is_operator=body.operator)


@router.get("/tenants/{tenant}/keys", summary="List the keys of a tenant")
async def keys(tenant: str, service: _Service, caller: _Operator, asked: _Asked) -> Page[KeyBody]:  # noqa: ARG001
    await service.tenants.get(tenant)
    found = await service.keys.page(tenant, after=asked.after, limit=asked.fetch)
    return asked.page(found, lambda key: key.id, key_body)


@router.delete("/tenants/{tenant}/keys/{key_id}", status_code=204, summary="Revoke a key of a tenant, at once")
async def revoke(tenant: str, key_id: str, service: _Service, caller: _Operator) -> Response:  # noqa: ARG001
    await service.keys.get(tenant, key_id)
    await revoke_key(service, tenant, key_id)
    return Response(status_code=204)


def _body(record: Record) -> TenantBody:
    return TenantBody(name=record.id, description=str(record.document.get("description", "")))
