"""All pages, and the files that they load."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from toolsearch.errors import UnknownRecordError
from toolsearch.service.pages import (
    approvals,
    audit,
    catalogs,
    frame,
    imports,
    keys,
    misses,
    playground,
    receipts,
    sessions,
    sign_in,
    tenants,
    tools,
    toolset_editing,
    toolsets,
    usage,
)
from toolsearch.service.pages.routing import PageRoute, see_other, visit_with
from toolsearch.service.visits import Visit

ROUTERS = (
    sign_in.router,
    playground.router,
    tools.router,
    catalogs.router,
    toolsets.router,
    toolset_editing.router,
    imports.router,
    approvals.router,
    sessions.router,
    usage.router,
    misses.router,
    receipts.router,
    audit.router,
    keys.router,
    tenants.router,
)


def add_pages(above: APIRouter) -> None:
    above.add_api_route("/", _to_the_pages, include_in_schema=False)
    above.mount(frame.STATIC_PATH, frame.KeptFiles())
    others = APIRouter(route_class=PageRoute, include_in_schema=False)
    others.add_api_route("/{path:path}", _unknown)
    for router in (*ROUTERS, others):
        above.include_router(router, prefix=frame.ROOT)


async def _to_the_pages() -> Response:
    return see_other(frame.ROOT)


async def _unknown(path: str, _: Annotated[Visit, Depends(visit_with())]) -> Response:
    raise UnknownRecordError("page", path)
