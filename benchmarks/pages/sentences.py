"""Sentences of a page that quote stored figures: the text says where each comes from, the page has only the figures.

In a text, ``{metatool/keyword/recall_5:.2f}`` is that figure, by the name that ``--compare`` shows it by, written in
this format. ``{*/keyword/recall_5:.2f}`` is the mean of those whose names fit, ``{NAME * 1000:.0f}`` a thousand times a
figure, and ``{1000 / NAME:.0f}`` a thousand divided by it. White space counts as one space, since a page breaks its
lines anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from statistics import fmean
from typing import Final

_PLACE: Final = re.compile(
    r"\{(?:(?P<divided>[\d.]+) / )?(?P<name>[^{}:]+?)(?: \* (?P<times>[\d.]+))?:(?P<format>[^{}:]+)\}"
)
_FIGURE: Final = r"([-+]?\d(?:[\d,.]*\d)?%?)"


@dataclass(frozen=True, slots=True)
class Sentence:
    """One on *page*, a path from the root of the checkout, with figures of *file*, without its ``.json``."""

    page: str
    file: str
    text: str


class SentenceError(ValueError):
    """A page or a file of figures lacks what a sentence needs; the message says which."""


def renewed(page: str, sentence: Sentence, figures: Mapping[str, float]) -> str:
    """Return the text *page* with the figures in the sentence renewed; nothing else in it is changed."""
    pattern = _FIGURE.join(map(_literal, _PLACE.sub("\0", sentence.text).split("\0")))
    found = list(re.finditer(pattern, page))
    if len(found) != 1:
        raise SentenceError(f"{sentence.page} has {len(found)} times the sentence, not once: {sentence.text}")
    for number, place in reversed(list(enumerate(_PLACE.finditer(sentence.text), 1))):
        value = _value(place["name"], figures, sentence)
        if place["divided"]:
            value = float(place["divided"]) / value
        if place["times"]:
            value *= float(place["times"])
        start, end = found[0].span(number)
        page = f"{page[:start]}{format(value, place['format'])}{page[end:]}"
    return page


def _literal(text: str) -> str:
    return r"\s+".join(map(re.escape, re.split(r"\s+", text)))


def _value(name: str, figures: Mapping[str, float], sentence: Sentence) -> float:
    named = [value for key, value in figures.items() if key == name or fnmatchcase(key, name)]
    if not named:
        raise SentenceError(f"{sentence.file}.json has no figure {name!r}, which {sentence.page} quotes")
    return fmean(named) if len(named) > 1 else named[0]
