"""The playground: one query by every strategy side by side, and why an entry is found or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from fastapi import APIRouter, Depends, Query, Request, Response

from toolsearch.access.scopes import includes
from toolsearch.errors import ToolSearchError
from toolsearch.service.corpora.asked import CorpusPath, choices, opened
from toolsearch.service.corpora.corpus import Corpus
from toolsearch.service.pages import frame
from toolsearch.service.pages.filters import HOPELESS, outcome
from toolsearch.service.pages.frame import PageRoute, visit_with
from toolsearch.service.web.callers import Visit
from toolsearch.service.web.parts import ServiceParts, the_service
from toolsearch.threads import search_threads
from toolsearch.tools.definition import FOUND_KINDS, EntryKind, ToolReference
from toolsearch_indexes.documents import Explanation
from toolsearch_indexes.queries import Ranking

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_Service = Annotated[ServiceParts, Depends(the_service)]
_Searcher = Annotated[Visit, Depends(visit_with("search", within_reach=True))]
_Words = Annotated[str, Query(max_length=2_000)]
_Limit = Annotated[int, Query(ge=1, le=25)]
_Kind: TypeAlias = Literal["found", "tool", "skill", "prompt", "resource"]
DEFAULT_LIMIT: Final = 5

ABOUT: Final = {
    "hybrid": "words and meaning together",
    "keyword": "words of names and descriptions",
    "semantic": "meaning, by vectors",
    "regex": "the query as a pattern",
}


@dataclass(frozen=True, slots=True)
class StrategyAnswer:
    """The answer of one strategy. *error* says why there is none. *best* explains the first of *tools*."""

    strategy: Ranking
    tools: tuple[ToolReference, ...] = ()
    best: Explanation | None = None
    error: str = ""

    @property
    def about(self) -> str:
        return ABOUT[self.strategy]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why some strategies find a tool at one *place*, or do not find it."""

    place: int | None
    text: str
    is_hopeless: bool
    strategies: tuple[str, ...]


@router.get("/playground")
async def playground(
    request: Request,
    service: _Service,
    visit: _Searcher,
    q: _Words = "",
    corpus: CorpusPath = "",
    limit: _Limit = 5,
    kind: _Kind = "found",
) -> Response:
    known = await choices(service, visit) if includes(visit.caller.scopes, "read-catalog") else []
    chosen = corpus or (known[0] if known else "catalog/default")
    found: list[StrategyAnswer] = []
    if q.strip() and (known or corpus):
        async with opened(service, visit, chosen) as used:
            found = await search_threads.run(_by_each_strategy, used, visit, q, limit, kind)
    return frame.page(
        request,
        "playground.html",
        visit=visit,
        query=q,
        corpus=chosen,
        corpora=known,
        limit=limit,
        kind=kind,
        found=found,
    )


@router.get("/playground/results")
async def results(
    request: Request,
    service: _Service,
    visit: _Searcher,
    q: _Words,
    corpus: CorpusPath,
    limit: _Limit = 5,
    kind: _Kind = "found",
) -> Response:
    """The part of the playground that changes as one types."""
    found: list[StrategyAnswer] = []
    if q.strip():
        async with opened(service, visit, corpus) as used:
            found = await search_threads.run(_by_each_strategy, used, visit, q, limit, kind)
    return frame.page(request, "playground_results.html", visit=visit, query=q, corpus=corpus, limit=limit, found=found)


@router.get("/playground/why")
async def why(
    request: Request, service: _Service, visit: _Searcher, tool: _Words, corpus: CorpusPath, q: _Words = ""
) -> Response:
    """Where each strategy places one tool, or why it does not find it."""
    async with opened(service, visit, corpus) as used:
        strategies = used.engine.strategies
        explained = (
            await search_threads.run(lambda: [_explained(used, visit, q, tool, each) for each in strategies])
            if q.strip() and tool.strip()
            else []
        )
    scored = [one for one in explained if isinstance(one, Explanation)]
    return frame.page(
        request,
        "why.html",
        visit=visit,
        query=q,
        corpus=corpus,
        tool=tool,
        reasons=_reasons(explained),
        words=next((one for one in scored if one.words or one.missing), None),
        scores=[one for one in scored if one.raw or one.cosine is not None or one.score],
    )


@router.get("/playground/score")
async def score(
    request: Request,
    service: _Service,
    visit: _Searcher,
    tool: _Words,
    corpus: CorpusPath,
    q: _Words,
    strategy: Ranking,
) -> Response:
    """The explanation of one score, for a result that is opened."""
    async with opened(service, visit, corpus) as used:
        one = await search_threads.run(_explained, used, visit, q, tool, strategy)
    return frame.page(request, "score.html", visit=visit, one=one)


def _reasons(explained: Sequence[Explanation | StrategyAnswer]) -> list[Reason]:
    """Each reason once, with all strategies that have it."""
    found: dict[tuple[int | None, str, bool], list[str]] = {}
    for one in explained:
        if isinstance(one, Explanation):
            reason = one.place, outcome(one), one.outcome in HOPELESS
        else:
            reason = None, one.error, True
        found.setdefault(reason, []).append(one.strategy)
    return [Reason(*reason, tuple(strategies)) for reason, strategies in found.items()]


def _by_each_strategy(corpus: Corpus, visit: Visit, query: str, limit: int, kind: _Kind) -> list[StrategyAnswer]:
    kinds = FOUND_KINDS if kind == "found" else (kind,)
    return [_by(corpus, visit, query, limit, kinds, strategy) for strategy in corpus.engine.strategies]


def _by(
    corpus: Corpus, visit: Visit, query: str, limit: int, kinds: Sequence[EntryKind], strategy: Ranking
) -> StrategyAnswer:
    engine, principal = corpus.engine, corpus.seen_by(visit.caller)
    try:
        tools = engine.search(query, limit=limit, strategy=strategy, principal=principal, kinds=kinds)
        best = engine.explain(query, tools[0].name, strategy=strategy, principal=principal) if tools else None
    except ToolSearchError as error:
        return StrategyAnswer(strategy, error=str(error))
    return StrategyAnswer(strategy, tuple(tools), best)


def _explained(corpus: Corpus, visit: Visit, query: str, tool: str, strategy: Ranking) -> Explanation | StrategyAnswer:
    try:
        return corpus.engine.explain(query, tool, strategy=strategy, principal=corpus.seen_by(visit.caller))
    except ToolSearchError as error:
        return StrategyAnswer(strategy, error=str(error))
