"""The page of imports: sources of catalogs, a form for a new one, jobs with their progress."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import TypeAdapter, ValidationError
from starlette.datastructures import UploadFile

from toolsearch.api.imports import NewSource
from toolsearch.errors import BadSettingError, ToolSearchError
from toolsearch.service.catalogs.catalogs import Catalogs
from toolsearch.service.catalogs.imports import routes as source_routes
from toolsearch.service.catalogs.imports.routes import document_text
from toolsearch.service.job_records import Job, JobStep
from toolsearch.service.jobs import Jobs
from toolsearch.service.pages import frame
from toolsearch.service.pages.frame import PageRoute, SentForm, see_other, sent_with, visit_with, what_is_wrong
from toolsearch.service.web.callers import Visit
from toolsearch.service.web.parts import ServiceParts, the_service
from toolsearch.service.web.problems import HttpRefusal

PLAIN_FIELDS: Final = ("kind", "name", "url", "document", "prefix", "base_url")
CREDENTIAL_ROWS: Final = 3
_HEADERS: Final = ("headers", "document_headers")


async def new_source_fields(sent: SentForm) -> dict[str, Any]:
    """The fields for `NewSource`. Raises BadSettingError for unreadable ones."""
    fields: dict[str, Any] = {name: text for name in PLAIN_FIELDS if (text := sent.text(name))}
    file = await _file(sent)
    if file is not None:
        if "document" in fields:
            raise BadSettingError("give a file or a text, not both")
        fields["document"] = file
    fields |= {name: headers for name in _HEADERS if (headers := _headers(sent, name))}
    if credentials := _credentials(sent):
        fields["credentials"] = credentials
    if sent.text("per_user") and fields.get("kind") == "mcp":
        fields["credentials"] = "per-user"
    return fields


def has_secrets(sent: SentForm) -> bool:
    names = [*_HEADERS, *(f"secret-{row}" for row in range(CREDENTIAL_ROWS)), "file"]
    return any(sent.form.get(name) for name in names)


async def _file(sent: SentForm) -> str | None:
    """The text of the file; None if none was chosen. Browsers then send a file without a name."""
    file = sent.form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        return None
    return document_text(await file.read())


def _headers(sent: SentForm, field: str) -> dict[str, str]:
    """A line for each. A line is never repeated in an error: it may hold a secret."""
    found: dict[str, str] = {}
    for number, line in enumerate(sent.text(field).splitlines(), 1):
        name, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon:
            raise BadSettingError(f"line {number} of the headers has no colon; write Name: value")
        if name.strip() in found:
            raise BadSettingError(f"line {number} of the headers names a header once more")
        found[name.strip()] = value.strip()
    return found


def _credentials(sent: SentForm) -> dict[str, Any]:
    """By the name of the security scheme: a key or token, or user and password where there is a user."""
    found: dict[str, Any] = {}
    for row in range(CREDENTIAL_ROWS):
        scheme, user, secret = (sent.text(f"{name}-{row}") for name in ("scheme", "user", "secret"))
        if not (scheme or user or secret):
            continue
        if not scheme or not secret:
            raise BadSettingError("a credential needs the name of its security scheme, and a key, token or password")
        if scheme in found:
            raise BadSettingError(f"the security scheme {scheme!r} has two credentials")
        found[scheme] = {"user": user, "password": secret} if user else secret
    return found


router = APIRouter(route_class=PageRoute, include_in_schema=False)
_Service = Annotated[ServiceParts, Depends(the_service)]
_Reader = Annotated[Visit, Depends(visit_with("read-catalog"))]
_Writer = Annotated[Visit, Depends(visit_with("write-catalog"))]
_Sent = Annotated[SentForm, Depends(sent_with("write-catalog"))]
_JOBS: Final = 200
_NEW_SOURCE: Final[TypeAdapter[NewSource]] = TypeAdapter(NewSource)


@router.get("/imports")
async def imports(request: Request, service: _Service, visit: _Reader) -> Response:
    jobs = await service[Jobs].page(visit.caller.tenant, limit=_JOBS)
    latest = sorted(jobs, key=lambda job: (-job.began_s, job.id))
    return frame.page(request, "imports.html", visit=visit, jobs=latest)


@router.get("/catalogs/{name}/import")
async def form(request: Request, service: _Service, visit: _Writer, name: str) -> Response:
    await service[Catalogs].get(visit.caller.tenant, name)
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
    found = await service[Jobs].get(visit.caller.tenant, job_id)
    return frame.page(request, "job.html", visit=visit, job=found)


@router.get("/imports/{job_id}/events")
async def events(service: _Service, visit: _Reader, job_id: str) -> Response:
    """As those of the API, for a browser: its steps, and ``ended``, on which the page is loaded again."""
    found = await service[Jobs].get(visit.caller.tenant, job_id)
    return StreamingResponse(_events(service, found), media_type="text/event-stream")


@router.post("/imports/{job_id}/cancel")
async def cancel(service: _Service, sent: _Sent, job_id: str) -> Response:
    await service[Jobs].cancel(sent.visit.caller.tenant, job_id)
    return see_other(_job_path(job_id))


async def _events(service: ServiceParts, job: Job) -> AsyncGenerator[str]:
    async for news in service[Jobs].follow(job):
        if isinstance(news, JobStep):
            step = {"stage": news.stage, "done": news.done, "total": news.total, "refused": news.refused}
            yield f"event: progress\ndata: {json.dumps(step)}\n\n"
        else:
            yield "event: ended\ndata: {}\n\n"


def _job_path(job_id: str) -> str:
    return f"{frame.ROOT}/imports/{job_id}"
