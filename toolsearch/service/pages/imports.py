"""Imports: what catalogs import from, and the jobs that do it, with progress bars that move by server-sent events."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import TypeAdapter, ValidationError

from toolsearch.api.imports import NewSource
from toolsearch.errors import ToolSearchError
from toolsearch.service.job_records import Job, JobStep
from toolsearch.service.pages import frame
from toolsearch.service.pages.routing import PageRoute, Sent, see_other, sent_with, visit_with, what_is_wrong
from toolsearch.service.pages.source_form import PLAIN_FIELDS, has_secrets, new_source_fields
from toolsearch.service.refusals import HttpRefusal
from toolsearch.service.routes import sources as source_routes
from toolsearch.service.service import Service, the_service
from toolsearch.service.visits import Visit

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_Service = Annotated[Service, Depends(the_service)]
_Reader = Annotated[Visit, Depends(visit_with("read-catalog"))]
_Writer = Annotated[Visit, Depends(visit_with("write-catalog"))]
_Sent = Annotated[Sent, Depends(sent_with("write-catalog"))]

_JOBS: Final = 200
_NEW_SOURCE: Final[TypeAdapter[NewSource]] = TypeAdapter(NewSource)


@router.get("/imports")
async def imports(request: Request, service: _Service, visit: _Reader) -> Response:
    jobs = await service.imports.jobs.page(visit.caller.tenant, limit=_JOBS)
    latest = sorted(jobs, key=lambda job: (-job.began_s, job.id))
    return frame.page(request, "imports.html", visit=visit, jobs=latest)


@router.get("/catalogs/{name}/import")
async def form(request: Request, service: _Service, visit: _Writer, name: str) -> Response:
    await service.catalogs.get(visit.caller.tenant, name)
    return frame.page(request, "import.html", visit=visit, catalog=name, given={}, refused="", had_secrets=False)


@router.post("/catalogs/{name}/import")
async def begin(request: Request, service: _Service, sent: _Sent, name: str) -> Response:
    """If it is refused, the form is shown again without the secrets that were in it."""
    try:
        body = _NEW_SOURCE.validate_python(await new_source_fields(sent))
        started = await source_routes.create(name, body, service, sent.visit.caller)
    except ValidationError as error:
        refused = what_is_wrong(error)
    except ToolSearchError as error:
        refused = str(error)
    except HttpRefusal as refusal:
        refused = refusal.detail
    else:
        return see_other(_job_path(started.job.id) if started.job else f"{frame.ROOT}/catalogs/{name}")
    return frame.page(
        request,
        "import.html",
        visit=sent.visit,
        status=422,
        catalog=name,
        given=sent.typed(*PLAIN_FIELDS),
        refused=refused,
        had_secrets=has_secrets(sent),
    )


@router.post("/catalogs/{name}/sources/{source}/refresh")
async def refresh(service: _Service, sent: _Sent, name: str, source: str) -> Response:
    started = await source_routes.refresh(name, source, service, sent.visit.caller)
    return see_other(_job_path(started.job.id) if started.job else f"{frame.ROOT}/catalogs/{name}")


@router.post("/catalogs/{name}/sources/{source}/delete")
async def delete(service: _Service, sent: _Sent, name: str, source: str) -> Response:
    await source_routes.delete(name, source, service, sent.visit.caller)
    return see_other(f"{frame.ROOT}/catalogs/{name}")


@router.get("/imports/{job_id}")
async def job(request: Request, service: _Service, visit: _Reader, job_id: str) -> Response:
    found = await service.imports.jobs.get(visit.caller.tenant, job_id)
    return frame.page(request, "job.html", visit=visit, job=found)


@router.get("/imports/{job_id}/events")
async def events(service: _Service, visit: _Reader, job_id: str) -> Response:
    """As those of the API, for a browser: its steps, and ``ended``, on which the page is loaded again."""
    found = await service.imports.jobs.get(visit.caller.tenant, job_id)
    return StreamingResponse(_events(service, found), media_type="text/event-stream")


@router.post("/imports/{job_id}/cancel")
async def cancel(service: _Service, sent: _Sent, job_id: str) -> Response:
    await service.imports.jobs.cancel(sent.visit.caller.tenant, job_id)
    return see_other(_job_path(job_id))


async def _events(service: Service, job: Job) -> AsyncGenerator[str]:
    async for news in service.imports.jobs.follow(job):
        if isinstance(news, JobStep):
            step = {"stage": news.stage, "done": news.done, "total": news.total, "refused": news.refused}
            yield f"event: progress\ndata: {json.dumps(step)}\n\n"
        else:
            yield "event: ended\ndata: {}\n\n"


def _job_path(job_id: str) -> str:
    return f"{frame.ROOT}/imports/{job_id}"
