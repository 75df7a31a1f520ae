"""A cross-encoder in ONNX as a reader (extra ``onnx``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from toolsearch_indexes.encoders.extras import require
from toolsearch_indexes.encoders.onnx_folder import OnnxFolder
from toolsearch_indexes.encoders.onnx_graph import OnnxGraph
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.errors import EncoderError


class OnnxReader:
    def __init__(self, folder: str | Path, *, threads: int = 1) -> None:
        """Load the model.onnx and tokenizer.json of *folder*; what is read together is cut as the folder says.

        Raises MissingExtraError, or EncoderError if a file is missing or cannot be used.
        """
        require("onnxruntime", what="OnnxReader", extra="onnx")  # which is told before anything about the folder
        files = OnnxFolder.read(Path(folder).expanduser())
        self._graph = OnnxGraph(
            files.model, files.tokenizer, max_length=files.max_length, threads=threads, what="OnnxReader"
        )
        self._output = self._graph.outputs[0]
        if self._read("probe", "probe").shape != (1,):
            raise EncoderError(f"the ONNX model {str(files.model)!r} does not give one number for a pair of texts")

    def knows(self, word: str) -> bool:
        return self._graph.knows(word)

    def read(self, request: str, tools: Sequence[str]) -> FloatArray:
        """One by one: an int8 graph scales its activations over a whole batch, so that neighbours would change them."""
        read = [self._read(request, tool) for tool in tools]
        return np.concatenate(read) if read else np.zeros(0, np.float32)

    def _read(self, request: str, tool: str) -> FloatArray:
        log_odds, _ = self._graph.run([(request, tool)], self._output)
        return log_odds.astype(np.float32)
