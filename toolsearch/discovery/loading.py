"""Which of the tools that a search has found fit the request, and which of these a model is shown at once.

More tools than needed make a model choose worse, and of five that are found hardly one is used. The bounds are chosen
on labelled catalogues; `benchmarks.answers` measures what they do to others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import takewhile
from typing import Final, Literal, TypeAlias

from toolsearch.tools.definition import ToolReference
from toolsearch_indexes.query_forms import Pattern, Select, Words, name_candidates, read_form

Fit: TypeAlias = Literal["fits", "may fit", "related"]

MOST_LOADED: Final = 3
# Where the best scores more, it is the right one in three cases of four; where it scores less, in about half.
_CLEAR_SCORE = 0.7
# In log odds below the best. From 0 to here, each further tool that is loaded is the right one in one case of six or
# seven; from here to 1.0, in one of thirteen.
_NEAR_THE_BEST = 0.5


def is_weak(references: Sequence[ToolReference]) -> bool:
    """Whether requests that no tool serves often have as good an answer."""
    return not references or references[0].confidence == "low"


def is_full_name(query: str, references: Sequence[ToolReference]) -> bool:
    """Whether *query* is the full name of the best of *references*, so that this tool alone is meant.

    It may have around it what models write there, such as ``functions.`` in front.
    """
    form = read_form(query)
    is_name = isinstance(form, Words) and bool(references)
    return is_name and references[0].name.casefold() in name_candidates(query.strip())


def fits_of(references: Sequence[ToolReference]) -> list[Fit]:
    """How well each of *references*, best first, fits: those near the best, unless even that is weak."""
    if is_weak(references):
        return ["related"] * len(references)
    least = _log_odds(references[0].score) - _NEAR_THE_BEST
    return [_fit(reference.score, least) for reference in references]


def loaded(query: str, references: Sequence[ToolReference], *, by_pattern: bool = False) -> int:
    """How many of the first of *references* are shown to the model at once: up to three that fit.

    What is selected by name is loaded, however much it is. Of a pattern's matches it is all or none, since whoever
    sends one looks around.
    """
    form, fits = read_form(query), list(takewhile(lambda fit: fit != "related", fits_of(references)))
    if isinstance(form, Select):
        return len(references)
    if isinstance(form, Pattern) or by_pattern:
        return len(fits) if len(references) <= MOST_LOADED else 0
    return min(len(fits), MOST_LOADED)


def _fit(score: float, least: float) -> Fit:
    if _log_odds(score) < least:
        return "related"
    return "fits" if score >= _CLEAR_SCORE else "may fit"


def _log_odds(score: float) -> float:
    """Of a score in (0, 1]; found by name, it is 1."""
    return math.inf if score >= 1 else math.log(score / (1 - score))
