"""A sentence model in ONNX as an encoder (extra ``onnx``): no torch, and a query in about a millisecond with int8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.encoders.batches import encode_in_batches
from toolsearch_indexes.encoders.extras import require
from toolsearch_indexes.encoders.onnx_folder import OnnxFolder
from toolsearch_indexes.encoders.protocol import FloatArray
from toolsearch_indexes.errors import EncoderError

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_OUTPUTS = ("sentence_embedding", "last_hidden_state", "token_embeddings")  # the first there is; else the graph's first
_INTEGERS: Mapping[str, type[np.signedinteger[Any]]] = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}


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
        runtime = require("onnxruntime", what="OnnxEncoder", extra="onnx")
        tokenizers = require("tokenizers", what="OnnxEncoder", extra="onnx")
        self._folder = OnnxFolder.read(Path(folder).expanduser(), model_file=model_file)
        if max_length is not None:
            self._folder = replace(self._folder, max_length=max_length)
        self._batch_size = batch_size
        self._show_progress = show_progress
        self._tokenizer = _load_tokenizer(tokenizers, self._folder)
        self._session = _load_session(runtime, self._folder.model, threads)
        self._inputs = _integer_inputs(self._session)
        self._output = _output_name(self._session)
        self.dimensions: int = self._raw(["probe"]).shape[1]
        self.id = f"onnx:{Path(folder).resolve().name}:{self._folder.digest()}"

    def knows(self, word: str) -> bool:
        return self._tokenizer.token_to_id(word.lower()) is not None

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
        tokens = self._tokenizer.encode_batch(batch)
        arrays = {
            "input_ids": np.array([one.ids for one in tokens]),
            "attention_mask": np.array([one.attention_mask for one in tokens]),
            "token_type_ids": np.array([one.type_ids for one in tokens]),
        }
        feed = {name: arrays[name].astype(integer) for name, integer in self._inputs.items()}
        try:
            vectors: NDArray[Any] = self._session.run([self._output], feed)[0]
        except Exception as error:
            raise EncoderError(
                f"the ONNX model {str(self._folder.model)!r} failed while it embedded: {error}"
            ) from error
        if vectors.ndim == 3:  # texts, tokens, dimensions
            vectors = _pool(vectors, arrays["attention_mask"], cls=self._folder.cls_pooling)
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


def _load_tokenizer(tokenizers: Any, folder: OnnxFolder) -> Any:
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(folder.tokenizer))
    except Exception as error:
        raise EncoderError(f"the tokenizer {str(folder.tokenizer)!r} cannot be read: {error}") from error
    padding: Mapping[str, Any] = tokenizer.padding or {}
    # As stored, many a tokenizer.json pads every text to 128 tokens, and cuts there.
    tokenizer.enable_padding(pad_id=padding.get("pad_id", 0), pad_token=padding.get("pad_token", "[PAD]"))
    tokenizer.enable_truncation(folder.max_length)
    return tokenizer


def _load_session(runtime: Any, model: Path, threads: int) -> Any:
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors, which are raised as well
    try:
        return runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise EncoderError(f"the ONNX model {str(model)!r} cannot be loaded: {error}") from error


def _integer_inputs(session: Any) -> Mapping[str, type[np.signedinteger[Any]]]:
    """Return the graph's inputs, each with the integer type it wants."""
    inputs = {one.name: one.type for one in session.get_inputs()}
    strange = [f"{name} ({kind})" for name, kind in inputs.items() if name not in _INPUTS or kind not in _INTEGERS]
    if strange:
        raise EncoderError(
            f"the ONNX model wants the inputs {', '.join(strange)}; only integer {', '.join(_INPUTS)} can be given"
        )
    return {name: _INTEGERS[kind] for name, kind in inputs.items()}


def _output_name(session: Any) -> str:
    names = [one.name for one in session.get_outputs()]
    return next((name for name in _OUTPUTS if name in names), names[0])
