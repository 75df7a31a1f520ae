"""The built-in encoder elsewhere: its tokenizer and its vectors are the same in the libraries that others use."""

from typing import Any

import numpy as np
import pytest

from toolsearch_indexes.encoders.sentence_transformer import tokenizer_of, write_static_embedding
from toolsearch_indexes.encoders.static import StaticEncoder

TEXTS = [
    "",
    "getHTTPServer list_files v2 iPhone15Pro S3Bucket XMLHttpRequest",
    "Create a new issue in a GitHub repository; returns its number.",
    "Straße naïve ÉCOLE Ünïcode e\u0301cole \u0130stanbul \u01c5",
    "数据abc库 データベース 데이터베이스 检索",
    "\ufb01le \u21165 \u00bd x\u00b2 ＡＢＣ＿search",
    "Создать задачу в проекте",
    "प्रयोगकर्ता",
    "a_b-c.d/e: f",
    "qwzxv " + "b" * 120,
]


@pytest.fixture(scope="module")
def encoder() -> StaticEncoder:
    return StaticEncoder()


@pytest.fixture(scope="module")
def tokenizer(encoder: StaticEncoder) -> Any:
    return tokenizer_of(encoder)


@pytest.mark.parametrize("text", TEXTS)
def test_tokenizers_cuts_a_text_into_the_same_pieces(encoder, tokenizer, text):
    pieces = tokenizer.encode(text, add_special_tokens=False).tokens

    numbers = [encoder.pieces[piece] for piece in pieces if piece != "[UNK]"]
    rows = encoder.table.rows(np.array(numbers, int)).astype(np.float64)
    total = rows.sum(axis=0) if len(rows) else np.zeros(encoder.dimensions)

    assert encoder.encode_documents([text])[0] == pytest.approx(total / (np.linalg.norm(total) or 1), abs=1e-6)


def test_sentence_transformers_gives_the_same_vectors(encoder, tmp_path, sentence_transformers):
    write_static_embedding(encoder, tmp_path)

    vectors = sentence_transformers.SentenceTransformer(str(tmp_path), device="cpu").encode(
        TEXTS, show_progress_bar=False
    )

    assert np.abs(vectors - encoder.encode_documents(TEXTS)).max() < 1e-5
