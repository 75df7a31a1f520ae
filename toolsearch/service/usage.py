"""Usage and savings over time: ``/v1/usage``, ``/v1/savings``, those of a session, and the page."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import AwareDatetime

from toolsearch.api.activity import SavingsAnswer, SavingsRow, SessionSavings, UsageAnswer, UsageRow
from toolsearch.api.base import body_of
from toolsearch.service.activity.activity import Activity, costs_of
from toolsearch.service.keys.page import key_names
from toolsearch.service.pages import frame
from toolsearch.service.pages.filters import Plot, Series, Stack, stacked_bars
from toolsearch.service.pages.frame import PageRoute, visit_with
from toolsearch.service.sessions.sessions import Sessions
from toolsearch.service.web.answers import time_of
from toolsearch.service.web.callers import ServiceCaller, Visit, caller_with, whose_key
from toolsearch.service.web.parts import ServiceParts, the_service
from toolsearch.sessions.conversation import Conversation
from toolsearch.sessions.costs import ToolCosts
from toolsearch.storage.activity import By, FigureSum

router = APIRouter(tags=["activity"])
_WEEK_S: Final = 7 * 86_400.0
_TOTAL: Final = "total"

NOTES: Final = (
    "sent_tokens is counted: the lists that were handed out, with the searches and answers that a conversation keeps.",
    "written_tokens is counted: the models' own words of searches.",
    "all_tools_tokens is every definition in reach, once for each list: counted up to 2,000 tools, else an estimate.",
    "A list after a reply that only searched adds nothing to it: without a search it would not have been sent.",
    "saved_tokens is all_tools_tokens without sent_tokens and written_tokens.",
    "All tokens of requests through the proxy are estimates. Requests that pass unchanged are not counted.",
    "Over MCP a client asks for its list once and sends it with each request, so it saves more than these figures say.",
    "The rest of the conversation is left out. So is the provider's prompt cache; it makes repeated text cheaper.",
)

_Service = Annotated[ServiceParts, Depends(the_service)]
_Searcher = Annotated[ServiceCaller, Depends(caller_with("search", within_reach=True))]


@dataclass(frozen=True, slots=True)
class Asked:
    """The figures that are asked for."""

    by: By
    since: datetime
    until: datetime
    key: str | None
    session: str | None


async def asked(
    *,
    service: _Service,
    caller: _Searcher,
    by: By = "day",
    since: Annotated[AwareDatetime | None, Query(description="A week ago, unless it is given.")] = None,
    until: AwareDatetime | None = None,
    key: Annotated[str | None, Query(max_length=200)] = None,
    session: Annotated[str | None, Query(max_length=200)] = None,
    mine: Annotated[bool, Query(description="Only what this key did; without the scope admin, always.")] = False,
) -> Asked:
    now_s = service.clock()
    return Asked(
        by,
        since or time_of(now_s - _WEEK_S),
        until or time_of(now_s + 1),
        whose_key(caller, key, mine=mine),
        session,
    )


_Asked = Annotated[Asked, Depends(asked)]


@router.get("/usage", summary="Say what was used, by time, key or session")
async def usage(service: _Service, caller: _Searcher, asked: _Asked) -> UsageAnswer:
    sums = await _sums(service, caller, asked)
    rows = [_usage_row(group, amounts) for group, amounts in sums.items()]
    return UsageAnswer(
        by=asked.by, since=asked.since, until=asked.until, items=rows, total=_usage_row(_TOTAL, _added_up(sums))
    )


@router.get("/savings", summary="Say what searching for tools has saved, by time, key or session")
async def savings(service: _Service, caller: _Searcher, asked: _Asked) -> SavingsAnswer:
    sums = await _sums(service, caller, asked)
    rows = [_savings_row(group, amounts) for group, amounts in sums.items() if costs_of(amounts) != ToolCosts()]
    return SavingsAnswer(
        by=asked.by,
        since=asked.since,
        until=asked.until,
        items=rows,
        total=_savings_row(_TOTAL, _added_up(sums)),
        notes=list(NOTES),
    )


@router.get("/sessions/{session}/savings", summary="Say what one session has cost and saved, counted")
async def session_savings(session: str, service: _Service, caller: _Searcher) -> SessionSavings:
    """The same count as that of `/v1/savings`, with what only its session knows."""
    async with service[Sessions].using(caller, session) as opened:
        counted = await opened.run(_of_session)
    costs = await service[Activity].costs_of_session(caller.tenant, session)
    return body_of(SessionSavings, costs, session=session, **counted)


def _of_session(conversation: Conversation) -> dict[str, Any]:
    """The fields that only the session knows."""
    state = conversation.state
    return {
        "search_rounds": state.counters.search_rounds,
        "anticipated": state.counters.anticipated,
        "anticipated_calls": state.counters.anticipated_calls,
        "cache_breaks": state.sent.now.breaks,
        "is_estimate": conversation.host.counter.estimate or conversation.view.is_estimated,
    }


async def _sums(service: ServiceParts, caller: ServiceCaller, asked: Asked) -> dict[str, dict[str, float]]:
    """The amounts by group and name, up to now."""
    await service[Activity].figures.flush()
    found = await asyncio.to_thread(
        service.storage.figures.sums,
        caller.tenant,
        by=asked.by,
        since_s=asked.since.timestamp(),
        until_s=asked.until.timestamp(),
        key=asked.key,
        session=asked.session,
    )
    sums: dict[str, dict[str, float]] = {}
    for each in found:
        sums.setdefault(_group(asked.by, each.group), {})[each.name] = each.amount
    return sums


def _group(by: By, group: str) -> str:
    return time_of(float(group)).isoformat().replace("+00:00", "Z") if by in ("hour", "day") else group


def _added_up(sums: Mapping[str, Mapping[str, float]]) -> Mapping[str, float]:
    total: defaultdict[str, float] = defaultdict(float)
    for amounts in sums.values():
        for name, amount in amounts.items():
            total[name] += amount
    return total


def _usage_row(group: str, amounts: Mapping[str, float]) -> UsageRow:
    counts = {each.name: int(amounts.get(each.name, 0)) for each in fields(UsageRow) if each.name != "group"}
    return UsageRow(group=group, **counts)


def _savings_row(group: str, amounts: Mapping[str, float]) -> SavingsRow:
    return body_of(SavingsRow, costs_of(amounts), group=group)


page_router = APIRouter(route_class=PageRoute, include_in_schema=False)
_Visitor = Annotated[Visit, Depends(visit_with("search", within_reach=True))]
_DAY_S: Final = 86_400
PERIODS: Final = ((7, "7 days"), (30, "30 days"), (90, "90 days"))


@dataclass(frozen=True, slots=True)
class UsageRowShown:
    """The use of one key, one day or all of them."""

    label: str
    costs: ToolCosts
    searches: float
    weak: float
    calls: float
    failed: float
    refused: float

    @classmethod
    def of(cls, label: str, figures: Mapping[str, float]) -> UsageRowShown:
        return cls(
            label,
            costs_of(figures),
            figures.get("searches", 0.0),
            figures.get("weak_searches", 0.0),
            figures.get("calls", 0.0),
            figures.get("failed_calls", 0.0),
            figures.get("refused_calls", 0.0),
        )


@dataclass(frozen=True, slots=True)
class Drawn:
    """One plot with its title and its series."""

    title: str
    about: str
    series: tuple[Series, ...]
    plot: Plot


@page_router.get("/usage")
async def usage_page(
    request: Request, service: _Service, visit: _Visitor, days: Annotated[int, Query(ge=1, le=400)] = 30
) -> Response:
    await service[Activity].settled()
    is_admin = visit.caller.sees_all_keys
    today_s = int(service.clock()) // _DAY_S * _DAY_S
    since_s = today_s - (days - 1) * _DAY_S
    key = None if is_admin else visit.caller.key_id

    def sums(by: By) -> dict[str, Mapping[str, float]]:
        return _grouped(
            service.storage.figures.sums(visit.caller.tenant, by=by, since_s=since_s, until_s=today_s + _DAY_S, key=key)
        )

    by_day = await asyncio.to_thread(sums, "day")
    of_days = [
        UsageRowShown.of(f"{datetime.fromtimestamp(at_s, UTC):%-d %b}", by_day.get(str(at_s), {}))
        for at_s in range(since_s, today_s + 1, _DAY_S)
    ]
    by_key = await asyncio.to_thread(sums, "key") if is_admin else {}
    names = await key_names(service, visit, by_key)
    of_keys = [UsageRowShown.of(names.get(key_id, key_id), figures) for key_id, figures in by_key.items()]
    return frame.page(
        request,
        "usage.html",
        visit=visit,
        days=days,
        periods=PERIODS,
        total=UsageRowShown.of("all", _total(by_day.values())),
        plots=_plots(of_days),
        of_days=of_days,
        of_keys=sorted(of_keys, key=lambda each: (-each.costs.all_tools_tokens, each.label)),
        is_admin=is_admin,
    )


def _grouped(sums: Sequence[FigureSum]) -> dict[str, Mapping[str, float]]:
    found: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for each in sums:
        found[each.group][each.name] = each.amount
    return dict(found)


def _total(parts: Iterable[Mapping[str, float]]) -> Mapping[str, float]:
    total = Counter[str]()
    for part in parts:
        total.update(part)
    return total


def _plots(days: Sequence[UsageRowShown]) -> list[Drawn]:
    return [
        _drawn(
            "Tokens of tools",
            "What models were sent, and what they would have been sent without a search.",
            (Series("sent", "sent"), Series("saved", "good")),
            [Stack(day.label, (day.costs.sent_tokens, max(0, day.costs.saved_tokens))) for day in days],
        ),
        _drawn(
            "Searches",
            "Those with a good answer, and those with a weak one or none.",
            (Series("well answered", "good"), Series("weak", "weak")),
            [Stack(day.label, (day.searches - day.weak, day.weak)) for day in days],
        ),
        _drawn(
            "Calls",
            "Those that ended well or with the caller, and those that were refused or failed.",
            (Series("good", "good"), Series("refused", "refused"), Series("failed", "failed")),
            [Stack(day.label, (day.calls - day.failed - day.refused, day.refused, day.failed)) for day in days],
        ),
    ]


def _drawn(title: str, about: str, series: tuple[Series, ...], stacks: Sequence[Stack]) -> Drawn:
    return Drawn(title, about, series, stacked_bars(stacks, series))
