"""How values are written on pages: times, amounts, JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from toolsearch.access.scopes import SCOPES, includes
from toolsearch.tools.json_types import Json
from toolsearch_indexes.explanation import Explanation, Outcome

_OUTCOMES: Final[dict[Outcome, str]] = {
    "found": "by its score",
    "by its words": "by its words: its score alone is further behind, but it has the words of the query best",
    "by a part": "as it surely serves a part of the request",
    "by name": "as the query names it",
    "by pattern": "as the pattern matches it",
    "does not fit": "Its score is too low.",
    "no match": "Nothing of the query is in it. Describe it in the words that agents use.",
    "below min_score": "Its score is below the least that the settings ask for.",
    "out of reach": "Your key may not reach this tool.",
    "no such tool": "There is no tool of this name.",
}


def moment(at_s: float | None) -> str:
    """``2026-03-01 14:05 UTC``."""
    return "never" if at_s is None else f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M} UTC"


def iso(at_s: float) -> str:
    """For the attribute ``datetime``."""
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%dT%H:%M:%SZ}"


def amount(value: float) -> str:
    """Digits in groups of three: ``36,900``."""
    return f"{value:,.0f}"


def percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def decimal(value: float, places: int = 2) -> str:
    return f"{value:.{places}f}"


def pretty(value: Json) -> str:
    """JSON as people read it."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def outcome(explained: Explanation) -> str:
    """A sentence for the outcome."""
    if explained.outcome == "does not fit" and explained.raw >= explained.least:
        return "No tool fits well enough, this one included, so that nothing is found."
    return _OUTCOMES[explained.outcome]


def tool_path(corpus: str, name: str) -> str:
    """The page of a tool of *corpus*, which is written as ``catalog/default``."""
    return f"/pages/tools/{quote(corpus)}/{quote(name, safe='')}"


def allowed(scopes: frozenset[str]) -> list[str]:
    """All that *scopes* include."""
    return [scope for scope in SCOPES if includes(scopes, scope)]


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    "moment": moment,
    "iso": iso,
    "amount": amount,
    "percent": percent,
    "decimal": decimal,
    "pretty": pretty,
    "outcome": outcome,
    "tool_path": tool_path,
    "allowed": allowed,
}
