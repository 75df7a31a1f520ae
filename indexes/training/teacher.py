"""The vectors that MiniLM gives to texts. They are kept in a folder, so that a second run need not compute them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.encoders.onnx import OnnxEncoder
from training.onnx_export import export
from training.sentence_model import minilm

FloatArray = NDArray[np.float32]

_BATCH = 32
_MAX_TOKENS = 96


class Teacher:
    """MiniLM in float, as an ONNX graph. The first use writes the graph into *folder*."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        model = folder / "minilm"
        if not (model / "model.onnx").exists():
            export(minilm(), model, max_tokens=_MAX_TOKENS, int8=False)
        self._encoder = OnnxEncoder(model, batch_size=_BATCH, max_length=_MAX_TOKENS)

    def vectors(self, texts: Sequence[str]) -> FloatArray:
        """Return (n, 384) unit rows; asked for a list of texts the second time, they come from the folder."""
        digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
        file = self._folder / f"{digest}.npy"
        if not file.exists():
            by_length = sorted(range(len(texts)), key=lambda i: len(texts[i]))  # a batch is padded to its longest
            vectors = np.empty((len(texts), self._encoder.dimensions), np.float16)
            vectors[by_length] = self._encoder.encode_documents([texts[i] for i in by_length])
            np.save(file, vectors)
        kept: FloatArray = np.load(file).astype(np.float32)
        return kept
