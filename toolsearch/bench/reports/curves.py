"""The curves of a study: what conversations cost over the size of the catalog, their length, and the warm fronts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from toolsearch.bench.costs import Caching
from toolsearch.bench.reports.content import CACHED, per_thousand
from toolsearch.bench.reports.plots import Curve, Plot
from toolsearch.bench.study import Row, Study

_CACHINGS: Final[tuple[Caching, ...]] = ("cold", "warm")
_SHARES = tuple(range(0, 101, 5))


def plots_of(study: Study) -> list[Plot]:
    """Each with a curve for each way, in the order of the rows. Over sizes and turns only where there are several."""
    return [*_by_size(study), *_by_turn(study), _by_share(study)]


def _by_size(study: Study) -> Iterator[Plot]:
    if len(study.sizes) < 2:
        return
    for caching in _CACHINGS:
        curves = [
            Curve(
                row.way,
                tuple(
                    (size.tools, per_thousand(study, size.row(row.way).costs(caching).dollars)) for size in study.sizes
                ),
            )
            for row in study.whole.rows
        ]
        yield _plot(f"By size of the catalog; {CACHED[caching]}", "tools", curves, is_log=True)


def _by_turn(study: Study) -> Iterator[Plot]:
    if study.turns < 2:
        return
    for caching in _CACHINGS:
        curves = [
            Curve(
                row.way,
                tuple((turn, per_thousand(study, costs.dollars)) for turn, costs in enumerate(row.by_turn[caching], 1)),
            )
            for row in study.whole.rows
        ]
        yield _plot(f"By length of the conversation; {CACHED[caching]}", "turns", curves)


def _by_share(study: Study) -> Plot:
    curves = [
        Curve(row.way, tuple((share, per_thousand(study, _mixed(row, share / 100))) for share in _SHARES))
        for row in study.whole.rows
    ]
    return _plot("By the share of conversations whose front is cached", "% of conversations", curves)


def _mixed(row: Row, warm: float) -> float:
    return (1 - warm) * row.costs("cold").dollars + warm * row.costs("warm").dollars


def _plot(title: str, across: str, curves: Iterable[Curve], *, is_log: bool = False) -> Plot:
    return Plot(title, across, "dollars for 1,000 conversations", tuple(curves), is_log=is_log, is_money=True)
