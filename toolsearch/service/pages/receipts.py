"""Receipts of calls: who called what, what was decided, how it ended. What was said is in none of them."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request, Response

from toolsearch.service.pages import frame
from toolsearch.service.pages.key_names import key_names
from toolsearch.service.pages.routing import PageRoute, visit_with
from toolsearch.service.routes.whose import whose_key
from toolsearch.service.service import Service, the_service
from toolsearch.service.visits import Visit

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_Service = Annotated[Service, Depends(the_service)]
_Calling = Annotated[Visit, Depends(visit_with("call", within_reach=True))]
_Text = Annotated[str, Query(max_length=200)]
_RECEIPTS: Final = 50  # on a page


@router.get("/receipts")
async def receipts(
    request: Request,
    service: _Service,
    visit: _Calling,
    before: _Text = "",
    tool: _Text = "",
    session: _Text = "",
    key: _Text = "",
) -> Response:
    asked = {"tool": tool.strip(), "session": session.strip(), "key": key.strip()}
    found = await asyncio.to_thread(
        service.storage.receipts.page,
        visit.caller.tenant,
        before=before,
        limit=_RECEIPTS,
        tool=asked["tool"] or None,
        session=asked["session"] or None,
        key=whose_key(visit.caller, asked["key"] or None, mine=False),
    )
    return frame.page(
        request,
        "receipts.html",
        visit=visit,
        receipts=found,
        asked=asked,
        names=await key_names(service, visit, [each.key for each in found]),
        next=found[-1].id if len(found) == _RECEIPTS else "",
    )
