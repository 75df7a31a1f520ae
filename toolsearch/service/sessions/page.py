"""The pages of agents' sessions: discovered and active tools, budget, and savings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request, Response

from toolsearch.api.sessions import ActiveTool
from toolsearch.discovery.discovered_tools import Budget
from toolsearch.service.activity.activity import Activity
from toolsearch.service.keys.page import key_names
from toolsearch.service.pages import frame
from toolsearch.service.pages.frame import PageRoute, SentForm, see_other, sent_with, visit_with
from toolsearch.service.sessions.routes import active_tools
from toolsearch.service.sessions.sessions import KeptSession, SessionFigures, Sessions
from toolsearch.service.web.callers import Visit
from toolsearch.service.web.parts import ServiceParts, the_service
from toolsearch.sessions.conversation import Conversation

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_Service = Annotated[ServiceParts, Depends(the_service)]
_Searcher = Annotated[Visit, Depends(visit_with("search", within_reach=True))]
_Sent = Annotated[SentForm, Depends(sent_with("search", within_reach=True))]
_SESSIONS: Final = 50  # sessions on a page


@dataclass(frozen=True, slots=True)
class ListedSession:
    kept: KeptSession
    figures: SessionFigures | None


@dataclass(frozen=True, slots=True)
class SessionContents:
    """*deferred* tools are in reach, and found by a search only."""

    tools: list[ActiveTool]
    deferred: int
    budget: Budget
    is_estimate: bool

    @property
    def tokens(self) -> int:
        return sum(tool.tokens for tool in self.tools)


@router.get("/sessions")
async def sessions(
    request: Request, service: _Service, visit: _Searcher, after: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    page = await service[Sessions].page(visit.caller, after=after, limit=_SESSIONS)
    rows = [ListedSession(kept, await service[Sessions].figures(visit.caller, kept)) for kept in page]
    return frame.page(
        request, "sessions.html", visit=visit, rows=rows, next=page[-1].id if len(page) == _SESSIONS else ""
    )


@router.get("/sessions/{session}")
async def session(request: Request, service: _Service, visit: _Searcher, session: str) -> Response:
    async with service[Sessions].using(visit.caller, session) as used:
        contents = await used.run(_contents)
        kept = used.kept
    costs = await service[Activity].costs_of_session(visit.caller.tenant, session)
    names = await key_names(service, visit, [kept.key])
    return frame.page(
        request,
        "session.html",
        visit=visit,
        kept=kept,
        contents=contents,
        costs=costs,
        names=names,
        now_s=service.clock(),
    )


@router.post("/sessions/{session}/end")
async def end(service: _Service, sent: _Sent, session: str) -> Response:
    await service[Sessions].delete(sent.visit.caller, session)
    return see_other(f"{frame.ROOT}/sessions")


def _contents(conversation: Conversation) -> SessionContents:
    view, state = conversation.view, conversation.state
    tools = active_tools(conversation)
    deferred = len(view.names) - len(tools)
    is_estimate = conversation.host.counter.estimate or view.is_estimated
    return SessionContents(tools, deferred, state.discovered.budget, is_estimate)
