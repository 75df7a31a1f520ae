"""Catalogs and their tools: ``/v1/catalogs``."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse

from toolsearch.api.base import Page
from toolsearch.api.catalogs import (
    CatalogBody,
    CatalogPatch,
    NewCatalog,
    RefusedTool,
    SkillFileBody,
    ToolBody,
    ToolEntry,
    ToolNames,
    ToolOutcome,
    ToolPatch,
    ToolsDeleted,
    ToolsWritten,
)
from toolsearch.documents.json_values import as_list
from toolsearch.documents.skills import skill_of
from toolsearch.service.catalogs.catalogs import Catalogs, Written, export_line
from toolsearch.service.web.answers import UNCHANGED, Conditional, Paging, etag_of, paging
from toolsearch.service.web.bodies import JSON_LINES, media_type
from toolsearch.service.web.callers import ServiceCaller, caller_with
from toolsearch.service.web.parts import ServiceParts, the_service
from toolsearch.service.web.problems import bad_request
from toolsearch.storage.records import Record
from toolsearch.tools.definition import EntryKind, Tool
from toolsearch.tools.json_types import Json
from toolsearch.tools.summaries import summary_of

router = APIRouter(tags=["catalogs"])
_Service = Annotated[ServiceParts, Depends(the_service)]
_Writer = Annotated[ServiceCaller, Depends(caller_with("write-catalog", within_reach=True))]
_Reader = Annotated[ServiceCaller, Depends(caller_with("read-catalog", within_reach=True))]
_WriterOfAll = Annotated[ServiceCaller, Depends(caller_with("write-catalog"))]
_ReaderOfAll = Annotated[ServiceCaller, Depends(caller_with("read-catalog"))]
_Paging = Annotated[Paging, Depends(paging)]
_Source = Annotated[str | None, Query(max_length=200, description="Of this source only; empty: of none.")]
_Kinds = Annotated[tuple[EntryKind, ...], Query(min_length=1, max_length=20)]
_EXPORTED_AT_ONCE = 500
_LINES = "application/x-ndjson"

_LISTING: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"type": "array", "items": {"type": "object"}}},
            _LINES: {"schema": {"type": "string", "description": "One definition a line."}},
        },
    }
}


@router.post("/catalogs", status_code=201, summary="Create a catalog")
async def create(body: NewCatalog, service: _Service, caller: _Writer, response: Response) -> CatalogBody:
    record = await service[Catalogs].create(caller.tenant, body.name, {"description": body.description})
    return await _body(service, caller, record, response)


@router.get("/catalogs", summary="List catalogs")
async def list_catalogs(service: _Service, caller: _Reader, page: _Paging) -> Page[CatalogBody]:
    found = await service[Catalogs].page(caller.tenant, after=page.after, limit=page.fetch)
    bodies = {each.id: await _body(service, caller, each) for each in found[: page.limit]}
    return page.page(found, lambda each: each.id, lambda each: bodies[each.id])


@router.get("/catalogs/{catalog}", summary="Say what a catalog is for, and how many tools it has", responses=UNCHANGED)
async def get(
    catalog: str, service: _Service, caller: _Reader, conditional: Conditional, response: Response
) -> CatalogBody:
    record = await service[Catalogs].get(caller.tenant, catalog)
    count, revision = await service[Catalogs].size(catalog, caller)
    conditional.tag(response, f"{record.version}-{revision}")
    return _catalog(record, count, revision)


@router.patch("/catalogs/{catalog}", summary="Describe a catalog differently")
async def describe(
    catalog: str,
    body: CatalogPatch,
    service: _Service,
    caller: _WriterOfAll,
    conditional: Conditional,
    response: Response,
) -> CatalogBody:
    over = await _over(service, caller, catalog, conditional)
    record = await service[Catalogs].describe(caller.tenant, catalog, body, over=over)
    return await _body(service, caller, record, response)


@router.delete("/catalogs/{catalog}", status_code=204, summary="Delete a catalog with its tools and sources")
async def delete(catalog: str, service: _Service, caller: _WriterOfAll, conditional: Conditional) -> None:
    """Sessions over it end. Toolsets show its tools as missing."""
    over = await _over(service, caller, catalog, conditional)
    await service[Catalogs].delete(caller.tenant, catalog, over=over)


@router.post("/catalogs/{catalog}/tools", summary="Write tools, an outcome for each", openapi_extra=_LISTING)
async def upsert(catalog: str, request: Request, service: _Service, caller: _Writer) -> ToolsWritten:
    """Takes definitions in the formats of OpenAI, Anthropic and MCP: as a JSON array, which is written in one
    transaction, or as NDJSON, 1,000 lines in one transaction. Searches see all of a transaction or nothing of it.
    A bad entry is refused with a reason, and the others are written.
    """
    body, reach = await request.body(), caller.principal.reach
    if media_type(request.headers) in JSON_LINES:
        written = await service[Catalogs].upsert_lines(caller.tenant, catalog, body.split(b"\n"), reach)
    else:
        written = await service[Catalogs].upsert(caller.tenant, catalog, await _entries(request), reach)
    counts = {kind: written.count(kind) for kind in ("created", "replaced", "unchanged", "refused")}
    return ToolsWritten(**counts, outcomes=_outcomes(written), revision=written.revision)


@router.get("/catalogs/{catalog}/tools", summary="List the tools of a catalog that the key reaches, or other kinds")
async def list_tools(
    catalog: str, service: _Service, caller: _Reader, page: _Paging, kind: _Kinds = ("tool",), source: _Source = None
) -> Page[ToolEntry]:
    found = await service[Catalogs].tools(
        catalog, caller, after=page.after, limit=page.fetch, kinds=kind, source=source
    )
    return page.page(found, lambda tool: tool.name, lambda tool: ToolEntry(**_entry(tool)))


@router.post("/catalogs/{catalog}/tools/delete", summary="Delete tools by name, an outcome for each")
async def delete_tools(catalog: str, body: ToolNames, service: _Service, caller: _Writer) -> ToolsDeleted:
    written = await service[Catalogs].delete_tools(caller.tenant, catalog, body.names, caller.principal.reach)
    counts = {kind: written.count(kind) for kind in ("deleted", "missing", "refused")}
    return ToolsDeleted(**counts, outcomes=_outcomes(written), revision=written.revision)


@router.get("/catalogs/{catalog}/tools/{tool}", summary="Give the definition of a tool", responses=UNCHANGED)
async def get_tool(
    catalog: str, tool: str, service: _Service, caller: _Reader, conditional: Conditional, response: Response
) -> ToolBody:
    found = await service[Catalogs].tool(catalog, tool, caller)
    body = _tool(found)
    conditional.tag(response, body.fingerprint)
    return body


@router.patch("/catalogs/{catalog}/tools/{tool}", summary="Change fields of a tool's definition")
async def patch_tool(
    catalog: str,
    tool: str,
    body: ToolPatch,
    service: _Service,
    caller: _Writer,
    conditional: Conditional,
    response: Response,
) -> ToolBody:
    """A tool that a source owns is changed at the source, or in a toolset."""
    await service[Catalogs].patch_tool(
        caller.tenant, catalog, tool, body, caller.principal.reach, check=conditional.require
    )
    changed = _tool(await service[Catalogs].tool(catalog, tool, caller))
    response.headers["etag"] = etag_of(changed.fingerprint)
    return changed


@router.delete("/catalogs/{catalog}/tools/{tool}", summary="Delete a tool")
async def delete_tool(catalog: str, tool: str, service: _Service, caller: _Writer) -> ToolsDeleted:
    return await delete_tools(catalog, ToolNames(names=[tool]), service, caller)


@router.get(
    "/catalogs/{catalog}/export",
    summary="Export the definitions as NDJSON, which can be written to a catalog again",
    response_class=StreamingResponse,
    responses={200: {"content": {_LINES: {"schema": {"type": "string"}}}}},
)
async def export(catalog: str, service: _Service, caller: _Reader, source: _Source = None) -> StreamingResponse:
    """What runs the tools is not part of it, and no credential is."""
    await service[Catalogs].get(caller.tenant, catalog)
    lines = _lines(service, caller, catalog, source)
    return StreamingResponse(lines, media_type=_LINES, headers={"cache-control": "no-store"})


@router.get("/catalogs/{catalog}/refused", summary="List what was refused last, and why")
async def refused(catalog: str, service: _Service, caller: _ReaderOfAll, page: _Paging) -> Page[RefusedTool]:
    found = await service[Catalogs].refused_tools(caller.tenant, catalog)
    start = int(page.after) if page.after.isdecimal() else 0
    rows = list(enumerate(found))[start : start + page.fetch]
    return page.page(
        rows,
        lambda row: str(row[0] + 1),
        lambda row: RefusedTool(name=row[1].name, source=row[1].source, reason=row[1].reason),
    )


async def _lines(
    service: ServiceParts, caller: ServiceCaller, catalog: str, source: str | None
) -> AsyncGenerator[bytes]:
    after = ""
    while found := await service[Catalogs].tools(catalog, caller, after=after, limit=_EXPORTED_AT_ONCE, source=source):
        yield b"".join(map(export_line, found))
        after = found[-1].name


async def _entries(request: Request) -> list[Json]:
    try:
        entries: Json = await request.json()
    except ValueError as error:
        raise bad_request(f"the body is not JSON: {error}") from None
    listed = as_list(entries)
    if listed is None:
        raise bad_request(f"send an array of definitions, or one a line as {_LINES}")
    return list(listed)


async def _over(service: ServiceParts, caller: ServiceCaller, catalog: str, conditional: Conditional) -> int | None:
    """The version of the description to write over, if the client names the state that it has seen."""
    record = await service[Catalogs].get(caller.tenant, catalog)
    revision = await service[Catalogs].revision(caller.tenant, catalog)
    conditional.require(f"{record.version}-{revision}")
    return record.version if conditional.match else None


async def _body(
    service: ServiceParts, caller: ServiceCaller, record: Record, response: Response | None = None
) -> CatalogBody:
    count, revision = await service[Catalogs].size(record.id, caller)
    if response is not None:
        response.headers["etag"] = etag_of(f"{record.version}-{revision}")
    return _catalog(record, count, revision)


def _catalog(record: Record, count: int, revision: int) -> CatalogBody:
    return CatalogBody(
        name=record.id,
        description=str(record.document.get("description", "")),
        tools=count,
        revision=revision,
        version=record.version,
        changed_at=datetime.fromtimestamp(record.changed_s, UTC),
    )


def _outcomes(written: Written) -> list[ToolOutcome]:
    return [
        ToolOutcome(index=each.index, name=each.name, outcome=each.outcome, reason=each.reason)
        for each in written.outcomes
    ]


def _entry(tool: Tool) -> dict[str, Any]:
    definition = tool.definition
    return {
        "name": tool.name,
        "kind": definition.kind,
        "title": definition.title,
        "summary": summary_of(definition),
        "server": definition.server,
        "tags": list(definition.tags),
        "source": tool.source,
        "is_callable": tool.is_callable,
    }


def _tool(tool: Tool) -> ToolBody:
    definition, skill = tool.definition, skill_of(tool)
    return ToolBody(
        **_entry(tool),
        description=definition.description,
        input_schema=definition.input_schema,
        output_schema=definition.output_schema,
        annotations=definition.annotations,
        fingerprint=definition.fingerprint(),
        files=[
            SkillFileBody(path=each.path, digest=each.digest, size=each.size)
            for each in (skill.files.values() if skill else ())
        ],
    )
