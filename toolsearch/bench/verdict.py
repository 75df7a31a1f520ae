"""What a study comes to, in figures and in one sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass

from toolsearch.bench.costs import Caching, cheaper_from, share_where_equal
from toolsearch.bench.study import Row, Size, Study
from toolsearch.bench.ways import EVERY, FOUND_BEFORE


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Where searching becomes cheaper than every definition in each request, in one way and with one caching.

    tools       from this size of catalog on; None: at no size that was studied
    turns       of conversations over the whole catalog, from this many on; None: at no length that was played
    warm_share  at which share of conversations whose front is cached both cost the same, over the whole catalog; None
                if one of them is always the cheaper
    """

    row: Row
    caching: Caching
    tools: int | None
    turns: int | None
    warm_share: float | None


def searching_rows(size: Size) -> list[Row]:
    """Those in which the model searches, the cheapest for each turn that does not fail first, and what is refused
    last; ties stay in order.
    """
    rows = [row for row in size.rows if row.way not in (EVERY, FOUND_BEFORE)]
    return sorted(rows, key=lambda row: (bool(row.refused), _dollars_per_done(row)))


def break_even(study: Study, row: Row, caching: Caching) -> BreakEven:
    """For the way of *row*, which is of the whole catalog."""
    sizes, every = study.sizes, study.whole.row(EVERY)
    by_size = cheaper_from(
        [size.row(row.way).costs(caching).dollars for size in sizes],
        [size.row(EVERY).costs(caching).dollars for size in sizes],
    )
    by_turn = cheaper_from(
        [costs.dollars for costs in row.by_turn[caching]], [costs.dollars for costs in every.by_turn[caching]]
    )
    return BreakEven(
        row,
        caching,
        None if by_size is None else sizes[by_size].tools,
        None if by_turn is None else by_turn + 1,
        share_where_equal(_cold_and_warm(row), _cold_and_warm(every)),
    )


def verdict(study: Study) -> str:
    """Whether to use tool search here, as one would tell a colleague. It judges money, and tells of turns that fail by
    it. How well a model chooses among many tools, and what a failed turn costs, is not in it.
    """
    best, every = searching_rows(study.whole)[0], study.whole.row(EVERY)
    return _judged(study, best, every) + _failures(best, every)


def _judged(study: Study, best: Row, every: Row) -> str:
    whole = study.whole
    if every.refused:
        return f"Use tool search: {every.refused}. Here are {whole.tools:,} tools ({whole.tokens:,} tokens)."
    cold, warm = (break_even(study, best, caching) for caching in ("cold", "warm"))
    ratio = {caching: _ratio(best, every, caching) for caching in ("cold", "warm")}
    size = f"{whole.tools:,} tools ({whole.tokens:,} tokens)"
    if ratio["cold"] >= 1 and ratio["warm"] >= 1:
        return f"Do not use tool search to save money: for {size} it costs {ratio['cold']:.2f} times as much."
    if ratio["warm"] >= 1:
        return (
            f"It depends on the cache: for {size}, searching costs {ratio['cold']:.2f} of listing every tool if each "
            f"conversation begins uncached, and {ratio['warm']:.2f} if the list is always cached."
        )
    from_size = max(cold.tools or whole.tools, warm.tools or whole.tools)
    return (
        f"Use tool search: for {size} it costs {ratio['cold']:.2f} of listing every tool, {ratio['warm']:.2f} if the "
        f"list is always cached.{_lower_bound(study, from_size)}"
    )


def _lower_bound(study: Study, from_size: int) -> str:
    """Nothing is known of catalogs that are smaller than the smallest that was studied."""
    least = study.sizes[0].tools
    if from_size > least:
        return f" Below about {from_size:,} tools do not."
    return f" It does so from {least:,} tools on; fewer were not counted." if len(study.sizes) > 1 else ""


def _failures(best: Row, every: Row) -> str:
    ours, theirs = (_failed_share(row) for row in (best, every))
    if ours <= theirs:
        return ""
    return (
        f" But in {ours:.1%} of the turns the model never found a tool that it needed, with every tool in {theirs:.1%}."
    )


def _failed_share(row: Row) -> float:
    costs = row.costs("none")
    return costs.failed / max(costs.turns, 1)


def _dollars_per_done(row: Row) -> float:
    dollars = row.costs("cold").dollars_per_done
    return math.inf if dollars is None else dollars


def _ratio(ours: Row, theirs: Row, caching: Caching) -> float:
    return ours.costs(caching).dollars / (theirs.costs(caching).dollars or 1.0)


def _cold_and_warm(row: Row) -> tuple[float, float]:
    return row.costs("cold").dollars, row.costs("warm").dollars
