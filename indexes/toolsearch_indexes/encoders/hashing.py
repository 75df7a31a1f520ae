"""An encoder without a model, for tests and demonstrations: texts are alike as far as they share words, no further."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from toolsearch_indexes.encoders.batches import unit_rows
from toolsearch_indexes.encoders.protocol import FloatArray


class HashingEncoder:
    """Adds or takes one, by the word's hash, in the bucket that the word's hash names. Knows no synonyms, no stems."""

    def __init__(self, dimensions: int = 64) -> None:
        if dimensions < 1:
            raise ValueError(f"dimensions must be at least 1, got {dimensions}")
        self.dimensions = dimensions
        self.id = f"hashing:{dimensions}"

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        matrix = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in _words(text):
                number = int.from_bytes(blake2b(word.encode(errors="replace"), digest_size=8).digest(), "big")
                bucket, sign = divmod(number, 2)
                matrix[row, bucket % self.dimensions] += 1 if sign else -1
        return unit_rows(matrix)

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        return self.encode_documents(texts)


def _words(text: str) -> list[str]:
    return "".join(character if character.isalnum() else " " for character in text.casefold()).split()
