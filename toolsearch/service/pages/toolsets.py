"""Toolsets: which tools of which catalogs, by which names, what of it is missing, and the versions before."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request, Response

from toolsearch.service.pages import frame
from toolsearch.service.pages.routing import PageRoute, visit_with
from toolsearch.service.service import Service, the_service
from toolsearch.service.visits import Visit

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_Service = Annotated[Service, Depends(the_service)]
_Reader = Annotated[Visit, Depends(visit_with("read-catalog", within_reach=True))]

_TOOLSETS: Final = 100  # on a page
_VERSIONS: Final = 20


@router.get("/toolsets")
async def toolsets(
    request: Request, service: _Service, visit: _Reader, after: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    caller = visit.caller
    found = await service.toolsets.page(caller.tenant, after=after, limit=_TOOLSETS)
    page = [await service.toolsets.within_reach(caller.tenant, each, caller.principal) for each in found]
    return frame.page(
        request, "toolsets.html", visit=visit, toolsets=page, next=page[-1].name if len(page) == _TOOLSETS else ""
    )


@router.get("/toolsets/{name}")
async def toolset(request: Request, service: _Service, visit: _Reader, name: str) -> Response:
    caller = visit.caller
    newest = await service.toolsets.get(caller.tenant, name)
    kept = await service.toolsets.within_reach(caller.tenant, newest, caller.principal)
    tools, absent = await service.toolsets.tools(caller.tenant, name, caller.principal)
    earlier = await service.toolsets.versions(caller.tenant, name, before=None, limit=_VERSIONS)
    versions = [await service.toolsets.within_reach(caller.tenant, each, caller.principal) for each in earlier]
    return frame.page(request, "toolset.html", visit=visit, toolset=kept, tools=tools, absent=absent, versions=versions)
