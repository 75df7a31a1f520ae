"""Searching: ``/v1/search``, ``/v1/sessions/{session}/search``, and feedback of callers: ``/v1/feedback``.

A request may have several queries, names to look up, and a tool whose place is explained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Response

from toolsearch.access.principals import Principal
from toolsearch.access.reach import Reach
from toolsearch.api.activity import Feedback
from toolsearch.api.base import body_of
from toolsearch.api.sessions import (
    ExplainedTool,
    FoundInSession,
    FoundTool,
    QueryAnswer,
    SearchAnswer,
    SearchRequest,
    SessionFound,
    SessionSearch,
    SessionSearchAnswer,
)
from toolsearch.catalog.catalog import Catalog
from toolsearch.discovery.answers import AnsweredQuery
from toolsearch.discovery.view import View
from toolsearch.engine import ToolSearch
from toolsearch.errors import BadPatternError, BadQueryError
from toolsearch.service.activity.activity import Activity, SearchNote, Who
from toolsearch.service.calls.calls import Calls
from toolsearch.service.corpora.asked import asked_reach, corpus_asked
from toolsearch.service.corpora.corpora import Corpora
from toolsearch.service.sessions.sessions import Sessions
from toolsearch.service.web.callers import ServiceCaller, caller_with
from toolsearch.service.web.direct_route import DirectRoute
from toolsearch.service.web.parts import ServiceParts, the_service
from toolsearch.threads import search_threads
from toolsearch.tools.definition import ToolReference
from toolsearch.tools.summaries import reference_to
from toolsearch.wire.formats import WireFormat, render_definition
from toolsearch_indexes.documents import Explanation
from toolsearch_indexes.index import ToolSearchIndex

_FEW: Final = 1_000  # skills, prompts and resources that are searched in about a millisecond


@dataclass(frozen=True, slots=True)
class QueryResult:
    query: str
    found: Sequence[ToolReference] = ()
    explanations: Sequence[Explanation] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class SearchResults:
    """An answer. *named* and *not_found* are for the names; *definitions* has every tool of the answer, by name."""

    queries: Sequence[QueryResult]
    named: Sequence[ToolReference]
    not_found: Sequence[str]
    definitions: dict[str, dict[str, Any]]


def answer(engine: ToolSearch, principal: Principal, asked: SearchRequest, reach: Reach) -> SearchResults:
    """Answer all that is asked, within *reach*, which is that of the rules in *asked*.

    One of several queries that cannot be searched for does not spoil the others.
    Raises BadQueryError or BadPatternError for a single query, and for a server that is not in reach.
    """
    view, kinds = engine.view(reach & principal.reach), asked.kinds
    search = _Search(engine, principal, asked, reach)
    queries = [search.answered(query, may_fail=len(asked.queries) == 1) for query in asked.queries]
    there = ((name, view.find_entry(name)) for name in dict.fromkeys(asked.names))
    entries = {name: entry if entry and entry.definition.kind in kinds else None for name, entry in there}
    named = [reference_to(entry) for entry in entries.values() if entry is not None]
    shown = dict.fromkeys(each.name for each in (*(found for query in queries for found in query.found), *named))
    return SearchResults(
        queries,
        named,
        [name for name, entry in entries.items() if entry is None],
        _definitions(view, shown, asked.definitions) if asked.definitions is not None else {},
    )


def is_quick(engine: ToolSearch, principal: Principal, asked: SearchRequest, reach: Reach) -> bool:
    """Whether the event loop itself may give the `answer`. With many clients at once, handing searches of a millisecond
    to threads takes longer than the searches. Raises BadQueryError as `answer` does.
    """
    index, usage = engine.index, engine.usage
    return (
        len(asked.queries) == 1
        and not (asked.names or asked.explain or asked.explain_tools or asked.server or asked.definitions)
        and (usage is None or usage.is_at_hand(principal.id))
        and len(engine.catalog.contents) <= _FEW
        and isinstance(index, ToolSearchIndex)
        and index.is_quick(
            asked.queries[0], asked.strategy or engine.strategies[0], engine.view(reach & principal.reach).selection
        )
    )


@dataclass(frozen=True, slots=True)
class _Search:
    engine: ToolSearch
    principal: Principal
    asked: SearchRequest
    reach: Reach

    def answered(self, query: str, *, may_fail: bool) -> QueryResult:
        try:
            return self._answered(query)
        except (BadQueryError, BadPatternError) as error:
            if may_fail:
                raise
            return QueryResult(query, error=str(error))

    def _answered(self, query: str) -> QueryResult:
        asked = self.asked
        found = self.engine.search(
            query,
            limit=asked.limit,
            strategy=asked.strategy,
            reach=self.reach,
            server=asked.server,
            principal=self.principal,
            kinds=asked.kinds,
        )
        explained = [*(each.name for each in found if asked.explain), *asked.explain_tools]
        return QueryResult(query, found, [self._explained(query, name) for name in dict.fromkeys(explained)])

    def _explained(self, query: str, name: str) -> Explanation:
        asked = self.asked
        return self.engine.explain(
            query,
            name,
            strategy=asked.strategy,
            reach=self.reach,
            server=asked.server,
            principal=self.principal,
        )


def _definitions(view: View, names: Sequence[str] | dict[str, None], wire_format: WireFormat) -> dict[str, Any]:
    found = {name: view.find(name) for name in names}
    return {name: render_definition(tool.definition, wire_format) for name, tool in found.items() if tool is not None}


def learn(engine: ToolSearch, caller: ServiceCaller, query: str, tool: str, day: int) -> None:
    """Note that *tool* served *query*. All feedback of one key in a day counts as one session, so its weight stays
    small.
    """
    if engine.usage is None:
        return
    session = f"feedback {caller.key_id} {day}"
    engine.usage.discovered(caller.tenant, session, engine.vocabulary.terms_of(query), [tool])
    engine.usage.called(caller.tenant, session, tool)


router = APIRouter(tags=["search"], route_class=DirectRoute)
_Service = Annotated[ServiceParts, Depends(the_service)]
_Searcher = Annotated[ServiceCaller, Depends(caller_with("search", within_reach=True))]


@router.post(
    "/search", summary="Search for tools and skills, with several queries at once", response_model=SearchAnswer
)
async def search(body: SearchRequest, service: _Service, caller: _Searcher) -> Response:
    """Nothing is kept of the search but figures, and queries without a good answer: see misses. The answer to a single
    query that cannot be searched for is an error; of several, the others are answered.
    """
    ref = corpus_asked(body, caller)
    reach = asked_reach(ref, body.allow, body.deny)
    async with service[Corpora].using(ref) as corpus:
        await corpus.listed(caller)
        asked = (corpus.engine, corpus.seen_by(caller), body, reach)
        # A tool that is found for the first time is read from the store, which may be far away if it is shared.
        stays = not service.storage.is_shared and is_quick(*asked)
        answered = answer(*asked) if stays else await search_threads.run(answer, *asked)
    notes = [SearchNote(each.query, each.found) for each in answered.queries if not each.error]
    service[Activity].searched(Who(caller.tenant, caller.key_id, "", caller.request_id), ref, notes)
    # Written directly, without validation.
    return Response(_body(answered).model_dump_json(by_alias=True), media_type="application/json")


def _body(answered: SearchResults) -> SearchAnswer:
    return SearchAnswer.model_construct(
        answers=[_query(each) for each in answered.queries],
        not_found=list(answered.not_found),
        named=list(map(found_tool, answered.named)),
        definitions=answered.definitions,
    )


def _query(answered: QueryResult) -> QueryAnswer:
    return QueryAnswer.model_construct(
        query=answered.query,
        tools=list(map(found_tool, answered.found)),
        explanations=[body_of(ExplainedTool, each) for each in answered.explanations],
        error=answered.error,
    )


def found_tool(reference: ToolReference) -> FoundTool:
    return body_of(FoundTool, reference)


session_router = APIRouter(tags=["sessions"])


@session_router.post(
    "/sessions/{session}/search", summary="Search, and add what is found to what the session shows", name="search"
)
async def search_in_session(
    session: str, body: SessionSearch, service: _Service, caller: _Searcher
) -> SessionSearchAnswer:
    arguments = body.model_dump(exclude_none=True)
    async with service[Sessions].using(caller, session) as opened:
        answered = await service[Calls].search(caller, opened, arguments)
        catalog = opened.corpus.engine.catalog
    text = "\n".join(block["text"] for block in answered.output.content)
    return SessionSearchAnswer(text=text, answers=[_found(each, catalog) for each in answered.queries])


def _found(answer: AnsweredQuery, catalog: Catalog) -> SessionFound:
    """*catalog* says what the service runs: to a session its caller's tools are callable, too."""
    return SessionFound(
        query=answer.query,
        tools=[
            body_of(
                FoundInSession,
                tool.reference,
                is_callable=(known := catalog.find_entry(tool.name)) is not None and known.is_callable,
                fit=tool.fit,
                is_loaded=tool.is_loaded,
                copies=tool.copies,
            )
            for tool in answer.tools
        ],
        not_found=list(answer.missing),
        too_long=list(answer.too_long),
        error=answer.error,
    )


feedback_router = APIRouter(tags=["activity"])


@feedback_router.post("/feedback", status_code=204, summary="Say whether a search has found the right tool")
async def feedback(
    body: Feedback,
    service: Annotated[ServiceParts, Depends(the_service)],
    caller: Annotated[ServiceCaller, Depends(caller_with("feedback", within_reach=True))],
) -> None:
    """What was right is ranked higher for such requests of the same tenant. What was wrong or missing is counted among
    the misses.
    """
    ref = corpus_asked(body, caller)
    async with service[Corpora].using(ref) as corpus:
        view = corpus.view_of(caller)
        tool = view.get_entry(body.tool).name if body.tool is not None else ""
        if body.outcome == "right":
            day = int(service.clock() // 86_400)
            await search_threads.run(learn, corpus.engine, caller, body.query, tool, day)
            return
    service[Activity].missed(Who(caller.tenant, caller.key_id, "", caller.request_id), ref, body.query, tool)
