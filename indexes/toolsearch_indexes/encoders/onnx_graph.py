"""An ONNX graph that reads tokens, and the tokenizer beside it: what encoders and readers have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolsearch_indexes.encoders.extras import require
from toolsearch_indexes.errors import EncoderError

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_INTEGERS: Mapping[str, type[np.signedinteger[Any]]] = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}


class OnnxGraph:
    """Runs on the CPU; safe to share between threads."""

    def __init__(self, model: Path, tokenizer: Path, *, max_length: int, threads: int, what: str) -> None:
        """*max_length* is in tokens, and *what* names who asks. Raises MissingExtraError, or EncoderError if a file
        cannot be used.
        """
        runtime = require("onnxruntime", what=what, extra="onnx")
        tokenizers = require("tokenizers", what=what, extra="onnx")
        self._model = model
        self._tokenizer = _load_tokenizer(tokenizers, tokenizer, max_length)
        self._session = _load_session(runtime, model, threads)
        self._inputs = _integer_inputs(self._session)
        self.outputs: Sequence[str] = [one.name for one in self._session.get_outputs()]

    def knows(self, word: str) -> bool:
        return self._tokenizer.token_to_id(word.lower()) is not None

    def run(self, texts: Sequence[str] | Sequence[tuple[str, str]], output: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return *output* for a batch of texts or pairs, and their mask (n, tokens), 0 where it is padded.

        Raises EncoderError.
        """
        tokens = self._tokenizer.encode_batch(texts)
        arrays = {
            "input_ids": np.array([one.ids for one in tokens]),
            "attention_mask": np.array([one.attention_mask for one in tokens]),
            "token_type_ids": np.array([one.type_ids for one in tokens]),
        }
        feed = {name: arrays[name].astype(integer) for name, integer in self._inputs.items()}
        try:
            return self._session.run([output], feed)[0], arrays["attention_mask"]
        except Exception as error:
            raise EncoderError(f"the ONNX model {str(self._model)!r} failed while it ran: {error}") from error


def _load_tokenizer(tokenizers: Any, file: Path, max_length: int) -> Any:
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:
        raise EncoderError(f"the tokenizer {str(file)!r} cannot be read: {error}") from error
    padding: Mapping[str, Any] = tokenizer.padding or {}
    # As stored, many a tokenizer.json pads every text to 128 tokens, and cuts there.
    tokenizer.enable_padding(pad_id=padding.get("pad_id", 0), pad_token=padding.get("pad_token", "[PAD]"))
    tokenizer.enable_truncation(max_length)
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
