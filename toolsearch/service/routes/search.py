"""Searching without a session: ``/v1/search``."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends

from toolsearch.api.search import FoundTool, QueryAnswer, SearchAnswer, SearchRequest
from toolsearch.service.callers import ServiceCaller, caller_with
from toolsearch.service.corpora.corpus import CorpusRef
from toolsearch.service.service import Service, service_of
from toolsearch.threads import search_threads

router = APIRouter(tags=["search"])

_Service = Annotated[Service, Depends(service_of)]
_Searcher = Annotated[ServiceCaller, Depends(caller_with("search"))]


@router.post("/search", summary="Search for tools")
async def search(body: SearchRequest, service: _Service, caller: _Searcher) -> SearchAnswer:
    answers: list[QueryAnswer] = []
    async with service.corpora.using(CorpusRef(caller.tenant, "catalog", body.catalog)) as corpus:
        for query in body.queries:
            ask = partial(corpus.engine.search, query, limit=body.limit, principal=caller.principal)
            found = await search_threads.run(ask)
            tools = [FoundTool(name=t.name, score=t.score, confidence=t.confidence, summary=t.summary) for t in found]
            answers.append(QueryAnswer(query=query, tools=tools))
    return SearchAnswer(answers=answers)
