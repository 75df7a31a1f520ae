"""Misses, which are requests of agents without a good answer: ``/v1/misses``, and the page."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request, Response

from toolsearch.api.activity import MissBody
from toolsearch.api.base import CorpusName, OverCorpus, Page
from toolsearch.errors import UnknownRecordError
from toolsearch.service.activity.activity import Activity
from toolsearch.service.corpora.asked import CorpusPath, choices, corpus_asked, ref_of
from toolsearch.service.pages import frame
from toolsearch.service.pages.frame import PageRoute, visit_with
from toolsearch.service.web.answers import Paging, paging, time_of
from toolsearch.service.web.callers import ServiceCaller, Visit, caller_with
from toolsearch.service.web.parts import ServiceParts, the_service
from toolsearch.service.web.problems import bad_request
from toolsearch.storage.activity import Miss

router = APIRouter(tags=["activity"])
_Service = Annotated[ServiceParts, Depends(the_service)]


async def corpus_named(
    catalog: Annotated[CorpusName | None, Query(description="'default' unless a toolset is named.")] = None,
    toolset: CorpusName | None = None,
) -> OverCorpus:
    if catalog is not None and toolset is not None:
        raise bad_request("the request names a catalog and a toolset; name one of them")
    return OverCorpus(catalog=catalog, toolset=toolset)


_Corpus = Annotated[OverCorpus, Depends(corpus_named)]


@router.get("/misses", summary="List requests that were answered weakly or not at all, the most frequent first")
async def misses(
    service: _Service,
    caller: Annotated[ServiceCaller, Depends(caller_with("read-catalog"))],
    corpus: _Corpus,
    paged: Annotated[Paging, Depends(paging)],
) -> Page[MissBody]:
    """They say which tool to write, or to describe better. The words of requests are kept without what looks like a
    credential, and not at all where the operator has turned that off.
    """
    await service[Activity].settled()
    offset = int(paged.after or 0)
    found = await asyncio.to_thread(
        service.storage.misses.page,
        caller.tenant,
        str(corpus_asked(corpus, caller)),
        offset=offset,
        limit=paged.fetch,
    )
    placed = list(enumerate(found, offset + 1))
    return paged.page(placed, lambda each: str(each[0]), lambda each: _body(each[1]))


@router.delete("/misses", status_code=204, summary="Forget one of these requests")
async def forget(
    service: _Service,
    caller: Annotated[ServiceCaller, Depends(caller_with("write-catalog"))],
    corpus: _Corpus,
    query: Annotated[str, Query(min_length=1, max_length=2_000, description="As the list gives it.")],
) -> None:
    await service[Activity].settled()
    ref = str(corpus_asked(corpus, caller))
    if not await asyncio.to_thread(service.storage.misses.forget, caller.tenant, ref, query):
        raise UnknownRecordError("miss", query)


def _body(miss: Miss) -> MissBody:
    return MissBody(
        query=miss.query,
        kind=miss.kind,
        count=miss.count,
        first_at=time_of(miss.first_s),
        last_at=time_of(miss.last_s),
        best=miss.best,
        best_score=miss.best_score,
    )


page_router = APIRouter(route_class=PageRoute, include_in_schema=False)
_Reader = Annotated[Visit, Depends(visit_with("read-catalog"))]
_MISSES: Final = 50  # misses on a page


@page_router.get("/misses")
async def misses_page(
    request: Request,
    service: _Service,
    visit: _Reader,
    corpus: CorpusPath = "",
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Response:
    await service[Activity].settled()
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
