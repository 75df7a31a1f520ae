"""What became of searches, as those say who made them: ``/v1/feedback``."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from toolsearch.api.activity import Feedback
from toolsearch.service.activity.activity import Who
from toolsearch.service.callers import ServiceCaller, caller_with
from toolsearch.service.feedback import learn
from toolsearch.service.routes.corpus_asked import corpus_asked
from toolsearch.service.service import Service, the_service
from toolsearch.threads import search_threads

router = APIRouter(tags=["activity"])


@router.post("/feedback", status_code=204, summary="Say whether a search has found the right tool")
async def feedback(
    body: Feedback,
    service: Annotated[Service, Depends(the_service)],
    caller: Annotated[ServiceCaller, Depends(caller_with("feedback", within_reach=True))],
) -> None:
    """What was right is ranked higher for such requests of the same tenant. What was wrong or missing is counted among
    the misses.
    """
    ref = corpus_asked(body, caller)
    async with service.corpora.using(ref) as corpus:
        tool = corpus.engine.view(caller.principal.reach).get(body.tool).name if body.tool is not None else ""
        if body.outcome == "right":
            day = int(service.clock() // 86_400)
            await search_threads.run(learn, corpus.engine, caller, body.query, tool, day)
            return
    service.activity.missed(Who(caller.tenant, caller.key_id, "", caller.request_id), ref, body.query, tool)
