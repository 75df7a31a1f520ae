"""Catalogs: what they hold, what each tool costs in tokens, and what was refused and why."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request, Response

from toolsearch.access.reach import Reach
from toolsearch.service.corpora.corpus import Corpus
from toolsearch.service.pages import frame
from toolsearch.service.pages.corpus_choice import opened
from toolsearch.service.pages.routing import PageRoute, visit_with
from toolsearch.service.service import Service, service_of
from toolsearch.service.visits import Visit
from toolsearch.storage.records import Record
from toolsearch.threads import search_threads
from toolsearch.tools.definition import Tool

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_Service = Annotated[Service, Depends(service_of)]
_Reader = Annotated[Visit, Depends(visit_with("read-catalog"))]
_Text = Annotated[str, Query(max_length=200)]

_CATALOGS: Final = 100  # on a page
_TOOLS: Final = 50


@dataclass(frozen=True, slots=True)
class CatalogRow:
    record: Record
    tools: int
    revision: int


@dataclass(frozen=True, slots=True)
class CostedTool:
    tool: Tool
    tokens: int


@dataclass(frozen=True, slots=True)
class ToolList:
    """A part of the tools of a catalog. *tokens* of all that are in reach, *next* what the next part begins after."""

    tools: tuple[CostedTool, ...]
    count: int
    tokens: int
    next: str
    most_tokens: int


@router.get("/catalogs")
async def catalogs(request: Request, service: _Service, visit: _Reader, after: _Text = "") -> Response:
    rows = await asyncio.to_thread(_rows, service, visit.caller.tenant, after)
    return frame.page(
        request, "catalogs.html", visit=visit, rows=rows, next=rows[-1].record.id if len(rows) == _CATALOGS else ""
    )


@router.get("/catalogs/{name}")
async def catalog(
    request: Request, service: _Service, visit: _Reader, name: str, q: _Text = "", after: _Text = ""
) -> Response:
    record = await service.catalogs.get(visit.caller.tenant, name)
    corpus = f"catalog/{name}"
    async with opened(service, visit, corpus) as used:
        tools = await search_threads.run(_tools, used, visit.caller.principal.reach, q, after)
    return frame.page(
        request, "catalog.html", visit=visit, record=record, corpus=corpus, tools=tools, query=q, after=after
    )


def _rows(service: Service, tenant: str, after: str) -> list[CatalogRow]:
    records, contents = service.storage.records, service.storage.contents
    page = records.page(tenant, "catalog", after=after, limit=_CATALOGS, at_s=service.clock())
    return [
        CatalogRow(record, contents.count(tenant, record.id), contents.revision(tenant, record.id)) for record in page
    ]


def _tools(corpus: Corpus, reach: Reach, query: str, after: str) -> ToolList:
    """Those that hold *query* in name or description, by name."""
    view, wanted = corpus.engine.view(reach), query.lower()
    fitting = [
        name
        for name in view.names
        if not wanted or wanted in name or ((tool := view.find(name)) and wanted in tool.definition.description.lower())
    ]
    names = [name for name in fitting if name > after][: _TOOLS + 1]
    found = tuple(
        CostedTool(tool, view.tokens_of(tool.definition))
        for name in names[:_TOOLS]
        if (tool := view.find(name)) is not None
    )
    return ToolList(
        found,
        len(fitting),
        view.estimated_tokens,
        names[_TOOLS - 1] if len(names) > _TOOLS else "",
        max((each.tokens for each in found), default=0),
    )
