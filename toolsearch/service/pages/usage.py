"""Savings and usage over time: the whole tenant's for administrators, one's own key's for others."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request, Response

from toolsearch.service.activity.costs import ToolCosts
from toolsearch.service.pages import frame
from toolsearch.service.pages.key_names import key_names
from toolsearch.service.pages.plots import Plot, Series, Stack, stacked_bars
from toolsearch.service.pages.routing import PageRoute, visit_with
from toolsearch.service.service import Service, the_service
from toolsearch.service.visits import Visit
from toolsearch.storage.figures import By, FigureSum

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_Service = Annotated[Service, Depends(the_service)]
_Searcher = Annotated[Visit, Depends(visit_with("search", within_reach=True))]

_DAY_S: Final = 86_400
PERIODS: Final = ((7, "7 days"), (30, "30 days"), (90, "90 days"))


@dataclass(frozen=True, slots=True)
class Usage:
    """What one key, one day or all of them used."""

    label: str
    costs: ToolCosts
    searches: float
    weak: float
    calls: float
    failed: float
    refused: float

    @classmethod
    def of(cls, label: str, figures: Mapping[str, float]) -> Usage:
        return cls(
            label,
            ToolCosts.of(figures),
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


@router.get("/usage")
async def usage(
    request: Request, service: _Service, visit: _Searcher, days: Annotated[int, Query(ge=1, le=400)] = 30
) -> Response:
    await service.activity.settled()
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
        Usage.of(f"{datetime.fromtimestamp(at_s, UTC):%-d %b}", by_day.get(str(at_s), {}))
        for at_s in range(since_s, today_s + 1, _DAY_S)
    ]
    by_key = await asyncio.to_thread(sums, "key") if is_admin else {}
    names = await key_names(service, visit, by_key)
    of_keys = [Usage.of(names.get(key_id, key_id), figures) for key_id, figures in by_key.items()]
    return frame.page(
        request,
        "usage.html",
        visit=visit,
        days=days,
        periods=PERIODS,
        total=Usage.of("all", _added_up(by_day.values())),
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


def _added_up(parts: Iterable[Mapping[str, float]]) -> Mapping[str, float]:
    total = Counter[str]()
    for part in parts:
        total.update(part)
    return total


def _plots(days: Sequence[Usage]) -> list[Drawn]:
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
