"""Receipts of calls: ``/v1/receipts``."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from toolsearch.api.activity import ReceiptBody
from toolsearch.api.base import Page
from toolsearch.service.callers import ServiceCaller, caller_with
from toolsearch.service.cursors import Paging, paging
from toolsearch.service.routes.whose import whose_key
from toolsearch.service.service import Service, the_service
from toolsearch.service.times import time_of
from toolsearch.storage.receipts import Receipt

router = APIRouter(tags=["activity"])

_Filter = Annotated[str | None, Query(max_length=200)]


@router.get("/receipts", summary="List calls, the newest first: who, which tool and definition, how it ended")
async def receipts(
    *,
    service: Annotated[Service, Depends(the_service)],
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
    return ReceiptBody.model_validate({**asdict(receipt), "at": time_of(receipt.at_s)})
