"""Sources of catalogs: ``/v1/catalogs/{catalog}/sources``; and the jobs that import them: ``/v1/jobs``."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from toolsearch.api.base import Page
from toolsearch.api.catalogs import RefusedTool
from toolsearch.api.imports import (
    ErrorBody,
    JobBody,
    JobStepBody,
    NewListingSource,
    NewMcpSource,
    NewOpenApiSource,
    NewSource,
    ServerBody,
    SourceBody,
    SourceStarted,
    SourceState,
    UserAndPassword,
)
from toolsearch.errors import BadSettingError
from toolsearch.gateway.status import ServerRow
from toolsearch.service.catalogs.catalogs import Catalogs
from toolsearch.service.catalogs.imports.importing import DocumentText
from toolsearch.service.catalogs.imports.imports import Imports
from toolsearch.service.catalogs.imports.servers import read_server
from toolsearch.service.catalogs.imports.sources import CatalogSource, LastImport, SourceSecrets
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.job_records import Job, JobStep
from toolsearch.service.jobs import Jobs
from toolsearch.service.web.answers import Paging, paging
from toolsearch.service.web.bodies import JSON_LINES, media_type
from toolsearch.service.web.callers import ServiceCaller, caller_with
from toolsearch.service.web.limits import Limits
from toolsearch.service.web.parts import ServiceParts, the_service
from toolsearch.service.web.problems import operators_only
from toolsearch.upstreams.secrets import keys_in, redacted, secrets_of_url


def new_source(body: NewSource, tenant: str, catalog: str, now_s: float) -> tuple[CatalogSource, SourceSecrets]:
    match body:
        case NewOpenApiSource():
            return _openapi(body, tenant, catalog, now_s)
        case NewMcpSource():
            return _mcp(body, tenant, catalog, now_s)
        case NewListingSource():
            source = CatalogSource(
                tenant,
                catalog,
                body.name,
                body.kind,
                created_s=now_s,
                shown_url=shown_url(body.url),
                prefix=body.prefix or "",
                credential_names=tuple(sorted(body.document_headers)),
            )
            return source, SourceSecrets(url=body.url or "", document_headers=body.document_headers)


def shown_url(url: str | None) -> str:
    """*url* with ``***`` in place of possible secrets."""
    if not url:
        return ""
    return redacted(url, [each for each in (*secrets_of_url(url), *keys_in(url)) if each])


def _openapi(body: NewOpenApiSource, tenant: str, catalog: str, now_s: float) -> tuple[CatalogSource, SourceSecrets]:
    source = CatalogSource(
        tenant,
        catalog,
        body.name,
        body.kind,
        created_s=now_s,
        shown_url=shown_url(body.url),
        prefix=body.prefix,
        base_url=body.base_url or "",
        credential_names=tuple(sorted({*body.headers, *body.document_headers, *body.credentials})),
    )
    credentials = {
        scheme: [given.user, given.password] if isinstance(given, UserAndPassword) else given
        for scheme, given in body.credentials.items()
    }
    secrets = SourceSecrets(
        url=body.url or "",
        document_headers=body.document_headers,
        headers=body.headers,
        credentials=credentials,
    )
    return source, secrets


def _mcp(body: NewMcpSource, tenant: str, catalog: str, now_s: float) -> tuple[CatalogSource, SourceSecrets]:
    """Raises BadSettingError for a server that cannot be used as it is written."""
    entry = body.model_dump(exclude={"kind", "name", "credentials"}, exclude_defaults=True)
    read_server(body.name, entry)
    source = CatalogSource(
        tenant,
        catalog,
        body.name,
        body.kind,
        created_s=now_s,
        shown_url=shown_url(body.url),
        credential_names=tuple(sorted({*body.headers, *body.env})),
        per_user=body.credentials == "per-user",
    )
    return source, SourceSecrets(server=entry)


jobs_router = APIRouter(tags=["jobs"])
_Service = Annotated[ServiceParts, Depends(the_service)]
_Reader = Annotated[ServiceCaller, Depends(caller_with("read-catalog"))]
_Writer = Annotated[ServiceCaller, Depends(caller_with("write-catalog"))]


async def _found(job: str, service: _Service, caller: _Reader) -> Job:
    """Before the answer begins, so that an unknown job is an error and no empty stream."""
    return await service[Jobs].get(caller.tenant, job)


@jobs_router.get("/jobs", summary="List jobs")
async def list_jobs(service: _Service, caller: _Reader, paging: Annotated[Paging, Depends(paging)]) -> Page[JobBody]:
    jobs = await service[Jobs].page(caller.tenant, after=paging.after, limit=paging.fetch)
    return paging.page(jobs, lambda each: each.id, job_body)


@jobs_router.get("/jobs/{job}", summary="Get a job", name="get")
async def get_job(found: Annotated[Job, Depends(_found)]) -> JobBody:
    return job_body(found)


@jobs_router.get("/jobs/{job}/events", summary="Follow the progress of a job", response_class=EventSourceResponse)
async def events(found: Annotated[Job, Depends(_found)], service: _Service) -> AsyncGenerator[ServerSentEvent]:
    """An event ``progress`` for each step from the beginning, whenever you connect, and ``ended`` with the outcome."""
    async for news in service[Jobs].follow(found):
        if isinstance(news, JobStep):
            yield ServerSentEvent(event="progress", data=_step_body(news))
        else:
            yield ServerSentEvent(event="ended", data=job_body(news))


@jobs_router.post("/jobs/{job}/cancel", summary="Cancel a job")
async def cancel(job: str, service: _Service, caller: _Writer) -> JobBody:
    """A job that has ended stays as it is; one that is being written ends by itself in a moment."""
    return job_body(await service[Jobs].cancel(caller.tenant, job))


def job_body(job: Job) -> JobBody:
    return JobBody(
        id=job.id,
        subject=job.subject,
        state=job.state,
        began_at=datetime.fromtimestamp(job.began_s, UTC),
        ended_at=datetime.fromtimestamp(job.ended_s, UTC) if job.ended_s is not None else None,
        progress=_step_body(job.steps[-1]) if job.steps else None,
        outcome=dict(job.outcome),
        error=ErrorBody(code=job.code or job.state, detail=job.error) if job.error else None,
    )


def _step_body(step: JobStep) -> JobStepBody:
    return JobStepBody(stage=step.stage, done=step.done, total=step.total, refused=step.refused)


router = APIRouter(tags=["sources"])
_DOCUMENTS = ("application/json", "application/x-ndjson", "application/yaml")
_Paging = Annotated[Paging, Depends(paging)]


@router.post("/catalogs/{catalog}/sources", status_code=202, summary="Add a source and import it")
async def create(catalog: str, body: Annotated[NewSource, Body()], service: _Service, caller: _Writer) -> SourceStarted:
    _require_operator_for_commands(body, caller)
    await service[Catalogs].get(caller.tenant, catalog)
    await service[Limits].require_room(caller.tenant, "sources")
    source, secrets = new_source(body, caller.tenant, catalog, service.clock())
    return _started(*await service[Imports].create(source, secrets, getattr(body, "document", None)))


@router.get("/catalogs/{catalog}/sources", summary="List the sources of a catalog")
async def list_sources(catalog: str, service: _Service, caller: _Reader, paging: _Paging) -> Page[SourceBody]:
    await service[Catalogs].get(caller.tenant, catalog)
    sources = await service[Imports].sources.of_catalog(caller.tenant, catalog)
    following = [each for each in sources if each.name > paging.after]
    shown = following[: paging.fetch]
    running = await service[Imports].running_among(shown)
    return paging.page(shown, lambda each: each.name, lambda each: _body(each, is_running=each.id in running))


@router.get("/catalogs/{catalog}/sources/{source}", summary="Get a source")
async def get(catalog: str, source: str, service: _Service, caller: _Reader) -> SourceBody:
    found = await service[Imports].sources.get(caller.tenant, catalog, source)
    return _body(found, is_running=found.id in await service[Imports].running_among([found]))


@router.put(
    "/catalogs/{catalog}/sources/{source}/document",
    status_code=202,
    summary="Upload the document of a source and import it",
    openapi_extra={"requestBody": {"required": True, "content": {media: {} for media in _DOCUMENTS}}},
)
async def upload(catalog: str, source: str, request: Request, service: _Service, caller: _Writer) -> SourceStarted:
    text = document_text(await request.body())
    document = DocumentText(text, "jsonl" if media_type(request.headers) in JSON_LINES else None)
    return _started(*await service[Imports].upload(caller.tenant, catalog, source, document))


@router.post(
    "/catalogs/{catalog}/sources/{source}/refresh", status_code=202, summary="Import a source again from its URL"
)
async def refresh(catalog: str, source: str, service: _Service, caller: _Writer) -> SourceStarted:
    return _started(*await service[Imports].refresh(caller.tenant, catalog, source))


@router.delete("/catalogs/{catalog}/sources/{source}", status_code=204, summary="Delete a source and its tools")
async def delete(catalog: str, source: str, service: _Service, caller: _Writer) -> None:
    await service[Imports].delete(caller.tenant, catalog, source)


@router.get("/catalogs/{catalog}/servers", summary="List the MCP servers of a catalog as they are connected")
async def servers(catalog: str, service: _Service, caller: _Reader, paging: _Paging) -> Page[ServerBody]:
    async with service[Corpora].using(CorpusRef(caller.tenant, "catalog", catalog)) as corpus:
        await corpus.gateway.lists_settled()
        rows = sorted(corpus.gateway.status().servers, key=lambda row: row.upstream.name)
    following = [row for row in rows if row.upstream.name > paging.after]
    return paging.page(following[: paging.fetch], lambda row: row.upstream.name, _server_body)


def document_text(content: bytes) -> str:
    """Raises BadSettingError."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadSettingError("the document is not UTF-8; send it as text, whatever its format") from None


def _require_operator_for_commands(body: NewSource, caller: ServiceCaller) -> None:
    if isinstance(body, NewMcpSource) and body.command is not None and not caller.is_operator:
        raise operators_only("MCP servers with a command: the command runs on the service's machine")


def _server_body(row: ServerRow) -> ServerBody:
    upstream = row.upstream
    return ServerBody.model_validate(
        {
            "name": upstream.name,
            "transport": upstream.transport,
            "state": upstream.state.value,
            "error": upstream.last_error,
            "tools": row.tools,
            "tokens": row.tokens,
            "held": [item.label for item in row.held],
            "refused": [RefusedTool(source=upstream.name, name=each.name, reason=each.reason) for each in row.refused],
            "calls": upstream.calls,
            "failed": upstream.failed,
            "protocol": upstream.protocol_version,
        }
    )


def _started(source: CatalogSource, job: Job | None) -> SourceStarted:
    return SourceStarted(source=_body(source, is_running=job is not None), job=job_body(job) if job else None)


def _body(source: CatalogSource, *, is_running: bool) -> SourceBody:
    last = source.last or LastImport(0)
    return SourceBody(
        name=source.name,
        kind=source.kind,
        state=_state(source, is_running=is_running),
        url=source.shown_url or None,
        prefix=source.prefix,
        origin=source.origin or None,
        credentials=list(source.credential_names),
        per_user=source.per_user,
        tools=last.tools,
        tokens=last.tokens,
        refused=last.refused,
        created_at=datetime.fromtimestamp(source.created_s, UTC),
        imported_at=datetime.fromtimestamp(last.at_s, UTC) if source.last else None,
        error=ErrorBody(code=last.code, detail=last.error) if last.error else None,
        job=source.job or None,
        version=source.version,
    )


def _state(source: CatalogSource, *, is_running: bool) -> SourceState:
    if not source.is_settled:
        return "importing" if is_running else "unfinished"
    if source.last is None:
        return "awaiting document"
    return "failed" if source.last.error else "ready"
