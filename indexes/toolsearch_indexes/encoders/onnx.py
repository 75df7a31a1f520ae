"""A sentence model in ONNX as an encoder (extra ``onnx``): no torch, and a query in about a millisecond with int8."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.encoders.batches import encode_in_batches
from toolsearch_indexes.encoders.extras import require
from toolsearch_indexes.encoders.onnx_folder import OnnxFolder
from toolsearch_indexes.encoders.onnx_graph import OnnxGraph
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.errors import EncoderError

_OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")  # the first there is; else the graph's first


class OnnxEncoder:
    """Takes graphs that give token vectors, which it pools, and such that give sentence vectors already."""

    def __init__(
        self,
        folder: str | Path,
        *,
        model_file: str | None = None,
        batch_size: int = 1,
        max_length: int | None = None,
        threads: int = 1,
        show_progress: bool | None = None,
    ) -> None:
        """Load the model.onnx and tokenizer.json of *folder*.

        model_file     the graph to take, if the folder has several, such as ``onnx/model_int8.onnx``
        batch_size     an int8 graph scales its activations over the whole batch, so that in batches a text's vector
                       depends on its neighbours (cosine .98 to its own, measured); for at most a third more speed
        max_length     in tokens; None: as the folder says, or 256
        show_progress  a bar for long runs: None on a terminal only, True always, False never

        Raises MissingExtraError, or EncoderError if a file is missing or cannot be used.
        """
        require("onnxruntime", what="OnnxEncoder", extra="onnx")  # which is told before anything about the folder
        self._folder = OnnxFolder.read(Path(folder).expanduser(), model_file=model_file)
        if max_length is not None:
            self._folder = replace(self._folder, max_length=max_length)
        self._batch_size = batch_size
        self._show_progress = show_progress
        self._graph = OnnxGraph(
            self._folder.model,
            self._folder.tokenizer,
            max_length=self._folder.max_length,
            threads=threads,
            what="OnnxEncoder",
        )
        self._output = next((name for name in _OUTPUTS if name in self._graph.outputs), self._graph.outputs[0])
        self.dimensions: int = self._raw(["probe"]).shape[1]
        self.id = f"onnx:{Path(folder).resolve().name}:{self._folder.digest()}"

    def knows(self, word: str) -> bool:
        return self._graph.knows(word)

    def encode_documents(self, texts: Sequence[str]) -> FloatArray:
        return self._encode(texts, self._folder.document_prompt)

    def encode_queries(self, texts: Sequence[str]) -> FloatArray:
        return self._encode(texts, self._folder.query_prompt)

    def _encode(self, texts: Sequence[str], prompt: str) -> FloatArray:
        return encode_in_batches(
            texts,
            lambda batch: self._raw([prompt + text for text in batch]),
            dimensions=self.dimensions,
            batch_size=self._batch_size,
            show_progress=self._show_progress,
        )

    def _raw(self, batch: list[str]) -> FloatArray:
        vectors, mask = self._graph.run(batch, self._output)
        if vectors.ndim == 3:  # texts, tokens, dimensions
            vectors = _pool(vectors, mask, cls=self._folder.cls_pooling)
        if vectors.ndim != 2:
            raise EncoderError(
                f"the ONNX model's output {self._output!r} has the shape {vectors.shape}; not of vectors"
            )
        return vectors.astype(np.float32)


def _pool(tokens: NDArray[Any], mask: NDArray[Any], *, cls: bool) -> NDArray[Any]:
    """Return one vector per text: its first token's, or the mean of those that are not padding."""
    if cls:
        return tokens[:, 0]
    weights = mask[:, :, None].astype(np.float32)
    pooled: NDArray[Any] = (tokens * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1)
    return pooled
