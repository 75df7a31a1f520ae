"""Two encoders as one. They err at different texts, so that together they find more than the better one alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from toolsearch_indexes.encoders.protocol import Encoder, FloatArray, knows_word, unit_rows


class JoinedEncoder:
    """The inner product of two texts is the mean of what both encoders say, the *first* with the weight *share*, in
    (0, 1), and the *second* with the rest. A word is known if the *first* encoder knows it.
    """

    def __init__(self, first: Encoder, second: Encoder, *, share: float) -> None:
        self._first, self._second = first, second
        self._share = share
        self.dimensions: int = first.dimensions + second.dimensions
        self.id = f"joined:{share}:{first.id}:{second.id}"

    def knows(self, word: str) -> bool:
        return knows_word(self._first, word)

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        return self._join(self._first.encode_documents(texts), self._second.encode_documents(texts))

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        return self._join(self._first.encode_queries(texts), self._second.encode_queries(texts))

    def _join(self, first: FloatArray, second: FloatArray) -> FloatArray:
        side_by_side = np.concatenate([first * sqrt(self._share), second * sqrt(1 - self._share)], axis=1)
        return unit_rows(side_by_side.astype(np.float32, copy=False))
