"""Misses: what agents ask for that no tool answers well, so that one knows which tool to write or describe better."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request, Response

from toolsearch.service.pages import frame
from toolsearch.service.pages.corpus_choice import CorpusName, choices, ref_of
from toolsearch.service.pages.routing import PageRoute, visit_with
from toolsearch.service.service import Service, the_service
from toolsearch.service.visits import Visit

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_Service = Annotated[Service, Depends(the_service)]
_Reader = Annotated[Visit, Depends(visit_with("read-catalog"))]
_MISSES: Final = 50  # on a page


@router.get("/misses")
async def misses(
    request: Request,
    service: _Service,
    visit: _Reader,
    corpus: CorpusName = "",
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Response:
    await service.activity.settled()
    corpora = await choices(service, visit)
    chosen = corpus or next(iter(corpora), "catalog/default")
    found = await asyncio.to_thread(
        service.storage.misses.page, visit.caller.tenant, str(ref_of(visit, chosen)), offset=offset, limit=_MISSES + 1
    )
    return frame.page(
        request,
        "misses.html",
        visit=visit,
        misses=found[:_MISSES],
        corpus=chosen,
        corpora=corpora,
        most=max((miss.count for miss in found), default=1),
        next=offset + _MISSES if len(found) > _MISSES else 0,
    )
