"""The audit: who wrote or decided what, and with which outcome. What was written is in none of its entries."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request, Response

from toolsearch.service.pages import frame
from toolsearch.service.pages.key_names import key_names
from toolsearch.service.pages.routing import PageRoute, visit_with
from toolsearch.service.service import Service, the_service
from toolsearch.service.visits import Visit

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_Service = Annotated[Service, Depends(the_service)]
_Admin = Annotated[Visit, Depends(visit_with("admin"))]
_Text = Annotated[str, Query(max_length=300)]
_RECORDS: Final = 50  # on a page


@router.get("/audit")
async def audit(
    request: Request,
    service: _Service,
    visit: _Admin,
    key: _Text = "",
    holding: _Text = "",
    before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
) -> Response:
    asked = {"key": key.strip(), "holding": holding.strip()}
    read = partial(
        service.storage.audit.records,
        limit=_RECORDS + 1,
        tenant=visit.caller.tenant,
        before=before,
        who=asked["key"] or None,
        holding=asked["holding"],
    )
    found = list(reversed(await asyncio.to_thread(read)))
    shown = found[:_RECORDS]
    return frame.page(
        request,
        "audit.html",
        visit=visit,
        records=shown,
        names=await key_names(service, visit, [each.who for each in shown]),
        asked=asked,
        next=shown[-1].position if len(found) > _RECORDS else 0,
    )
