"""How likely it is that a tool serves a request: raw scores of two arms become one, on one public scale."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.analysis import words

LEAST = -1.8  # log odds that an answer needs; 1-2 % of correct best hits score below this


# Log odds that a hit after the best needs; it is lower because the next hits may be the tools that were meant.
FOLLOWING = -2.5
SURE = -0.25  # log odds of an answer that is not weak; 6 % of the best hits for unserved requests reach this


# These log odds are subtracted from each tool that has example requests of users, since examples also bring wrong tools
# nearer to a request. If they were not, such tools would be found in place of right ones without examples. A hybrid
# search subtracts both, each from its own part of the score.
KEYWORD_REQUESTS = 0.7
SEMANTIC_REQUESTS = 0.32
SEMANTIC_SLOPE = 0.99  # log odds of one deviation
_NONSENSE_LOG_ODDS = -6.6  # log odds for requests without a meaningful word
_FEW = 5  # tools; in smaller catalogs a tool is near by chance almost as often
_LEAST_SCORE = 1e-9
_SHRINKAGE = 20  # tools from which on a catalog's own figures count for more than the usual ones


# A reader gives log odds of its own. READ_WEIGHT times these, and READ_OFFSET, are added to those of the search.
# READ_OFFSET keeps the share of served requests whose answer is not weak. All four numbers are fitted by
# `training.calibration_reader`.
READ_OFFSET, READ_WEIGHT = 0.52, 0.22
READ_LEAST, READ_FOLLOWING = -1.39, -2.89  # LEAST and FOLLOWING with a reader; 1 % of correct answers fall below


class Scale(NamedTuple):
    """Log odds are *slope* times a raw score, plus *offset*; *slope* is positive."""

    slope: float
    offset: float

    def fits(self, raw: float) -> bool:
        """Whether a best hit with this score makes an answer."""
        return self.slope * raw + self.offset >= LEAST

    def follows(self, raw: float) -> bool:
        """Whether a hit after the best may be in an answer; never without any match."""
        return raw > 0 and self.slope * raw + self.offset >= FOLLOWING

    @property
    def least_following(self) -> float:
        """The least raw score for which `follows` is true, up to rounding."""
        return max(0.0, (FOLLOWING - self.offset) / self.slope)

    def score(self, raw: float) -> float:
        """Return the probability, in (0, 1)."""
        return score_of(self.slope * raw + self.offset)

    def raw_of(self, score: float) -> float:
        """The raw score with this probability."""
        return (log_odds_of(score) - self.offset) / self.slope

    def scores(self, raws: Iterable[float]) -> list[float]:
        """The probability of each."""
        slope, offset = self
        return [1 / (1 + math.exp(-(slope * raw + offset))) for raw in raws]


def score_of(log_odds: float) -> float:
    """Return the probability, in (0, 1)."""
    return 1 / (1 + math.exp(-log_odds))


def log_odds_of(score: float) -> float:
    """The inverse of `score_of`. A score of 1, as for hits by name, gives great but finite log odds."""
    bounded = min(max(score, _LEAST_SCORE), 1 - _LEAST_SCORE)
    return math.log(bounded / (1 - bounded))


def read_log_odds(found: float, read: float) -> float:
    """The log odds that a tool serves a request, from those of the search and those of a reader."""
    return READ_OFFSET + found + READ_WEIGHT * read


SURE_SCORE = Scale(1, 0).score(SURE)


def keyword_scale(ideal: float, tools: int) -> Scale:
    """*ideal* is the score of a tool full of every word."""
    return Scale(0.2 + 4.7 / ideal if ideal else 0.2, 0.25 - 0.54 * size_of(tools))


def semantic_scale(familiarity: float, tools: int, sense: float, surplus: float = 0.0) -> Scale:
    """See `hybrid_scale`."""
    offset = 0.49 * shrunk(familiarity, tools) - 0.3 * size_of(tools) + 1.2 * sense - 0.9 * surplus - 3.4
    return Scale(SEMANTIC_SLOPE, offset if sense else offset + _NONSENSE_LOG_ODDS)


def hybrid_scale(familiarity: float, tools: int, sense: float, surplus: float = 0.0) -> Scale:
    """*familiarity*: the average nearness of all *tools* to the request, in deviations of unrelated cosines. *sense*:
    the share of its words that a tool contains or the encoder knows; nearly 0 for gibberish. *surplus*: see
    `SemanticArm.surplus`.
    """
    offset = 0.73 * shrunk(familiarity, tools) - 0.32 * size_of(tools) + 1.5 * sense - 0.55 * surplus - 2.9
    return Scale(0.09 + 0.11 / size_of(tools), offset if sense else offset + _NONSENSE_LOG_ODDS)


def size_of(tools: int) -> float:
    return math.log(tools + _FEW)


def shrunk(familiarity: float, tools: int) -> float:
    """Draw the average of few tools towards 0, the average of unrelated ones, since it says little."""
    return familiarity * tools / (tools + _SHRINKAGE)


FloatArray = NDArray[np.float32]


# The worth of one deviation of a cosine in BM25F scores. On the train parts of the labelled sets, values from 3 to 6
# are within a point of recall@5 of each other, for identifiers, few words and long requests alike.
_FEW_WORDS = 8
_WEIGHT_OF_FEW = 5.5
_WEIGHT_OF_MANY = 4.0  # long requests have enough words to trust keywords more


class Unrelated(NamedTuple):
    """How the cosines of texts that have nothing to do with each other spread: a property of an encoder."""

    mean: float
    deviation: float

    def deviations_of(self, cosine: float) -> float:
        return (cosine - self.mean) / self.deviation

    def deviations(self, cosines: FloatArray) -> FloatArray:
        """How many deviations *cosines* lie above the mean; 0 below it, where they tell nothing more."""
        deviations: FloatArray = np.maximum(cosines - np.float32(self.mean), np.float32(0))
        deviations /= np.float32(self.deviation)
        return deviations


def semantic_weight(request: str) -> float:
    return _WEIGHT_OF_FEW if len(words(request)) <= _FEW_WORDS else _WEIGHT_OF_MANY
