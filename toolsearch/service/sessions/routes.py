"""Sessions of agents: ``/v1/sessions``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse

from toolsearch.api.base import Page
from toolsearch.api.sessions import (
    ActiveTool,
    ChosenTools,
    DeferredTool,
    Evicted,
    Names,
    NewSession,
    NewTurn,
    SessionBody,
    SessionBudget,
    SessionCounts,
    SessionCreated,
    TurnBegun,
)
from toolsearch.service.activity.activity import Activity, Who
from toolsearch.service.corpora.asked import corpus_asked
from toolsearch.service.keys.keys import SessionTokens
from toolsearch.service.sessions.sessions import KeptSession, SessionFigures, SessionPlan, Sessions
from toolsearch.service.web.answers import Paging, paging, time_of
from toolsearch.service.web.callers import ServiceCaller, caller_with
from toolsearch.service.web.limits import Limits
from toolsearch.service.web.parts import ServiceParts, public_url, the_service
from toolsearch.service.web.paths import mcp_path
from toolsearch.session import RequestTools, anticipated_entries
from toolsearch.sessions import unit_of_work
from toolsearch.sessions.conversation import Conversation
from toolsearch.tools.summaries import summary_of
from toolsearch.wire.capabilities import Cloud, Endpoint
from toolsearch.wire.formats import WireFormat

router = APIRouter(tags=["sessions"])
_Service = Annotated[ServiceParts, Depends(the_service)]
_Searcher = Annotated[ServiceCaller, Depends(caller_with("search", within_reach=True))]
_Paging = Annotated[Paging, Depends(paging)]


@router.post("/sessions", status_code=201, summary="Open a session: a tool-searching endpoint for one agent")
async def create(body: NewSession, request: Request, service: _Service, caller: _Searcher) -> SessionCreated:
    corpus = corpus_asked(body, caller)
    plan = SessionPlan(
        corpus, tuple(body.allow), tuple(body.deny), body.budget.tools, body.budget.tokens, body.exposure
    )
    await service[Limits].require_room(caller.tenant, "sessions")
    kept = await service[Sessions].create(caller, plan, pins=tuple(body.pins), ttl_s=body.ttl_s)
    token = service[SessionTokens].make(caller.tenant, kept.id, caller.key_id, kept.expires_s) if body.url_token else ""
    return SessionCreated(
        id=kept.id,
        mcp_url=public_url(request, mcp_path(kept.id, token)),
        tools_url=public_url(request, f"/v1/sessions/{kept.id}/tools"),
        expires_at=time_of(kept.expires_s),
    )


@router.get("/sessions", summary="List the sessions that have not expired")
async def list_sessions(service: _Service, caller: _Searcher, paged: _Paging) -> Page[SessionBody]:
    """Your own; with the scope admin and no rules, those of all keys."""
    found = await service[Sessions].page(caller, after=paged.after, limit=paged.fetch)
    figures = [await service[Sessions].figures(caller, kept) for kept in found[: paged.limit]]
    bodies = {kept.id: _body(kept, each) for kept, each in zip(found, figures, strict=False)}
    return paged.page(found, lambda kept: kept.id, lambda kept: bodies[kept.id])


@router.get("/sessions/{session}", summary="Say what a session is over, and how much it has discovered")
async def get(session: str, service: _Service, caller: _Searcher) -> SessionBody:
    kept = await service[Sessions].get(caller, session)
    return _body(kept, await service[Sessions].figures(caller, kept))


@router.delete("/sessions/{session}", status_code=204, summary="End a session")
async def delete(session: str, service: _Service, caller: _Searcher) -> None:
    await service[Sessions].delete(caller, session)


@router.get(
    "/sessions/{session}/tools",
    summary="Give the tools of the next model request, to be handed to the SDK's call as they are",
    response_model=dict[str, Any],
)
async def tools(
    session: str,
    service: _Service,
    caller: _Searcher,
    wire_format: Annotated[WireFormat, Query(alias="format")] = "openai",
    model: Annotated[str, Query(max_length=200)] = "",
    cloud: Cloud = "",
) -> JSONResponse:
    """The search tool comes first, then what is pinned and what was found. Ask once for each request of the model:
    that is what savings count. The header ``x-toolsearch-tools`` says how many tools are in reach, and how many of them
    the model reads, as ``412->6``.
    """
    Endpoint(wire_format, model, cloud)
    async with service[Sessions].using(caller, session) as opened:
        asked = partial(opened.session.request, wire_format, model=model, cloud=cloud)
        made = await opened.run(partial(_requested, asked))
    service[Activity].requested(
        Who(caller.tenant, caller.key_id, session, caller.request_id),
        sent_tokens=made.sent_tokens,
        all_tools_tokens=made.all_tools_tokens,
    )
    return JSONResponse(
        made.given, headers={"x-toolsearch-tools": f"{made.in_reach}->{made.listed}", "cache-control": "no-store"}
    )


@router.post("/sessions/{session}/expand", summary="Show tools by name, without a search")
async def expand(session: str, body: Names, service: _Service, caller: _Searcher) -> ChosenTools:
    return await _choose(service, caller, session, body, unit_of_work.expand)


@router.post("/sessions/{session}/pin", summary="Show tools by name, and never evict them")
async def pin(session: str, body: Names, service: _Service, caller: _Searcher) -> ChosenTools:
    return await _choose(service, caller, session, body, unit_of_work.pin)


@router.post("/sessions/{session}/unpin", summary="Let pinned tools be evicted as others are")
async def unpin(session: str, body: Names, service: _Service, caller: _Searcher) -> ChosenTools:
    return await _choose(service, caller, session, body, unit_of_work.unpin)


@router.post("/sessions/{session}/evict", summary="Forget tools that were discovered")
async def evict(session: str, body: Names, service: _Service, caller: _Searcher) -> ChosenTools:
    """Pins and tools that are being called stay. What the model was sent shrinks only once its provider's cache is
    lost anyway.
    """
    return await _choose(service, caller, session, body, unit_of_work.forget)


@router.post("/sessions/{session}/begin-turn", summary="Say that the user has spoken again")
async def begin_turn(session: str, service: _Service, caller: _Searcher, body: NewTurn | None = None) -> TurnBegun:
    """Tools that the user's words surely ask for are shown at once, so that the model need not search for them."""
    async with service[Sessions].using(caller, session) as opened:
        return await opened.run(partial(_begun, turn=body or NewTurn()))


def _begun(conversation: Conversation, *, turn: NewTurn) -> TurnBegun:
    endpoint = Endpoint(turn.format, turn.model, turn.cloud) if turn.format else None
    evicted = conversation.begin_turn()
    return TurnBegun(names=evicted, messages=anticipated_entries(conversation, turn.said, endpoint))


@router.post("/sessions/{session}/end-turn", summary="Say that the model has answered the user")
async def end_turn(session: str, service: _Service, caller: _Searcher) -> Evicted:
    """What is over the budget, or has been idle for too long, is evicted now."""
    async with service[Sessions].using(caller, session) as opened:
        return Evicted(names=await opened.run(Conversation.end_turn))


@router.post(
    "/sessions/{session}/compacted", status_code=204, summary="Say that earlier messages were dropped or rewritten"
)
async def compacted(session: str, service: _Service, caller: _Searcher) -> None:
    async with service[Sessions].using(caller, session) as opened:
        await opened.run(Conversation.compacted)


@router.get("/sessions/{session}/active", summary="List the tools that a session shows, as they came")
async def active(session: str, service: _Service, caller: _Searcher) -> Page[ActiveTool]:
    async with service[Sessions].using(caller, session) as opened:
        return Page(items=await opened.run(active_tools))


@router.get("/sessions/{session}/deferred", summary="List the tools in reach that a session does not show yet")
async def deferred(session: str, service: _Service, caller: _Searcher, paged: _Paging) -> Page[DeferredTool]:
    async with service[Sessions].using(caller, session) as opened:
        items = await opened.run(partial(_deferred, after=paged.after, limit=paged.fetch))
    return paged.page(items, lambda tool: tool.name, lambda tool: tool)


async def _choose(
    service: ServiceParts,
    caller: ServiceCaller,
    session: str,
    body: Names,
    choose: Callable[[Conversation, list[str]], unit_of_work.Chosen],
) -> ChosenTools:
    async with service[Sessions].using(caller, session) as opened:
        chosen = await opened.run(lambda conversation: choose(conversation, body.names))
    return ChosenTools(names=list(chosen.names), not_found=list(chosen.not_found), too_long=list(chosen.too_long))


@dataclass(frozen=True, slots=True)
class _Request:
    """The arguments *given* for one request of a model, the number of tools in reach, and of tools that the model
    reads.

    For the tokens of all tools in reach see `ToolCosts`.
    """

    given: RequestTools
    in_reach: int
    listed: int
    sent_tokens: int
    all_tools_tokens: int


def _requested(ask: Callable[[], RequestTools], conversation: Conversation) -> _Request:
    state, view = conversation.state, conversation.view
    before = replace(state.counters)
    given = ask()
    read = state.sent.tool_list().within(conversation.principal.reach, conversation.search_definition())
    sent_tokens = state.counters.sent_tokens - before.sent_tokens
    is_search_round = state.counters.search_rounds > before.search_rounds
    all_tools_tokens = 0 if is_search_round else view.request_tokens
    return _Request(given, len(view.names), len(read.listed), sent_tokens, all_tools_tokens)


def active_tools(conversation: Conversation) -> list[ActiveTool]:
    pins, view = conversation.state.pins, conversation.view
    found = ((view.find(name), known) for name, known in conversation.state.discovered.tools.items())
    return [
        ActiveTool(
            name=tool.name,
            summary=summary_of(tool.definition),
            tokens=known.tokens,
            is_pinned=tool.name in pins,
            is_called=known.is_called,
            used_at=time_of(known.used_s),
        )
        for tool, known in found
        if tool is not None
    ]


def _deferred(conversation: Conversation, *, after: str, limit: int) -> list[DeferredTool]:
    view, shown = conversation.view, conversation.state.discovered
    names = [name for name in view.names if name > after and name not in shown][:limit]
    return [
        DeferredTool(
            name=tool.name,
            summary=summary_of(tool.definition),
            server=tool.definition.server,
        )
        for tool in map(view.find, names)
        if tool is not None
    ]


def _body(kept: KeptSession, figures: SessionFigures | None) -> SessionBody:
    plan = kept.plan
    return SessionBody(
        id=kept.id,
        catalog=plan.corpus.name if plan.corpus.kind == "catalog" else None,
        toolset=plan.corpus.name if plan.corpus.kind == "toolset" else None,
        allow=list(plan.allow),
        deny=list(plan.deny),
        budget=SessionBudget(tools=plan.max_tools, tokens=plan.max_tokens),
        exposure=plan.exposure,
        key=kept.key,
        created_at=time_of(kept.created_s),
        expires_at=time_of(kept.expires_s),
        used_at=time_of(figures.used_s) if figures else None,
        counts=_counts(figures) if figures else None,
    )


def _counts(figures: SessionFigures) -> SessionCounts:
    counters = figures.counters
    return SessionCounts(
        discovered=figures.discovered,
        pinned=figures.pinned,
        deferred=figures.deferred,
        searches=counters.searches,
        calls=counters.calls,
        failed_calls=counters.failed_calls,
    )
