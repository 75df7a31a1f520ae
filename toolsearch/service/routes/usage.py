"""Usage and savings: ``/v1/usage`` and ``/v1/savings``."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query
from pydantic import AwareDatetime

from toolsearch.api.activity import SavingsAnswer, SavingsRow, SessionSavings, Usage, UsageRow
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
    "all_tools_tokens is an estimate from the lengths of all definitions in reach, once for each list.",
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
    rows = [_savings_row(group, amounts) for group, amounts in sums.items() if amounts.get("requests")]
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
    """The first time, every definition in reach is counted, which takes a while for thousands."""
    async with service.sessions.using(caller, session) as opened:
        found = await opened.run(Conversation.savings)
    return SessionSavings(
        session=session,
        requests=found.requests,
        search_rounds=found.search_rounds,
        sent_tokens=found.sent_tokens,
        written_tokens=found.written_tokens,
        all_tools_tokens=found.all_tools_tokens,
        saved_tokens=found.saved_tokens,
        saved_share=found.saved_share,
        cache_breaks=found.cache_breaks,
        is_estimate=found.is_estimate,
    )


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
    sent, everything = int(amounts.get("sent_tokens", 0)), int(amounts.get("all_tools_tokens", 0))
    return SavingsRow(
        group=group,
        requests=int(amounts.get("requests", 0)),
        sent_tokens=sent,
        all_tools_tokens=everything,
        saved_tokens=everything - sent,
        saved_share=(everything - sent) / everything if everything else 0.0,
    )
