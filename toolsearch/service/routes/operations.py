"""What whoever runs the service asks it: ``/healthz`` and ``/readyz``."""

from __future__ import annotations

import asyncio
import logging
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from toolsearch.api.operations import Health
from toolsearch.errors import StorageError
from toolsearch.service.service import Service, service_of

logger = logging.getLogger(__name__)

router = APIRouter(tags=["operations"])

_Service = Annotated[Service, Depends(service_of)]


@router.get("/healthz", summary="Whether the process lives")
async def alive() -> Health:
    return Health(status="ok")


@router.get(
    "/readyz",
    summary="Whether requests can be served",
    responses={503: {"model": Health, "description": "The service is ending, or its store cannot be used."}},
)
async def ready(service: _Service, response: Response) -> Health:
    status = "stopping" if service.shutdown.has_begun else await _store_status(service)
    if status != "ok":
        response.status_code = 503
    return Health(status=status)


async def _store_status(service: Service) -> str:
    try:
        await asyncio.to_thread(service.storage.keys.is_empty)
    except StorageError as error:
        logger.error("the store cannot be used: %s", error)  # noqa: TRY400
        return "store unusable"
    return "ok"
