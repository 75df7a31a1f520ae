"""Receipts of calls: caller, tool, decision and outcome. ``/v1/receipts``, and the page.

No receipt contains arguments or results.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request, Response

from toolsearch.api.activity import ReceiptBody
from toolsearch.api.base import Page, body_of
from toolsearch.service.keys.page import key_names
from toolsearch.service.pages import frame
from toolsearch.service.pages.frame import PageRoute, visit_with
from toolsearch.service.web.answers import Paging, paging, time_of
from toolsearch.service.web.callers import ServiceCaller, Visit, caller_with, whose_key
from toolsearch.service.web.parts import ServiceParts, the_service
from toolsearch.storage.activity import Receipt

router = APIRouter(tags=["activity"])
_Filter = Annotated[str | None, Query(max_length=200)]


@router.get("/receipts", summary="List calls, the newest first: who, which tool and definition, how it ended")
async def receipts(
    *,
    service: Annotated[ServiceParts, Depends(the_service)],
    caller: Annotated[ServiceCaller, Depends(caller_with("call", within_reach=True))],
    paged: Annotated[Paging, Depends(paging)],
    session: _Filter = None,
    key: _Filter = None,
    tool: _Filter = None,
    mine: bool = False,
) -> Page[ReceiptBody]:
    """A key without the scope admin sees its own calls."""
    found = await asyncio.to_thread(
        service.storage.receipts.page,
        caller.tenant,
        before=paged.after,
        limit=paged.fetch,
        session=session,
        key=whose_key(caller, key, mine=mine),
        tool=tool,
    )
    return paged.page(found, lambda receipt: receipt.id, _body)


def _body(receipt: Receipt) -> ReceiptBody:
    return body_of(ReceiptBody, receipt, at=time_of(receipt.at_s))


page_router = APIRouter(route_class=PageRoute, include_in_schema=False)
_Service = Annotated[ServiceParts, Depends(the_service)]
_Calling = Annotated[Visit, Depends(visit_with("call", within_reach=True))]
_Text = Annotated[str, Query(max_length=200)]
_RECEIPTS: Final = 50  # receipts on a page


@page_router.get("/receipts")
async def receipts_page(
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
