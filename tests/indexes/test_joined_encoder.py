"""Two encoders as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from toolsearch_indexes.encoders.joined import JoinedEncoder
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.encoders.static import HashingEncoder

DOCUMENTS = {"one": (1, 0), "two": (0, 1), "": (0, 0)}
QUERIES = {"one": (0.6, 0.8), "": (0, 0)}


class Fixed:
    """Gives a fixed vector for each text, another for it as a query; 0 for those that it does not know."""

    dimensions = 2

    def __init__(self, name: str, documents: Mapping[str, Sequence[float]], queries: Mapping[str, Sequence[float]]):
        self.id, self._documents, self._queries = name, documents, queries

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        return np.array([self._documents.get(text, (0, 0)) for text in texts], np.float32).reshape(-1, 2)

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        return np.array([self._queries.get(text, (0, 0)) for text in texts], np.float32).reshape(-1, 2)

    def knows(self, word: str) -> bool:
        return word in self._documents


@pytest.fixture
def joined() -> JoinedEncoder:
    return JoinedEncoder(
        Fixed("first", DOCUMENTS, QUERIES),
        Fixed("second", {"one": (1, 0), "two": (1, 0), "three": (0, 1)}, {"one": (0.8, 0.6)}),
        share=0.25,
    )


def test_a_likeness_is_the_mean_of_both_with_their_weights(joined: JoinedEncoder) -> None:
    likenesses = joined.encode_queries(["one"]) @ joined.encode_documents(["one", "two"]).T
    assert likenesses[0] == pytest.approx([0.25 * 0.6 + 0.75 * 0.8, 0.25 * 0.8 + 0.75 * 0.8])


def test_rows_have_length_one_even_if_only_one_encoder_reads_a_text(joined: JoinedEncoder) -> None:
    rows = joined.encode_documents(["one", "three", ""])
    assert rows.shape == (3, joined.dimensions)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1, 0])
    assert joined.encode_documents([]).shape == (0, joined.dimensions)


def test_the_first_says_which_words_are_known(joined: JoinedEncoder) -> None:
    assert joined.knows("two")
    assert not joined.knows("three")


def test_an_encoder_that_cannot_say_is_believed_to_know_every_word() -> None:
    assert JoinedEncoder(HashingEncoder(), Fixed("second", {}, {}), share=0.5).knows("three")


def test_the_id_tells_both_encoders_and_the_share() -> None:
    one, two = HashingEncoder(8), HashingEncoder(16)
    ids = {JoinedEncoder(*pair, share=share).id for pair in ((one, two), (two, one)) for share in (0.25, 0.5)}
    assert len(ids) == 4
