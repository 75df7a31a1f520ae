"""From texts to the matrix that an encoder owes: batches of like length, unit rows, zero rows for blanks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from toolsearch_indexes.encoders.progress import progress_bar
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.errors import EncoderError


def encode_in_batches(
    texts: Sequence[str],
    encode: Callable[[list[str]], FloatArray],
    *,
    dimensions: int,
    batch_size: int,
    show_progress: bool | None = False,
) -> FloatArray:
    """Return one unit row per text; *encode* gives (n, dimensions) of any length for at most *batch_size* texts.

    Shortest texts first, so that a batch pads little. Raises EncoderError if a vector is not finite.
    """
    matrix = np.zeros((len(texts), dimensions), dtype=np.float32)
    order = sorted((row for row, text in enumerate(texts) if text.strip()), key=lambda row: len(texts[row]))
    with progress_bar("Embedding tools", len(order), show=show_progress) as advance:
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            matrix[rows] = unit_rows(encode([texts[row] for row in rows]))
            advance(len(rows))
    return matrix


def unit_rows(vectors: FloatArray) -> FloatArray:
    """Return *vectors* (n, d) scaled to unit length; zero rows stay.

    Raises EncoderError if one is not finite.
    """
    if not np.isfinite(vectors).all():
        raise EncoderError("the model gave vectors that are not finite; its files are damaged or it cannot run here")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: FloatArray = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return scaled
