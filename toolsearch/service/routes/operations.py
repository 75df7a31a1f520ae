"""What whoever runs the service asks it: ``/healthz``, ``/readyz`` and ``/metrics``."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from toolsearch.access.keys import is_loopback
from toolsearch.api.operations import Health
from toolsearch.service.callers import metrics_reader
from toolsearch.service.metrics import CONTENT_TYPE
from toolsearch.service.paths import METRICS
from toolsearch.service.service import Service, the_service

router = APIRouter(tags=["operations"])

_Service = Annotated[Service, Depends(the_service)]


@router.get("/healthz", summary="Whether the process lives")
async def alive() -> Health:
    return Health(status="ok")


@router.get(
    "/readyz",
    summary="Whether requests can be served",
    responses={503: {"model": Health, "description": "The service is ending, or its store cannot be used."}},
)
async def ready(service: _Service, response: Response) -> Health:
    status = "stopping" if service.shutdown.has_begun else await service.readiness.status()
    if status != "ok":
        response.status_code = 503
    return Health(status=status)


@router.get(
    METRICS,
    summary="Figures for Prometheus",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Metrics as text."}},
)
async def metrics(request: Request, service: _Service) -> Response:
    """For operators. With the setting `serve.local_metrics` also for programs on this machine, without a key."""
    if not (service.settings.serve.local_metrics and _is_local(request)):
        await metrics_reader(request)
    return Response(await asyncio.to_thread(service.metrics.text), media_type=CONTENT_TYPE)


def _is_local(request: Request) -> bool:
    """Whether it comes from this machine itself, and not through a proxy on it."""
    is_forwarded = any(name in request.headers for name in ("forwarded", "x-forwarded-for"))
    return request.client is not None and is_loopback(request.client.host) and not is_forwarded
