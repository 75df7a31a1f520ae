"""A study as JSON, for programs that compare one run with the next. Keys are added, never renamed."""

from __future__ import annotations

from dataclasses import asdict

from toolsearch.bench.costs import Caching, Costs
from toolsearch.bench.study import CACHINGS, Row, Size, Study
from toolsearch.bench.verdict import break_even, searching_rows, verdict
from toolsearch.tools.json_types import Json

FORMAT = 1
_DIGITS = 10  # of dollars; what is beyond is the rounding of sums


def as_json(study: Study) -> dict[str, Json]:
    """Return all figures, of all conversations together; the ways in which a model searches are the cheapest first."""
    endpoint, best = study.endpoint, searching_rows(study.whole)
    return {
        "format": FORMAT,
        "verdict": verdict(study),
        "endpoint": {"format": endpoint.wire_format, "model": endpoint.model, "cloud": endpoint.cloud},
        "prices": asdict(study.prices),
        "conversations": study.conversations,
        "turns": study.turns,
        "notes": list(study.notes),
        "sizes": [_size(size) for size in study.sizes],
        "break_even": [_break_even(study, row, caching) for row in best for caching in CACHINGS],
    }


def _size(size: Size) -> dict[str, Json]:
    return {"tools": size.tools, "tokens": size.tokens, "ways": [_row(row) for row in size.rows]}


def _row(row: Row) -> dict[str, Json]:
    return {"way": row.way, "refused": row.refused or None, "by_cache": {each: _costs(row, each) for each in CACHINGS}}


def _costs(row: Row, caching: Caching) -> dict[str, Json]:
    by_turn = row.by_turn[caching]
    costs = row.costs(caching)
    return {
        **_counts(costs),
        "uncached": costs.uncached,
        "dollars": _rounded(costs.dollars),
        "dollars_per_done_turn": _rounded(costs.dollars_per_done),
        "dollars_by_turn": [_rounded(each.dollars) for each in by_turn],
    }


def _counts(costs: Costs) -> dict[str, Json]:
    return {name: value for name, value in asdict(costs).items() if name != "dollars"}


def _break_even(study: Study, row: Row, caching: Caching) -> dict[str, Json]:
    found = break_even(study, row, caching)
    share = found.warm_share
    return {
        "way": row.way,
        "cache": caching,
        "from_tools": found.tools,
        "from_turns": found.turns,
        "equal_at_warm_share": None if share is None else round(share, 4),
    }


def _rounded(dollars: float | None) -> float | None:
    return None if dollars is None else round(dollars, _DIGITS)
