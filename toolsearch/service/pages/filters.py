"""How values are written on pages: times, amounts, JSON, text from outside; and where the marks of a plot stand."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import quote

from markupsafe import Markup

from toolsearch.access.scopes import SCOPES, includes
from toolsearch.scanning.texts import visible
from toolsearch.tools.json_types import Json
from toolsearch.tools.summaries import one_line
from toolsearch_indexes.documents import Explanation, RankOutcome

HEIGHT: Final = 220.0
BOTTOM: Final = 26.0  # room for the labels of the horizontal axis
TOP: Final = 10.0
_GAP: Final = 0.28  # the share of a bar's room that stays empty
_MOST_BAR: Final = 5.0
_TICKS: Final = 4
_LABELS: Final = 8  # the most labels on the horizontal axis
Tone: TypeAlias = Literal["sent", "good", "weak", "refused", "failed"]  # the colour and the pattern of a series


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    tone: Tone


@dataclass(frozen=True, slots=True)
class Bar:
    """One part of a stack. *text* is shown under a mouse pointer."""

    tone: Tone
    x: float
    y: float
    width: float
    height: float
    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A label of an axis, and its place. In narrow pictures only *main* labels are shown."""

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
    """The amounts at one place of the horizontal axis, one for each series, not negative."""

    label: str
    amounts: tuple[float, ...]


def stacked_bars(stacks: Sequence[Stack], series: Sequence[Series]) -> Plot:
    """Draw the stacks. *series* describes the amounts of each stack, from below."""
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


_SUMMARY_CHARACTERS: Final = 200
HOPELESS: Final[frozenset[RankOutcome]] = frozenset({"out of reach", "no such tool", "no match"})

_OUTCOMES: Final[dict[RankOutcome, str]] = {
    "found": "by its score",
    "by its words": "by its words: its score alone is further behind, but it has the words of the query best",
    "by a part": "as it serves a part of the request",
    "by name": "as the query names it",
    "by pattern": "as the pattern matches it",
    "does not fit": "Its score is too low.",
    "no match": "Nothing of the query is in it. Describe it in the words that agents use.",
    "below min_score": "Its score is below the least that the settings ask for.",
    "out of reach": "Your key may not reach this tool.",
    "no such tool": "There is no tool of this name.",
}


class Exact(str):
    """The value of a form's field, which has to come back unchanged. It is never shown as text."""

    __slots__ = ()


def shown(value: object) -> str:
    """The filter for every expression of a template: characters that hide or turn others are written out."""
    if isinstance(value, Exact):
        return value
    if isinstance(value, Markup):
        return Markup(visible(value))  # noqa: S704  the text is shown as written, and nothing in it needs escaping
    return visible(str(value))


def moment(at_s: float | None) -> str:
    """``2026-03-01 14:05:09 UTC``."""
    return "never" if at_s is None else f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M:%S} UTC"


def iso(at_s: float) -> str:
    """The time for the attribute ``datetime``."""
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%dT%H:%M:%SZ}"


def amount(value: float) -> str:
    """Digits in groups of three: ``36,900``."""
    return f"{value:,.0f}"


def percent(share: float | None) -> str:
    """A dash for a share that is not known."""
    return "-" if share is None else f"{share * 100:.0f} %"


def decimal(value: float, places: int = 2) -> str:
    return f"{value:.{places}f}"


def pretty(value: Json) -> str:
    """JSON as people read it."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def outcome(explained: Explanation) -> str:
    """A sentence for the outcome."""
    if explained.outcome == "does not fit" and explained.raw >= explained.least:
        return "No tool fits well enough, this one included, and nothing is found."
    return _OUTCOMES[explained.outcome]


def is_written_out(text: str) -> bool:
    """Whether *text* has characters that an input field would hide."""
    return visible(text) != text


def sentence(text: str) -> str:
    """With a capital letter and a full stop: ``By its score.``"""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def shortened(text: str) -> str:
    """The first line of a description, in as many characters as a table takes."""
    return one_line(visible(text), _SUMMARY_CHARACTERS)


def tool_path(corpus: str, name: str) -> str:
    """The address of the page of a tool. *corpus* is written as ``catalog/default``."""
    return f"/pages/tools/{quote(corpus)}/{quote(name, safe='')}"


def breakable(name: str) -> Markup:
    """A long name that may go on in the next line after ``_``, ``-`` and ``.``."""
    return Markup("<wbr>").join(re.split(r"(?<=[_.-])(?=[^_.-])", name))


def ending(name: str) -> str:
    """The end of an id, long enough to distinguish it: ``…4f2a91``."""
    return f"…{name[-6:]}" if len(name) > 12 else name


def allowed(scopes: frozenset[str]) -> list[str]:
    """All that *scopes* include."""
    return [scope for scope in SCOPES if includes(scopes, scope)]


def is_hopeless(explained: Explanation) -> bool:
    """Whether rewording the query alone would not help."""
    return explained.outcome in HOPELESS


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    "is_hopeless": is_hopeless,
    "exact": Exact,
    "moment": moment,
    "iso": iso,
    "amount": amount,
    "compact": compact,
    "percent": percent,
    "decimal": decimal,
    "pretty": pretty,
    "outcome": outcome,
    "is_written_out": is_written_out,
    "sentence": sentence,
    "shortened": shortened,
    "tool_path": tool_path,
    "breakable": breakable,
    "ending": ending,
    "allowed": allowed,
}
