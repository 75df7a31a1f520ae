"""Readers that say what a test wants, in place of a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolsearch.errors import EncoderError
from toolsearch_indexes.encoders.protocol import FloatArray

YES, NO = 1_000.0, -1_000.0  # log odds that decide, however sure the search was


class FakeReader:
    """Says what *says* has for a word of a tool's text, else *otherwise*; *asked* is what it was shown.

    known  the words that it has met; None: all
    """

    def __init__(
        self, says: dict[str, float] | None = None, otherwise: float = 0.0, *, known: str | None = None
    ) -> None:
        self.says, self.otherwise = says or {}, otherwise
        self._known = None if known is None else known.split()
        self.asked: list[tuple[str, list[str]]] = []

    def knows(self, word: str) -> bool:
        return self._known is None or word in self._known

    @property
    def shown(self) -> list[str]:
        return [text for _, texts in self.asked for text in texts]

    def read(self, request: str, tools: Sequence[str]) -> FloatArray:
        self.asked.append((request, list(tools)))
        said = [next((odds for word, odds in self.says.items() if word in text), self.otherwise) for text in tools]
        return np.array(said, np.float32)


class FailingReader(FakeReader):
    def read(self, request: str, tools: Sequence[str]) -> FloatArray:  # noqa: ARG002
        raise EncoderError("the reader is out of memory")
