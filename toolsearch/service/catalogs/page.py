"""The pages of catalogs: their contents, the cost of each tool in tokens, and refused entries with the reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import ValidationError

from toolsearch.api.catalogs import NewCatalog
from toolsearch.discovery.view import View
from toolsearch.documents.skills import Skill, skill_of
from toolsearch.errors import ConflictError, TooManyError
from toolsearch.service.catalogs.catalogs import Catalogs
from toolsearch.service.catalogs.imports import routes as source_routes
from toolsearch.service.corpora.asked import opened
from toolsearch.service.pages import frame
from toolsearch.service.pages.frame import PageRoute, SentForm, see_other, sent_with, visit_with
from toolsearch.service.web.answers import Paging
from toolsearch.service.web.callers import Visit
from toolsearch.service.web.parts import ServiceParts, the_service
from toolsearch.storage.records import Record
from toolsearch.threads import search_threads
from toolsearch.tools.definition import Tool

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_Service = Annotated[ServiceParts, Depends(the_service)]
_Reader = Annotated[Visit, Depends(visit_with("read-catalog", within_reach=True))]
_Sent = Annotated[SentForm, Depends(sent_with("write-catalog", within_reach=True))]
_SentByAll = Annotated[SentForm, Depends(sent_with("write-catalog"))]
_Text = Annotated[str, Query(max_length=200)]
_CATALOGS: Final = 100  # catalogs on a page
_TOOLS: Final = 50
_SOURCES: Final = 200
_REFUSED: Final = 200
_CONTENTS: Final = 500


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
class ToolsShown:
    """A part of the tools of a catalog.

    count, tokens  sums over all tools in reach
    fitting        number of tools that match the filter
    next           name after which the next part begins
    """

    tools: tuple[CostedTool, ...]
    count: int
    fitting: int
    tokens: int
    next: str
    most_tokens: int


@dataclass(frozen=True, slots=True)
class ListedContent:
    """A skill, a prompt or a resource. *skill* is the manifest of a skill."""

    entry: Tool
    skill: Skill | None


@dataclass(frozen=True, slots=True)
class ContentsShown:
    """The first of the contents of a catalog that match the filter: *fitting* of *count* match."""

    contents: tuple[ListedContent, ...]
    count: int
    fitting: int


@router.get("/catalogs")
async def catalogs(request: Request, service: _Service, visit: _Reader, after: _Text = "") -> Response:
    return await _list(request, service, visit, after=after)


@router.post("/catalogs")
async def create(request: Request, service: _Service, sent: _Sent) -> Response:
    try:
        body = NewCatalog.model_validate({"name": sent.text("name"), "description": sent.text("description")})
        await service[Catalogs].create(sent.visit.caller.tenant, body.name, {"description": body.description})
    except ValidationError:
        return await _list(request, service, sent.visit, refused="A name has a-z, 0-9 and -, at most 63 of them.")
    except (ConflictError, TooManyError) as error:
        return await _list(request, service, sent.visit, refused=str(error))
    return see_other(f"{frame.ROOT}/catalogs/{body.name}")


@router.get("/catalogs/{name}")
async def catalog(
    request: Request, service: _Service, visit: _Reader, name: str, q: _Text = "", after: _Text = ""
) -> Response:
    caller = visit.caller
    record = await service[Catalogs].get(caller.tenant, name)
    corpus = f"catalog/{name}"
    async with opened(service, visit, corpus) as used:
        await used.gateway.lists_settled()
        await used.listed(caller)
        view = used.view_of(caller)
        tools = await search_threads.run(_tools, view, q, after)
        contents = await search_threads.run(_contents, view, q)
    sees_all = caller.principal.reach.is_everything  # refused entries are no tools, so rules cannot be applied to them
    listed = await source_routes.list_sources(name, service, caller, Paging("", "", _SOURCES)) if sees_all else None
    sources = listed.items if listed else []
    has_servers = any(source.kind == "mcp" for source in sources)
    servers = await source_routes.servers(name, service, caller, Paging("", "", _SOURCES)) if has_servers else None
    refused = await service[Catalogs].refused_tools(caller.tenant, name) if sees_all else []
    return frame.page(
        request,
        "catalog.html",
        visit=visit,
        record=record,
        corpus=corpus,
        tools=tools,
        contents=contents,
        query=q,
        after=after,
        sources=sources,
        servers=servers.items if servers else [],
        refused=refused[:_REFUSED],
    )


@router.post("/catalogs/{name}/delete")
async def delete(service: _Service, sent: _SentByAll, name: str) -> Response:
    await service[Catalogs].delete(sent.visit.caller.tenant, name)
    return see_other(f"{frame.ROOT}/catalogs")


async def _list(
    request: Request, service: ServiceParts, visit: Visit, *, after: str = "", refused: str = ""
) -> Response:
    page = await service[Catalogs].page(visit.caller.tenant, after=after, limit=_CATALOGS)
    rows = [CatalogRow(record, *await service[Catalogs].size(record.id, visit.caller)) for record in page]
    return frame.page(
        request,
        "catalogs.html",
        visit=visit,
        status=422 if refused else 200,
        rows=rows,
        next=page[-1].id if len(page) == _CATALOGS else "",
        refused=refused,
    )


def _tools(view: View, query: str, after: str) -> ToolsShown:
    """The tools with *query* in their name or description, sorted by name."""
    wanted = query.lower()
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
    return ToolsShown(
        found,
        len(view.names),
        len(fitting),
        view.estimated_tokens,
        names[_TOOLS - 1] if len(names) > _TOOLS else "",
        max((each.tokens for each in found), default=0),
    )


def _contents(view: View, query: str) -> ContentsShown:
    """The skills, prompts and resources with *query* in their name or description, sorted by name."""
    everything, wanted = view.contents, query.lower()
    fitting = [
        each
        for name, each in everything.items()
        if not wanted or wanted in name.lower() or wanted in each.definition.description.lower()
    ]
    shown = tuple(ListedContent(each, skill_of(each)) for each in fitting[:_CONTENTS])
    return ContentsShown(shown, len(everything), len(fitting))
