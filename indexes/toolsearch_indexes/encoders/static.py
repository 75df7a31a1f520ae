"""A static encoder: a text's vector is the sum of its pieces' rows in a table. No model runs, so it needs no extra.

A row's length is its weight, so that ``the`` hardly counts, and rows are 8-bit integers under one common scale, which a
vector of unit length does not see.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.encoders.wordpiece import WordPieces
from toolsearch_indexes.errors import EncoderError

BUILT_IN_FOLDER = Path(__file__).parent / "built_in"
_TABLE, _PIECES, _ABOUT = "table.npy", "pieces.json", "about.json"
_LONGEST_TEXT = 4_000  # characters; what lies behind is not read
_SUMMED_IN_16_BITS = 255  # pieces, whose 8-bit numbers add up to what 16 bits hold
_SUMMED_AT_ONCE = 1_024  # pieces; these stay in the processor's cache


def is_static(folder: Path) -> bool:
    return (folder / _TABLE).is_file() and (folder / _PIECES).is_file()


class StaticEncoder:
    """Reads a folder with *table.npy* (rows, dimensions; int8), *pieces.json* (the row of each piece; several may
    share one) and *about.json*.
    """

    def __init__(self, folder: str | Path = BUILT_IN_FOLDER) -> None:
        """Raises EncoderError if *folder* does not hold such an encoder."""
        folder = Path(folder)
        try:
            self.table: NDArray[np.int8] = np.load(folder / _TABLE)
            self.pieces: Mapping[str, int] = json.loads((folder / _PIECES).read_bytes())
            about: Mapping[str, Any] = json.loads((folder / _ABOUT).read_bytes())
            self.id = f"static:{about['name']}:{about['digest']}"
            last = max(self.pieces.values())
            rows, self.dimensions = self.table.shape
        except (OSError, ValueError, KeyError) as error:
            raise EncoderError(f"there is no usable static encoder in {str(folder)!r}: {error}") from error
        if last >= rows:
            raise EncoderError(f"there is no usable static encoder in {str(folder)!r}: a piece has no row in its table")
        self._words = WordPieces(self.pieces)

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        return self._encode(texts)

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        return self._encode(texts)

    def knows(self, word: str) -> bool:
        return self._words.knows(word)

    def _encode(self, texts: Sequence[str]) -> FloatArray:
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        numbers = [self._words.numbers(text[:_LONGEST_TEXT]) for text in texts]
        by_count: defaultdict[int, list[int]] = defaultdict(list)
        for row, found in enumerate(numbers):
            by_count[len(found)].append(row)
        by_count.pop(0, None)
        for count, rows in by_count.items():  # texts of as many pieces are added up together
            kind = np.int16 if count <= _SUMMED_IN_16_BITS else np.int32
            at_once = max(1, _SUMMED_AT_ONCE // count)
            for some in (rows[first : first + at_once] for first in range(0, len(rows), at_once)):
                pieces = self.table.take([numbers[row] for row in some], axis=0).astype(kind)
                vectors[some] = pieces.sum(axis=1, dtype=kind)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return vectors
