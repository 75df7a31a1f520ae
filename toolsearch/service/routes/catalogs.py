"""Catalogs: ``/v1/catalogs``."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from toolsearch.api.catalogs import CatalogBody, NewCatalog, ToolsWritten, Unwritten
from toolsearch.service.callers import ServiceCaller, caller_with
from toolsearch.service.service import Service, the_service
from toolsearch.tools.json_types import JsonObject

router = APIRouter(tags=["catalogs"])

_Service = Annotated[Service, Depends(the_service)]
_Writer = Annotated[ServiceCaller, Depends(caller_with("write-catalog"))]


@router.post("/catalogs", status_code=201, summary="Create a catalog")
async def create(body: NewCatalog, service: _Service, caller: _Writer) -> CatalogBody:
    record = await service.catalogs.create(caller.tenant, body.name, {"description": body.description})
    return CatalogBody(name=record.id, description=body.description, version=record.version)


@router.post("/catalogs/{catalog}/tools", summary="Write tools, an outcome for each")
async def upsert(catalog: str, body: list[JsonObject], service: _Service, caller: _Writer) -> ToolsWritten:
    written = await service.catalogs.upsert(caller.tenant, catalog, body)
    return ToolsWritten(
        written=list(written.names),
        refused=[Unwritten(name=each.name, reason=each.reason) for each in written.refused],
        revision=written.revision,
    )
