"""Searching without a session: ``/v1/search``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from toolsearch.api.search import ExplainedTool, FoundTool, QueryAnswer, SearchAnswer, SearchRequest
from toolsearch.service.activity.activity import Who
from toolsearch.service.activity.misses import SearchNote
from toolsearch.service.asked_reach import asked_reach
from toolsearch.service.callers import ServiceCaller, caller_with
from toolsearch.service.direct_route import DirectRoute
from toolsearch.service.routes.corpus_asked import corpus_asked
from toolsearch.service.searching import Answered, AnsweredQuery, Asked, answer
from toolsearch.service.service import Service, the_service
from toolsearch.threads import search_threads
from toolsearch.tools.definition import ToolReference

router = APIRouter(tags=["search"], route_class=DirectRoute)

_Service = Annotated[Service, Depends(the_service)]
_Searcher = Annotated[ServiceCaller, Depends(caller_with("search", within_reach=True))]


@router.post("/search", summary="Search for tools, with several queries at once", response_model=SearchAnswer)
async def search(body: SearchRequest, service: _Service, caller: _Searcher) -> Response:
    """Nothing is kept of the search but figures, and queries without a good answer: see misses. The answer to a single
    query that cannot be searched for is an error; of several, the others are answered.
    """
    ref = corpus_asked(body, caller)
    asked = Asked(
        queries=body.queries,
        names=body.names,
        strategy=body.strategy,
        limit=body.limit,
        server=body.server,
        reach=asked_reach(ref, body.allow, body.deny),
        definitions=body.definitions,
        explain=body.explain,
        explain_tools=body.explain_tools,
    )
    async with service.corpora.using(ref) as corpus:
        answered = await search_threads.run(answer, corpus.engine, caller.principal, asked)
    notes = [SearchNote(each.query, each.found) for each in answered.queries if not each.error]
    service.activity.searched(Who(caller.tenant, caller.key_id, "", caller.request_id), ref, notes)
    return Response(_body(answered).model_dump_json(), media_type="application/json")  # written once, checked never


def _body(answered: Answered) -> SearchAnswer:
    return SearchAnswer.model_construct(
        answers=[_query(each) for each in answered.queries],
        not_found=list(answered.not_found),
        named=list(map(found_tool, answered.named)),
        definitions=answered.definitions,
    )


def _query(answered: AnsweredQuery) -> QueryAnswer:
    return QueryAnswer.model_construct(
        query=answered.query,
        tools=list(map(found_tool, answered.found)),
        explanations=[ExplainedTool.model_validate(asdict(each)) for each in answered.explanations],
        error=answered.error,
    )


def found_tool(reference: ToolReference) -> FoundTool:
    return FoundTool.model_construct(
        name=reference.name,
        score=reference.score,
        confidence=reference.confidence,
        summary=reference.summary,
        runs_here=reference.is_callable,
    )
