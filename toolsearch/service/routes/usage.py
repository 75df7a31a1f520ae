"""Usage and savings: ``/v1/usage`` and ``/v1/savings``."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query
from pydantic import AwareDatetime

from toolsearch.api.activity import SavingsAnswer, SavingsRow, SessionSavings, Usage, UsageRow
from toolsearch.service.activity.costs import ToolCosts
from toolsearch.service.callers import ServiceCaller, caller_with
from toolsearch.service.routes.whose import whose_key
from toolsearch.service.service import Service, the_service
from toolsearch.service.times import time_of
from toolsearch.sessions.conversation import Conversation
from toolsearch.storage.figures import By

router = APIRouter(tags=["activity"])

_WEEK_S: Final = 7 * 86_400.0
_TOTAL: Final = "total"

NOTES: Final = (
    "sent_tokens is counted: the lists that were handed out, with the searches and answers that a conversation keeps.",
    "written_tokens is counted: what models wrote in order to search.",
    "all_tools_tokens is every definition in reach, once for each list: counted up to 2,000 tools, else an estimate.",
    "A list that follows a reply which only searched adds nothing to it: without a search it would not have been sent.",
    "saved_tokens is all_tools_tokens without sent_tokens and written_tokens.",
    "Over MCP a client asks for its list once and sends it with each request, so more is saved than is said here.",
    "Left out are the rest of the conversation and the provider's prompt cache, which makes repeated text cheaper.",
)

_Service = Annotated[Service, Depends(the_service)]
_Searcher = Annotated[ServiceCaller, Depends(caller_with("search", within_reach=True))]


@dataclass(frozen=True, slots=True)
class Asked:
    """Which figures are asked for."""

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
async def usage(service: _Service, caller: _Searcher, asked: _Asked) -> Usage:
    sums = await _sums(service, caller, asked)
    rows = [_usage_row(group, amounts) for group, amounts in sums.items()]
    return Usage(
        by=asked.by, since=asked.since, until=asked.until, items=rows, total=_usage_row(_TOTAL, _added_up(sums))
    )


@router.get("/savings", summary="Say what searching for tools has saved, by time, key or session")
async def savings(service: _Service, caller: _Searcher, asked: _Asked) -> SavingsAnswer:
    sums = await _sums(service, caller, asked)
    rows = [_savings_row(group, amounts) for group, amounts in sums.items() if ToolCosts.of(amounts) != ToolCosts()]
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
    async with service.sessions.using(caller, session) as opened:
        rounds, breaks, is_estimate = await opened.run(_of_session)
    costs = await service.activity.costs_of_session(caller.tenant, session)
    return SessionSavings(
        session=session, search_rounds=rounds, cache_breaks=breaks, is_estimate=is_estimate, **_costs(costs)
    )


def _of_session(conversation: Conversation) -> tuple[int, int, bool]:
    """How many requests are there for a search alone, how many lists have changed, and whether tokens are estimated."""
    state = conversation.state
    is_estimate = conversation.host.counter.estimate or conversation.view.is_estimated
    return state.counters.search_rounds, state.sent.now.breaks, is_estimate


def _costs(costs: ToolCosts) -> dict[str, Any]:
    """The fields of bodies about costs."""
    return {**asdict(costs), "saved_tokens": costs.saved_tokens, "saved_share": costs.saved_share}


async def _sums(service: Service, caller: ServiceCaller, asked: Asked) -> dict[str, dict[str, float]]:
    """The amounts by group and name, with what was done until now."""
    await service.activity.figures.flush()
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
    names = UsageRow.model_fields.keys() - {"group"}
    return UsageRow.model_validate({"group": group, **{name: int(amounts.get(name, 0)) for name in names}})


def _savings_row(group: str, amounts: Mapping[str, float]) -> SavingsRow:
    return SavingsRow(group=group, **_costs(ToolCosts.of(amounts)))
