"""A static encoder as a sentence-transformers model: the same vectors, for whoever has that library in place."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np

from toolsearch_indexes.encoders.extras import require
from toolsearch_indexes.encoders.static import StaticEncoder
from toolsearch_indexes.encoders.wordpiece import CASE, LONGEST_WORD, unspaced_pieces

_UNKNOWN = "[UNK]"  # the piece of row 0, which is all zeros


def write_static_embedding(encoder: StaticEncoder, folder: str | Path) -> None:
    """Write *encoder* into *folder* so that ``SentenceTransformer(folder)`` opens it.

    Of a text longer than the encoder reads, the model reads all. Raises MissingExtraError without the library.
    """
    models = require("sentence_transformers", what="write_static_embedding", extra="semantic")
    torch = require("torch", what="write_static_embedding", extra="semantic")
    parts = _modules()
    tokenizer = tokenizer_of(encoder)
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    rows = [encoder.pieces.get(piece, 0) for piece in sorted(vocabulary, key=vocabulary.__getitem__)]
    weights = torch.tensor(encoder.table[rows].astype(np.float32))
    embedding = parts.StaticEmbedding(tokenizer, embedding_weights=weights)
    models.SentenceTransformer(modules=[embedding, parts.Normalize()], device="cpu").save(str(folder))


def _modules() -> Any:
    try:
        return importlib.import_module("sentence_transformers.sentence_transformer.modules")
    except ImportError:  # where they were before version 6
        return require("sentence_transformers.models", what="write_static_embedding", extra="semantic")


def tokenizer_of(encoder: StaticEncoder) -> Any:
    """Return a `tokenizers.Tokenizer` that cuts as *encoder* does, with a piece of no meaning for what has none.

    Raises MissingExtraError without tokenizers.
    """
    tokenizers = require("tokenizers", what="tokenizer_of", extra="onnx")
    normalizers, splitters = tokenizers.normalizers, tokenizers.pre_tokenizers
    vocabulary = {
        piece: number for number, piece in enumerate([_UNKNOWN, *(p for p in encoder.pieces if p != _UNKNOWN)])
    }
    model = tokenizers.models.WordPiece(vocabulary, unk_token=_UNKNOWN, max_input_chars_per_word=LONGEST_WORD)
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFKC(),
            normalizers.Replace(tokenizers.Regex(CASE), " "),
            normalizers.NFD(),
            normalizers.StripAccents(),
            normalizers.Lowercase(),
            normalizers.NFC(),
        ]
    )
    splits = [splitters.Split(tokenizers.Regex(r"[^\p{L}\p{N}]+"), "removed")]
    if unspaced := unspaced_pieces(encoder.pieces):
        splits.append(splitters.Split(tokenizers.Regex("|".join(unspaced)), "isolated"))
    tokenizer.pre_tokenizer = splitters.Sequence(splits)
    return tokenizer
