"""A report as one HTML page that loads nothing: its tables, and the curves of the study as SVG.

Curves take their colours from the page, which follows the reader's light or dark scheme: the n-th curve has the class
``series-n``. They show costs over the size of the catalog, the length of conversations, and the share of warm fronts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import count
from typing import Final

from toolsearch.bench.costs import Caching
from toolsearch.bench.reports import CACHED, Report, ReportTable, per_thousand
from toolsearch.bench.study import Study, StudyRow

SERIES: Final = 6

COLOURS: Final[Mapping[str, tuple[str, str]]] = {  # (light, dark); every colour only repeats what words say
    "ground": ("#ffffff", "#0f1217"),
    "ink": ("#171c25", "#e7ebf1"),
    "faint": ("#566072", "#9aa6b6"),
    "edge": ("#dfe3ea", "#2a313c"),
    "wash": ("#eceefc", "#232a4a"),
    "series-0": ("#171c25", "#e7ebf1"),
    "series-1": ("#8a5a00", "#eeb761"),
    "series-2": ("#3746c4", "#9aa8ff"),
    "series-3": ("#0a6b43", "#56c992"),
    "series-4": ("#b02419", "#ff938a"),
    "series-5": ("#7a2d9c", "#d9a0f2"),
}

WIDTH: Final = 380  # units of the picture; a page scales it to its own width
HEIGHT: Final = 270
_LEFT: Final = 56
_RIGHT: Final = 14
_TOP: Final = 10
_BOTTOM: Final = 44
_MOST_TICKS: Final = 7
_ROOM_OF_A_TICK: Final = 52


@dataclass(frozen=True, slots=True)
class Curve:
    """*points* are from left to right. Those at 0 are left out, since the axis upwards is logarithmic.

    is_limit  a lower bound of all other curves; it has the class ``limit`` as well
    """

    name: str
    points: tuple[tuple[float, float], ...]
    is_limit: bool = False


@dataclass(frozen=True, slots=True)
class ReportPlot:
    """*across* and *up* name the axes. The axis across is logarithmic with *is_log*; the axis upwards always is.

    is_money  the axis upwards has dollars
    """

    title: str
    across: str
    up: str
    curves: tuple[Curve, ...]
    is_log: bool = False
    is_money: bool = False


def as_svg(plot: ReportPlot) -> str:
    """Return the picture, or "" if there is nothing to draw. Each point shows its value under a mouse pointer."""
    points = [(x, y) for curve in plot.curves for x, y in curve.points if y > 0]
    if not points:
        return ""
    across = _horizontal_axis([x for x, _ in points], is_log=plot.is_log)
    up = _vertical_axis([y for _, y in points])
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    drawn = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(plot.title)}">',
        *_grid(across, up, is_money=plot.is_money),
        f'<text x="{middle:g}" y="{HEIGHT - 6}" text-anchor="middle">{escape(plot.across)}</text>',
    ]
    for number, curve in enumerate(plot.curves):
        drawn += _curve(curve, number, across, up, is_money=plot.is_money)
    return "\n".join([*drawn, "</svg>"])


class _Axis:
    """From values between *least* and *most* to places between *start* and *end*."""

    def __init__(self, least: float, most: float, start: float, end: float, *, is_log: bool) -> None:
        self.ticks: list[float] = []
        self._scale: Callable[[float], float] = math.log10 if is_log else float
        self._least, self._room = self._scale(least), self._scale(most) - self._scale(least) or 1.0
        self._start, self._length = start, end - start

    def place(self, value: float) -> float:
        return self._start + (self._scale(value) - self._least) / self._room * self._length


def _horizontal_axis(values: Sequence[float], *, is_log: bool) -> _Axis:
    """A logarithmic axis has ticks at existing values; the greatest is always among them."""
    axis = _Axis(min(values), max(values), _LEFT, WIDTH - _RIGHT, is_log=is_log)
    if not is_log:
        axis.ticks = _steps(min(values), max(values))
        return axis
    for value in sorted(set(values), reverse=True):
        if not axis.ticks or axis.place(axis.ticks[-1]) - axis.place(value) >= _ROOM_OF_A_TICK:
            axis.ticks.append(value)
    return axis


def _vertical_axis(values: Sequence[float]) -> _Axis:
    ticks = _decades(min(values), max(values))
    axis = _Axis(ticks[0], ticks[-1], HEIGHT - _BOTTOM, _TOP, is_log=True)
    axis.ticks = ticks
    return axis


def _decades(least: float, most: float) -> list[float]:
    """From below *least* to above *most*: 1, 2, 5, 10 and so on, or powers of ten alone if these are many."""
    low, high = math.floor(math.log10(least)), math.ceil(math.log10(most))
    fine = [step * 10.0**power for power in range(low, high + 1) for step in (1, 2, 5)]
    first = max(at for at, tick in enumerate(fine) if tick <= least)
    last = min(at for at, tick in enumerate(fine) if tick >= most)
    ticks = fine[first : last + 1]
    return ticks if len(ticks) <= _MOST_TICKS else [10.0**power for power in range(low, high + 1)]


def _steps(least: float, most: float) -> list[float]:
    """Multiples of 1, 2, 5, 10 and so on."""
    step = next(step for step in _round_steps() if (most - least) / step < _MOST_TICKS)
    return [number * step for number in range(math.ceil(least / step), math.floor(most / step) + 1)]


def _round_steps() -> Iterator[int]:
    for power in count():
        for step in (1, 2, 5):
            yield step * 10**power


def _grid(across: _Axis, up: _Axis, *, is_money: bool) -> Iterator[str]:
    for tick in up.ticks:
        at = up.place(tick)
        yield f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
        yield f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{"$" * is_money}{_number(tick)}</text>'
    for tick in across.ticks:
        at = across.place(tick)
        yield f'<text x="{at:.1f}" y="{HEIGHT - _BOTTOM + 18}" text-anchor="middle">{_number(tick)}</text>'


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:g}"


def _curve(curve: Curve, number: int, across: _Axis, up: _Axis, *, is_money: bool) -> Iterator[str]:
    places = [
        (across.place(x), up.place(y), f"{_number(x)}: {f'${y:,.2f}' if is_money else _number(y)}")
        for x, y in curve.points
        if y > 0
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
    yield f'<g class="series-{number}{" limit" * curve.is_limit}"><polyline points="{line}"/>'
    for x, y, value in places:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{escape(f"{curve.name}, {value}")}</title></circle>'
    yield "</g>"


_CACHINGS: Final[tuple[Caching, ...]] = ("cold", "warm")
_SHARES = tuple(range(0, 101, 5))


def plots_of(study: Study) -> list[ReportPlot]:
    """Each with a curve for each way, in the order of the rows. Over sizes and turns only where there are several."""
    return [*_by_size(study), *_by_turn(study), _by_share(study)]


def _by_size(study: Study) -> Iterator[ReportPlot]:
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


def _by_turn(study: Study) -> Iterator[ReportPlot]:
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


def _by_share(study: Study) -> ReportPlot:
    curves = [
        Curve(row.way, tuple((share, per_thousand(study, _mixed(row, share / 100))) for share in _SHARES))
        for row in study.whole.rows
    ]
    return _plot("By the share of conversations whose front is cached", "% of conversations", curves)


def _mixed(row: StudyRow, warm: float) -> float:
    return (1 - warm) * row.costs("cold").dollars + warm * row.costs("warm").dollars


def _plot(title: str, across: str, curves: Iterable[Curve], *, is_log: bool = False) -> ReportPlot:
    return ReportPlot(title, across, "dollars for 1,000 conversations", tuple(curves), is_log=is_log, is_money=True)


_COLOURS: Final = "\n".join(f"  --{name}: light-dark({light}, {dark});" for name, (light, dark) in COLOURS.items())

_STYLE: Final = (
    f":root {{\n  color-scheme: light dark;\n{_COLOURS}\n}}"
    """
body {
  margin: 0 auto; padding: 1rem; max-width: 62rem; overflow-wrap: anywhere;
  background: var(--ground); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
h1 { font-size: 1.375rem; line-height: 1.25; }
h2 { font-size: 1rem; margin: 1.75rem 0 .5rem; }
.verdict { padding: .75rem 1rem; background: var(--wash); border-radius: .5rem; font-weight: 600; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .75rem .3rem 0; text-align: right; border-bottom: 1px solid var(--edge); white-space: nowrap; }
th:first-child { text-align: left; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem; }
figure { margin: 0; }
figcaption { font-size: .875rem; }
.faint, figcaption .faint { color: var(--faint); font-size: .875rem; }
svg { width: 100%; height: auto; }
svg text { font-size: 13px; fill: var(--faint); }
.grid { stroke: var(--edge); }
polyline { fill: none; stroke: var(--series); stroke-width: 2; }
circle, .swatch { fill: var(--series); stroke: none; }
.legend { display: inline-flex; align-items: center; gap: .3rem; margin-right: 1rem; }
.legend svg { width: .75rem; height: .75rem; }
""" + "\n".join(f".series-{number} {{ --series: var(--series-{number}); }}" for number in range(SERIES))
)


def as_html(report: Report, plots: Sequence[ReportPlot]) -> str:
    """Return the page. Names in it are escaped as text."""
    title = escape(report.title)
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title} · toolsearch</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>",
            f'<h1>{title}</h1>\n<p class="verdict">{escape(report.verdict)}</p>',
            *map(_table, report.tables),
            *_plots(plots),
            *(_fact(heading, sentences) for heading, sentences in report.facts),
            "</main>\n</body>\n</html>\n",
        ]
    )


def _table(table: ReportTable) -> str:
    title = escape(table.title)
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    rows = "\n".join(_row(cells) for cells in table.rows)
    notes = "\n".join(f'<p class="faint">{escape(note)}</p>' for note in table.notes)
    return (
        f'<h2>{title}</h2>\n<div class="scroll" tabindex="0" role="region" aria-label="{title}"><table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>\n{notes}"
    )


def _row(cells: Sequence[str]) -> str:
    first, *others = map(escape, cells)
    return f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in others)}</tr>'


def _plots(plots: Sequence[ReportPlot]) -> list[str]:
    drawn = [(plot, picture) for plot in plots if (picture := as_svg(plot))]
    if not drawn:
        return []
    first = drawn[0][0]
    legend = "".join(_legend(curve.name, number) for number, curve in enumerate(first.curves))
    figures = [f"<figure><figcaption>{escape(plot.title)}</figcaption>{picture}</figure>" for plot, picture in drawn]
    return [f'<h2>{escape(first.up.capitalize())}</h2>\n<p>{legend}</p>\n<div class="plots">', *figures, "</div>"]


def _legend(name: str, number: int) -> str:
    swatch = '<svg viewBox="0 0 10 10" aria-hidden="true"><rect class="swatch" width="10" height="10" rx="2"/></svg>'
    return f'<span class="legend series-{number}">{swatch}{escape(name)}</span>'


def _fact(heading: str, sentences: Sequence[str]) -> str:
    return f"<h2>{escape(heading)}</h2>\n" + "\n".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
