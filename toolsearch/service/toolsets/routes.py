"""Toolsets: ``/v1/toolsets``."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from toolsearch.api.base import Page
from toolsearch.api.catalogs import (
    NewToolset,
    ToolsetBody,
    ToolsetEntry,
    ToolsetPatch,
)
from toolsearch.service.corpora.toolset_specs import ToolsetSpec
from toolsearch.service.toolsets.toolsets import KeptToolset, Toolsets, ToolsetTool
from toolsearch.service.web.answers import UNCHANGED, Conditional, Paging, etag_of, paging
from toolsearch.service.web.callers import ServiceCaller, caller_with
from toolsearch.service.web.parts import ServiceParts, the_service
from toolsearch.tools.summaries import summary_of

router = APIRouter(tags=["toolsets"])
_Service = Annotated[ServiceParts, Depends(the_service)]
_Writer = Annotated[ServiceCaller, Depends(caller_with("write-catalog"))]
_Reader = Annotated[ServiceCaller, Depends(caller_with("read-catalog", within_reach=True))]
_Paging = Annotated[Paging, Depends(paging)]


@router.post("/toolsets", status_code=201, summary="Create a toolset")
async def create(body: NewToolset, service: _Service, caller: _Writer, response: Response) -> ToolsetBody:
    """A toolset shows tools of one or more catalogs, by names and descriptions of its own if it has some. Rules take in
    tools that come later. A name of a toolset never comes to mean another tool by itself: a newcomer whose name is
    taken is refused, with the reason among the toolset's tools.
    """
    return _tagged(response, await service[Toolsets].create(caller.tenant, body.name, spec_of(body)))


@router.get("/toolsets", summary="List toolsets")
async def list_toolsets(service: _Service, caller: _Reader, page: _Paging) -> Page[ToolsetBody]:
    found = await service[Toolsets].page(caller.tenant, after=page.after, limit=page.fetch)
    known = [await _known(service, caller, each) for each in found]
    return page.page(known, lambda each: each.name, _body)


@router.get("/toolsets/{toolset}", summary="Give the newest version of a toolset", responses=UNCHANGED)
async def get(
    toolset: str, service: _Service, caller: _Reader, conditional: Conditional, response: Response
) -> ToolsetBody:
    """A key with rules sees those of its tools that it reaches, and no rules."""
    kept = await service[Toolsets].get(caller.tenant, toolset)
    conditional.tag(response, kept.version)
    return _body(await _known(service, caller, kept))


@router.patch("/toolsets/{toolset}", summary="Make a new version of a toolset")
async def change(
    toolset: str,
    body: ToolsetPatch,
    service: _Service,
    caller: _Writer,
    conditional: Conditional,
    response: Response,
) -> ToolsetBody:
    """Sessions over it go on with the new version. The versions before can still be read."""
    over = await _over(service, caller, toolset, conditional)
    kept = await service[Toolsets].change(caller.tenant, toolset, lambda spec: replace(spec, **body), over=over)
    return _tagged(response, kept)


@router.delete("/toolsets/{toolset}", status_code=204, summary="Delete a toolset with all its versions")
async def delete(toolset: str, service: _Service, caller: _Writer, conditional: Conditional) -> None:
    over = await _over(service, caller, toolset, conditional)
    await service[Toolsets].delete(caller.tenant, toolset, over=over)


@router.get("/toolsets/{toolset}/versions", summary="List the versions of a toolset, the newest first")
async def versions(toolset: str, service: _Service, caller: _Reader, page: _Paging) -> Page[ToolsetBody]:
    before = int(page.after) if page.after.isdecimal() else None
    found = await service[Toolsets].versions(caller.tenant, toolset, before=before, limit=page.fetch)
    known = [await _known(service, caller, each) for each in found]
    return page.page(known, lambda each: str(each.spec.number), _body)


@router.get("/toolsets/{toolset}/versions/{number}", summary="Give one version of a toolset")
async def version(
    toolset: str, number: Annotated[int, Path(ge=1, le=10**8)], service: _Service, caller: _Reader
) -> ToolsetBody:
    return _body(await _known(service, caller, await service[Toolsets].version(caller.tenant, toolset, number)))


@router.get("/toolsets/{toolset}/tools", summary="List what a toolset shows, and what it cannot show and why")
async def tools(toolset: str, service: _Service, caller: _Reader, page: _Paging) -> Page[ToolsetEntry]:
    """A key with rules sees those that it reaches, by the tools' names in their catalogs, and none of the others."""
    shown, absent = await service[Toolsets].tools(toolset, caller)
    entries = sorted([*map(_shown, shown), *absent], key=_place)
    behind = [each for each in entries if _place(each) > page.after]
    return page.page(behind[: page.fetch], _place, lambda entry: entry)


async def _known(service: ServiceParts, caller: ServiceCaller, kept: KeptToolset) -> KeptToolset:
    return await service[Toolsets].within_reach(kept, caller)


async def _over(service: ServiceParts, caller: ServiceCaller, toolset: str, conditional: Conditional) -> int | None:
    kept = await service[Toolsets].get(caller.tenant, toolset)
    return conditional.over(kept.version)


def _tagged(response: Response, kept: KeptToolset) -> ToolsetBody:
    response.headers["etag"] = etag_of(kept.version)
    return _body(kept)


def _body(kept: KeptToolset) -> ToolsetBody:
    spec = kept.spec
    return ToolsetBody(
        name=kept.name,
        number=spec.number,
        description=spec.description,
        tools=spec.tools,
        rules=spec.rules,
        changed_at=datetime.fromtimestamp(kept.changed_s, UTC),
    )


def spec_of(body: NewToolset) -> ToolsetSpec:
    """The first version of a toolset."""
    return ToolsetSpec(body.description, body.tools, body.rules)


def _shown(shown: ToolsetTool) -> ToolsetEntry:
    return ToolsetEntry(
        name=shown.tool.name,
        catalog=shown.member.catalog,
        tool=shown.member.tool,
        state="shown",
        summary=summary_of(shown.tool.definition),
        kind=shown.tool.definition.kind,
        is_callable=shown.tool.is_callable,
    )


def _place(entry: ToolsetEntry) -> str:
    """The place of an entry. Two entries can have one name: a shown one, and one that was refused for that."""
    return f"{entry.name}\n{entry.catalog}\n{entry.tool}"
