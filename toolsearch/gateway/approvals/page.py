"""The entries that await approval, for the status page and operators' programs, and the decisions made there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.routing import Route

from toolsearch.errors import ConflictError
from toolsearch.gateway.approvals.decisions import Decisions
from toolsearch.gateway.approvals.waiting import Waiting, refused_last
from toolsearch.gateway.operators import Change, Operators
from toolsearch.gateway.trust.differences import Run


class _Decision(Change):
    """*pin* is that of the definition which was shown."""

    server: str
    kind: str
    name: str
    pin: str
    approve: bool


def decision_routes(operators: Operators, decisions: Decisions) -> list[Route]:
    """The routes of ``/approvals.json``."""

    async def show() -> Mapping[str, Any]:
        return {"waiting": [*map(_written, refused_last(await decisions.waiting()))]}

    async def decide(decision: _Decision, who: str) -> None:
        shown = next((each for each in await decisions.waiting() if _is_about(decision, each)), None)
        if shown is None or not await decisions.decide(shown, who, is_approved=decision.approve):
            raise ConflictError("definition", decision.name)

    return operators.routes("/approvals.json", show, _Decision, decide)


def _is_about(decision: _Decision, waiting: Waiting) -> bool:
    shown = (waiting.server, waiting.held.kind.value, waiting.name, waiting.held.pin)
    return shown == (decision.server, decision.kind, decision.name, decision.pin)


def _written(waiting: Waiting) -> Mapping[str, Any]:
    """The entry, and the runs of words in each place that differs, for the page to mark."""
    places = [
        {"name": place.name, "before": _runs(place.before), "now": _runs(place.now)}
        for place in waiting.places
        if place.is_changed
    ]
    return {**waiting.written(), "places": places}


def _runs(runs: tuple[Run, ...]) -> list[list[Any]]:
    return [[run.text, run.is_marked] for run in runs]
