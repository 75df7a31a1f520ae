"""Two arms, one score: what a request's words are worth in a tool, plus what the nearness of the two meanings is.

A BM25F score counts how rare the shared words are. A cosine is counted in deviations of the cosines that this encoder
gives to unrelated texts, times a constant. Neither depends on what else matches, so that a tool keeps its score when
others come and go, and the sum keeps what fusing ranks throws away: how far ahead a match is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.analysis import words

FloatArray = NDArray[np.float32]

# What one deviation of a cosine is worth in BM25F. On the train parts of the labelled sets 3 to 6 find the same within
# a point of recall@5, for identifiers, few words and long requests alike.
_FEW_WORDS = 8
_WEIGHT_OF_FEW = 5.5
_WEIGHT_OF_MANY = 4.0  # a long request says enough words that its own decide more


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
