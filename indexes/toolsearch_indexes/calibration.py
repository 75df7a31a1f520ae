"""How likely it is that a tool serves a request: the scale that turns a strategy's raw scores into the public ones.

A logistic regression for each strategy, fitted on requests that the catalog serves and requests that it does not: the
train parts of the labelled sets, the requests of ``benchmarks/unanswerable_dev.jsonl``, and small catalogs with and
without the right tool. Catalogs were asked with an encoder that had not seen them. So scores compare across requests,
and there is one least score for all.
"""

from __future__ import annotations

import math
from typing import NamedTuple

LEAST = -2.1  # in log odds; what 1 % of the best hits for requests with a right tool do not reach
SURE = -0.15  # what 5 % of the best hits for requests without one reach
_FEW = 5  # tools; among fewer, some are not much less likely to be near by chance
_SHRINKAGE = 20  # tools after which what a catalog says of itself counts for more than what is usual


class Scale(NamedTuple):
    """Log odds are *slope* times a raw score, plus *offset*; *slope* is positive."""

    slope: float
    offset: float

    def fits(self, raw: float) -> bool:
        return self.slope * raw + self.offset >= LEAST

    def score(self, raw: float) -> float:
        """Return the probability, in (0, 1)."""
        return 1 / (1 + math.exp(-self.slope * raw - self.offset))


SURE_SCORE = Scale(1, 0).score(SURE)


def keyword_scale(ideal: float, tools: int) -> Scale:
    """*ideal* is what a tool full of every word would score."""
    return Scale(0.18 + 4.4 / ideal if ideal else 0.18, 0.24 - 0.46 * _size(tools))


def semantic_scale(familiarity: float, tools: int, sense: float) -> Scale:
    return Scale(0.85, 0.75 * _shrunk(familiarity, tools) - 0.23 * _size(tools) + 2.3 * sense - 4.2)


def hybrid_scale(familiarity: float, tools: int, sense: float) -> Scale:
    """*familiarity*: how near all *tools* are to the request on average, in deviations of unrelated cosines; *sense*:
    the share of its words that a tool holds or the encoder knows, which is next to nothing for gibberish.
    """
    return Scale(0.14, 0.35 * _shrunk(familiarity, tools) - 0.43 * _size(tools) + 1.75 * sense - 2.7)


def _size(tools: int) -> float:
    return math.log(tools + _FEW)


def _shrunk(familiarity: float, tools: int) -> float:
    """The average of a few tools says little: draw it towards that of unrelated ones, which is 0."""
    return familiarity * tools / (tools + _SHRINKAGE)
