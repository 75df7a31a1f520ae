"""What the semantic arm asks of an encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float32]


class Encoder(Protocol):
    """Turns texts into vectors whose inner product is their likeness. Safe to share between threads.

    Each row is of unit length, and depends on its own text alone, up to rounding; a blank text has a zero row, which
    is like nothing. Raises EncoderError if the model fails.
    """

    @property
    def id(self) -> str:
        """Stable over processes and machines, and another one whenever the vectors would be others."""
        ...

    @property
    def dimensions(self) -> int: ...

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        """Return (len(texts), dimensions) float32, in the order of *texts*."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        """As encode_documents, for what is searched with: some models are trained to tell the two apart."""
        ...


@runtime_checkable
class KnowsWords(Protocol):
    """An encoder that can tell a word it has met from letters it can only cut into pieces.

    A request of words that neither the encoder nor any tool knows finds nothing. An encoder without this is believed to
    know every word, and finds the nearest tools for gibberish, too; one that wraps another has to pass this on.
    """

    def knows(self, word: str) -> bool:
        """Whether the encoder has met *word*: one part of a query, in lower case."""
        ...
