"""How sure an answer is that a tool is the very one meant: tools that fit a request nearly as well share the chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from toolsearch_indexes.documents import Hit
from toolsearch_indexes.scores import log_odds_of

RIVALS: Final = 5  # first tools of an answer, which share a chance


# `training.calibration_chances` fits both.
MEANT: Final = 0.35  # chance of high confidence: of best tools with about as much, half are right
SHARPNESS: Final = 2.0  # a tool whose odds are half of another's has a quarter of its share


def chances_of(scores: Sequence[float], *, sharpness: float = SHARPNESS) -> list[float]:
    """The chance of each tool of an answer that it is the one meant: its score times its share among the first five.

    *scores* are best first. So of ten tools that say the same, each has a chance of a fifth at most.
    """
    log_odds = [log_odds_of(score) for score in scores]
    shares = [math.exp(sharpness * (each - log_odds[0])) for each in log_odds]
    whole = sum(shares[:RIVALS])
    return [score * share / whole for score, share in zip(scores, shares, strict=True)]


def compared(hits: Sequence[Hit]) -> list[Hit]:
    """The *hits* of an answer, best first, with medium confidence for those that fit but have a small chance. Weak ones
    stay weak.
    """
    chances = chances_of([hit.score for hit in hits])
    return [hit if hit.confidence == "low" else _with(hit, chance) for hit, chance in zip(hits, chances, strict=True)]


def _with(hit: Hit, chance: float) -> Hit:
    return replace(hit, confidence="high" if chance >= MEANT else "medium")
