"""Where the marks of a plot stand. The templates draw them as SVG, with a table beside it that says the same.

Across, places are shares of the width in percent, so that a plot is as readable on a telephone as on a desk. Up and
down, they are pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

HEIGHT: Final = 220.0
BOTTOM: Final = 26.0  # for those of the horizontal one
TOP: Final = 10.0
_GAP: Final = 0.28  # of the room that a bar has
_MOST_BAR: Final = 5.0
_TICKS: Final = 4
_LABELS: Final = 8  # on the horizontal axis, at most

Tone: TypeAlias = Literal["sent", "good", "weak", "refused", "failed"]  # which colour and which pattern


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    tone: Tone


@dataclass(frozen=True, slots=True)
class Bar:
    """One part of a stack. *text* is what it says when it is pointed at."""

    tone: Tone
    x: float
    y: float
    width: float
    height: float
    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A label of an axis, and where it stands on it. Where there is little room, only those that are *main* are."""

    at: float
    text: str
    is_main: bool = True


@dataclass(frozen=True, slots=True)
class Plot:
    bars: tuple[Bar, ...]
    across: tuple[Mark, ...]
    up: tuple[Mark, ...]
    height: float = HEIGHT
    bottom: float = HEIGHT - BOTTOM


@dataclass(frozen=True, slots=True)
class Stack:
    """The amounts at one place of the horizontal axis, one for each series, none below 0."""

    label: str
    amounts: tuple[float, ...]


def stacked_bars(stacks: Sequence[Stack], series: Sequence[Series]) -> Plot:
    """*series* says what the amounts of each stack are, from below."""
    top = nice_top(max((sum(stack.amounts) for stack in stacks), default=0.0))
    room = 100 / max(1, len(stacks))
    width = min(_MOST_BAR, room * (1 - _GAP))
    scale = (HEIGHT - BOTTOM - TOP) / top
    bars: list[Bar] = []
    for place, stack in enumerate(stacks):
        x, y = room * place + (room - width) / 2, HEIGHT - BOTTOM
        for each, amount in zip(series, stack.amounts, strict=True):
            y -= amount * scale
            if amount > 0:
                text = f"{stack.label}: {amount:,.0f} {each.name}"
                bars.append(Bar(each.tone, _short(x), _short(y), _short(width), _short(amount * scale), text))
    every = max(1, math.ceil(len(stacks) / _LABELS))
    across = [
        Mark(_short(room * (place + 0.5)), stack.label, is_main=place % (2 * every) == 0)
        for place, stack in enumerate(stacks)
        if place % every == 0
    ]
    ticks = [top * tick / _TICKS for tick in range(_TICKS + 1)]
    up = [Mark(_short(HEIGHT - BOTTOM - tick * scale), compact(tick)) for tick in ticks]
    return Plot(tuple(bars), tuple(across), tuple(up))


def nice_top(most: float) -> float:
    """The end of an axis: the least of 1, 2, 4 and 8 times a power of ten that holds *most*, so that quarters are
    short numbers.
    """
    if most <= _TICKS:
        return float(_TICKS)
    power = 10.0 ** math.floor(math.log10(most))
    return next(top for step in (1, 2, 4, 8, 10) if (top := step * power) >= most)


def compact(amount: float) -> str:
    """``950``, ``1.5k``, ``20M``, ``3T``."""
    if amount < 0:
        return f"-{compact(-amount)}"
    for power, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if amount >= power:
            return f"{amount / power:.3g}{unit}"
    return f"{amount:.3g}"


def _short(value: float) -> float:
    return round(value, 2)
