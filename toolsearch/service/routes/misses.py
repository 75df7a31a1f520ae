"""Frequent requests without a good answer: ``/v1/misses``."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from toolsearch.api.activity import MissBody
from toolsearch.api.base import Page
from toolsearch.api.corpora import CorpusName, OverCorpus
from toolsearch.errors import UnknownRecordError
from toolsearch.service.callers import ServiceCaller, caller_with
from toolsearch.service.cursors import Paging, paging
from toolsearch.service.refusals import bad_request
from toolsearch.service.routes.corpus_asked import corpus_asked
from toolsearch.service.service import Service, the_service
from toolsearch.service.times import time_of
from toolsearch.storage.misses import Miss

router = APIRouter(tags=["activity"])

_Service = Annotated[Service, Depends(the_service)]


async def corpus_named(
    catalog: Annotated[CorpusName | None, Query(description="'default' unless a toolset is named.")] = None,
    toolset: CorpusName | None = None,
) -> OverCorpus:
    if catalog is not None and toolset is not None:
        raise bad_request("give a catalog or a toolset, not both")
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
    await service.activity.settled()
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
    await service.activity.settled()
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
