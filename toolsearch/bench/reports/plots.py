"""Curves as SVG that stands in a page and takes its colours from there: the n-th curve has the class ``series-n``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import count
from typing import Final

SERIES: Final = 6
COLOURS: Final[Mapping[str, tuple[str, str]]] = {  # light and dark; none says what words do not say too
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

WIDTH: Final = 380  # of the whole picture, in its own units, which a page scales to its own width
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

    is_limit  what no other curve can fall below: it has the class ``limit`` as well
    """

    name: str
    points: tuple[tuple[float, float], ...]
    is_limit: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """*across* and *up* say what the axes are; the one across is logarithmic with *is_log*, the other one always.

    is_money  upwards are dollars
    """

    title: str
    across: str
    up: str
    curves: tuple[Curve, ...]
    is_log: bool = False
    is_money: bool = False


def as_svg(plot: Plot) -> str:
    """Return no text if there is nothing to draw. Each point tells its value where a mouse rests on it."""
    points = [(x, y) for curve in plot.curves for x, y in curve.points if y > 0]
    if not points:
        return ""
    across = _across([x for x, _ in points], is_log=plot.is_log)
    up = _up([y for _, y in points])
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


def _across(values: Sequence[float], *, is_log: bool) -> _Axis:
    """Where it is logarithmic, its ticks are values that are there; the greatest is always among them."""
    axis = _Axis(min(values), max(values), _LEFT, WIDTH - _RIGHT, is_log=is_log)
    if not is_log:
        axis.ticks = _steps(min(values), max(values))
        return axis
    for value in sorted(set(values), reverse=True):
        if not axis.ticks or axis.place(axis.ticks[-1]) - axis.place(value) >= _ROOM_OF_A_TICK:
            axis.ticks.append(value)
    return axis


def _up(values: Sequence[float]) -> _Axis:
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
