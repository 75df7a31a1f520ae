"""What catalogs import from: ``/v1/catalogs/{catalog}/sources``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Request

from toolsearch.api.base import Page
from toolsearch.api.catalogs import RefusedTool
from toolsearch.api.imports import (
    ErrorBody,
    NewMcpSource,
    NewSource,
    ServerBody,
    SourceBody,
    SourceStarted,
    SourceState,
)
from toolsearch.errors import BadSettingError
from toolsearch.gateway.status.snapshot import ServerRow
from toolsearch.service.callers import ServiceCaller, caller_with
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.cursors import Paging, paging
from toolsearch.service.imports.new_sources import new_source
from toolsearch.service.imports.reading import DocumentText
from toolsearch.service.imports.sources import CatalogSource, LastImport
from toolsearch.service.job_records import Job
from toolsearch.service.middleware.bodies import JSON_LINES, media_type
from toolsearch.service.refusals import operators_only
from toolsearch.service.routes.jobs import job_body
from toolsearch.service.service import Service, the_service

router = APIRouter(tags=["sources"])

_Service = Annotated[Service, Depends(the_service)]
_Reader = Annotated[ServiceCaller, Depends(caller_with("read-catalog"))]
_Writer = Annotated[ServiceCaller, Depends(caller_with("write-catalog"))]
_DOCUMENTS = ("application/json", "application/x-ndjson", "application/yaml")
_Paging = Annotated[Paging, Depends(paging)]


@router.post("/catalogs/{catalog}/sources", status_code=202, summary="Add a source and import it")
async def create(catalog: str, body: Annotated[NewSource, Body()], service: _Service, caller: _Writer) -> SourceStarted:
    _require_operator_for_commands(body, caller)
    await service.catalogs.get(caller.tenant, catalog)
    await service.limits.require_room(caller.tenant, "sources")
    source, secrets = new_source(body, caller.tenant, catalog, service.clock())
    return _started(*await service.imports.create(source, secrets, getattr(body, "document", None)))


@router.get("/catalogs/{catalog}/sources", summary="List the sources of a catalog")
async def list_sources(catalog: str, service: _Service, caller: _Reader, paging: _Paging) -> Page[SourceBody]:
    await service.catalogs.get(caller.tenant, catalog)
    sources = await service.imports.sources.of_catalog(caller.tenant, catalog)
    following = [each for each in sources if each.name > paging.after]
    shown = following[: paging.fetch]
    running = await service.imports.running_among(shown)
    return paging.page(shown, lambda each: each.name, lambda each: _body(each, is_running=each.id in running))


@router.get("/catalogs/{catalog}/sources/{source}", summary="Get a source")
async def get(catalog: str, source: str, service: _Service, caller: _Reader) -> SourceBody:
    found = await service.imports.sources.get(caller.tenant, catalog, source)
    return _body(found, is_running=found.id in await service.imports.running_among([found]))


@router.put(
    "/catalogs/{catalog}/sources/{source}/document",
    status_code=202,
    summary="Upload the document of a source and import it",
    openapi_extra={"requestBody": {"required": True, "content": {media: {} for media in _DOCUMENTS}}},
)
async def upload(catalog: str, source: str, request: Request, service: _Service, caller: _Writer) -> SourceStarted:
    text = document_text(await request.body())
    document = DocumentText(text, "jsonl" if media_type(request.headers) in JSON_LINES else None)
    return _started(*await service.imports.upload(caller.tenant, catalog, source, document))


@router.post(
    "/catalogs/{catalog}/sources/{source}/refresh", status_code=202, summary="Import a source again from its URL"
)
async def refresh(catalog: str, source: str, service: _Service, caller: _Writer) -> SourceStarted:
    return _started(*await service.imports.refresh(caller.tenant, catalog, source))


@router.delete("/catalogs/{catalog}/sources/{source}", status_code=204, summary="Delete a source and its tools")
async def delete(catalog: str, source: str, service: _Service, caller: _Writer) -> None:
    await service.imports.delete(caller.tenant, catalog, source)


@router.get("/catalogs/{catalog}/servers", summary="List the MCP servers of a catalog as they are connected")
async def servers(catalog: str, service: _Service, caller: _Reader, paging: _Paging) -> Page[ServerBody]:
    async with service.corpora.using(CorpusRef(caller.tenant, "catalog", catalog)) as corpus:
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
        raise operators_only("MCP servers that are started by a command, which runs on the service's machine")


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
